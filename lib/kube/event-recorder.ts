import { randomBytes } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import type { Logger } from '../base/index.ts';
import type { KubeClient } from './client.ts';
import { rfc3339Micro } from './conditions.ts';
import { isNotFound, isRetryable } from './errors.ts';
import { events, type KubeEvent } from './resources.ts';
import type { KubeObject } from './types.ts';
import { WorkQueue } from './workqueue.ts';

/** Options of an event recorder. */
export interface EventRecorderOptions {
  client: Pick<KubeClient, 'create' | 'mergePatch'>;
  /** `reportingController`, for instance `argocd-fleet/gitops-controller`. */
  component: string;
  /** `reportingInstance`: the pod's name. */
  instance: string;
  /** Different events remembered at the same time; the oldest are forgotten. Default 1000. */
  capacity?: number | undefined;
  /** Shortest time between two writes about repetitions of one event that follow each other closely. Default 30 s. */
  seriesIntervalMs?: number | undefined;
  logger?: Logger | undefined;
  /** Logs each Event. Repetitions that follow each other closely are logged once. */
  echo?: Logger | undefined;
}

interface Entry {
  readonly event: KubeEvent;
  count: number;
  lastAt: Date;
  /** The count that the server has; 0 if it was not written yet. */
  written: number;
}

/** The API server counts bytes, though it says characters. */
const mostNoteBytes = 1024;
const maxFailures = 5;
/** A repetition after this much quiet is a new event, as with client-go. */
const seriesEndsAfterMs = 6 * 60_000;
/** A repetition after this pause is a new occurrence: it is logged, and written at once. */
const occurrenceAfterMs = 5_000;

/**
 * Records events.k8s.io/v1 Events for operators. Recording never blocks and never throws: events are
 * written in the background, equal ones as one series, and given up when the server refuses them. `Reason` are the reasons
 * that a program has.
 */
export class EventRecorder<Reason extends string = string> {
  readonly #options: EventRecorderOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #queue: WorkQueue;
  readonly #stopping = new AbortController();
  readonly #stopped: Promise<void>;
  #dropped = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      name: 'events',
      handler: (key, signal) => this.#write(key, signal),
      backoff: { initialMs: 500, maxMs: 30_000 },
    });
    this.#stopped = this.#queue.run(this.#stopping.signal);
  }

  get #seriesIntervalMs(): number {
    return this.#options.seriesIntervalMs ?? 30_000;
  }

  /** Events that were given up or forgotten before they were written. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Records that something went as it should. */
  normal(object: KubeObject, reason: Reason, message: string): void {
    this.#record('Normal', object, reason, message);
  }

  /** Records that something needs attention. */
  warning(object: KubeObject, reason: Reason, message: string): void {
    this.#record('Warning', object, reason, message);
  }

  /** Stops writing. Events not written yet are lost. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#stopped;
  }

  #record(type: 'Normal' | 'Warning', object: KubeObject, reason: string, message: string): void {
    const note = shortened(message, mostNoteBytes);
    const { namespace = '', name, uid = '' } = object.metadata;
    const key = [object.kind, namespace, name, uid, type, reason, note].join('\0');
    const now = new Date();
    const known = this.#entries.get(key);
    const pauseMs = known ? now.getTime() - known.lastAt.getTime() : Number.POSITIVE_INFINITY;
    const isOccurrence = pauseMs >= occurrenceAfterMs;
    if (isOccurrence) {
      const line = { kind: object.kind, namespace, name, event: reason };
      const log = this.#options.echo;
      type === 'Normal' ? log?.info(line, note) : log?.warn(line, note);
    }
    if (known && pauseMs < seriesEndsAfterMs) {
      known.count++;
      known.lastAt = now;
      // An event that was not written yet is still in the queue; its write includes the repetition.
      if (known.written > 0) {
        this.#queue.addAfter(key, isOccurrence ? 0 : this.#seriesIntervalMs);
      }
      return;
    }
    this.#entries.delete(key);
    this.#entries.set(key, { event: this.#event(type, object, reason, note, now), count: 1, lastAt: now, written: 0 });
    this.#forgetOldest();
    this.#queue.add(key);
  }

  #event(type: string, object: KubeObject, reason: string, note: string, now: Date): KubeEvent {
    const { namespace, name, uid, resourceVersion } = object.metadata;
    const { component, instance } = this.#options;
    const suffix = `.${now.getTime().toString(16)}${randomBytes(3).toString('hex')}`;
    return {
      metadata: { name: cut(name, 253 - suffix.length) + suffix, namespace: namespace ?? 'default' },
      eventTime: rfc3339Micro(now),
      type,
      reason,
      // The API requires an action; here it is the reason.
      action: reason,
      note,
      reportingController: component,
      reportingInstance: instance.slice(0, 128),
      regarding: {
        name,
        ...(object.apiVersion ? { apiVersion: object.apiVersion } : {}),
        ...(object.kind ? { kind: object.kind } : {}),
        ...(namespace ? { namespace } : {}),
        ...(uid ? { uid } : {}),
        ...(resourceVersion ? { resourceVersion } : {}),
      },
    };
  }

  #forgetOldest(): void {
    const capacity = this.#options.capacity ?? 1000;
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= capacity) {
        return;
      }
      if (entry.written < entry.count) {
        this.#dropped++;
      }
      this.#entries.delete(key);
    }
  }

  async #write(key: string, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(key);
    if (!entry || entry.written === entry.count) {
      return;
    }
    const { client, logger } = this.#options;
    const { count, event } = entry;
    const series = { count, lastObservedTime: rfc3339Micro(entry.lastAt) };
    try {
      if (entry.written > 0) {
        await client.mergePatch(events, event.metadata, { series }, { signal });
      } else {
        await client.create(events, count > 1 ? { ...event, series } : event, { signal });
      }
      entry.written = count;
      if (entry.count > count) {
        this.#queue.addAfter(key, this.#seriesIntervalMs); // repeated while it was being written
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (isNotFound(error) && entry.written > 0) {
        entry.written = 0; // events live for an hour; this one must be created again
        this.#queue.add(key);
        return;
      }
      if (isRetryable(error) && this.#queue.failuresOf(key) < maxFailures) {
        throw error;
      }
      this.#entries.delete(key);
      this.#queue.forget(key);
      this.#dropped++;
      logger?.warn({ error, reason: event.reason, object: event.regarding }, 'event not written');
    }
  }
}

/** The text if it has at most so many bytes, otherwise as much of its beginning as fits. */
function shortened(text: string, mostBytes: number): string {
  const bytes = Buffer.from(text);
  const mark = '…';
  // A character that was cut is left out.
  const decoder = new StringDecoder('utf8');
  return bytes.length <= mostBytes
    ? text
    : decoder.write(bytes.subarray(0, mostBytes - Buffer.byteLength(mark))) + mark;
}

/** The beginning of a name, so that a dot may follow: a part of a DNS name ends with a letter or a digit. */
function cut(name: string, length: number): string {
  return name.slice(0, length).replace(/[^a-z0-9]+$/i, '');
}
