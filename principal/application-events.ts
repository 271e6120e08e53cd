import type { Application } from '../lib/argocd/index.ts';
import { BoundedMap, type RateLimit, TokenBucket } from '../lib/base/index.ts';
import type { EventRecorder, Informer, KubeObject } from '../lib/kube/index.ts';

/** Reasons of Events about Applications: those that Argo CD's application controller has for the same. */
export type ApplicationEventReason = 'ResourceUpdated' | 'OperationStarted' | 'OperationCompleted';

/** What is told of one Application. */
interface Told {
  readonly type: 'normal' | 'warning';
  readonly reason: ApplicationEventReason;
  readonly note: string;
}

/** All Events about the Applications of one agent. An hour of them stays in the API server. */
const eventRate: RateLimit = { burst: 100, perSecond: 1 };
/** More than a principal has agents. */
const mostAgents = 65_536;

/**
 * Tells by Events of the hub's Applications how what their agents report has changed: App details > Events of Argo CD's UI reads
 * them from the hub, where no application controller writes any. They need nothing but the reported status, from whatever agent. A
 * state that has passed before an agent could report it has none.
 */
export class ApplicationEvents {
  readonly #ownerOf: (application: Application) => string | undefined;
  readonly #isResponsible: (agent: string) => boolean;
  readonly #events: Pick<EventRecorder<ApplicationEventReason>, 'normal' | 'warning'>;
  readonly #now: (() => number) | undefined;
  readonly #buckets = new BoundedMap<string, TokenBucket>(mostAgents);

  constructor(options: {
    /** The agent that deploys an Application of the hub, a mirror or not; undefined when none does. */
    ownerOf: (application: Application) => string | undefined;
    /** Whether this replica, of several, writes about the agent. Default: it is the only one. */
    isResponsible?: ((agent: string) => boolean) | undefined;
    events: Pick<EventRecorder<ApplicationEventReason>, 'normal' | 'warning'>;
    /** Milliseconds of a clock that never goes back. */
    now?: () => number;
  }) {
    this.#ownerOf = options.ownerOf;
    this.#isResponsible = options.isResponsible ?? (() => true);
    this.#events = options.events;
    this.#now = options.now;
  }

  /** Follows the cache of Applications. */
  follow(informer: Pick<Informer<KubeObject>, 'subscribe'>): void {
    informer.subscribe({
      updated: (old, now) => this.#changed(old as unknown as Application, now as unknown as Application),
    });
  }

  #changed(old: Application, now: Application): void {
    const told = old.metadata.uid === now.metadata.uid && old.status !== now.status ? changesOf(old, now) : [];
    const agent = told.length === 0 ? undefined : this.#ownerOf(now);
    if (agent === undefined || !this.#isResponsible(agent)) {
      return;
    }
    const bucket = this.#buckets.get(agent) ?? new TokenBucket(eventRate, this.#now);
    this.#buckets.set(agent, bucket);
    const object = { ...now, apiVersion: 'argoproj.io/v1alpha1', kind: 'Application' };
    for (const { type, reason, note } of told) {
      if (bucket.tryTake()) {
        this.#events[type](object, reason, `${note}, says agent ${agent}`);
      }
    }
  }
}

function changesOf({ status: old = {} }: Application, { status: now = {} }: Application): Told[] {
  return [
    ...changeOf('Sync', old.sync?.status, now.sync?.status),
    ...changeOf('Health', old.health?.status, now.health?.status),
    ...operationOf(operationIn(old.operationState), operationIn(now.operationState)),
  ];
}

function changeOf(what: string, from = '', to = ''): Told[] {
  return from === to || to === ''
    ? []
    : [{ type: 'normal', reason: 'ResourceUpdated', note: `${what} status changed: ${from || 'none'} -> ${to}` }];
}

/** An operation as a status shows it. */
interface Operation {
  readonly phase: string;
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly message: string;
  readonly revision: string;
  readonly isAutomated: boolean;
}

/** Who starts one on the hub has told so: Argo CD's API server writes an Event of its own. */
function operationOf(old: Operation, now: Operation): Told[] {
  const isOther = now.startedAt !== old.startedAt;
  const to = now.revision === '' ? '' : ` to ${now.revision}`;
  const started: Told = { type: 'normal', reason: 'OperationStarted', note: `Automated sync${to} started` };
  const isGood = now.phase === 'Succeeded';
  const ended: Told = {
    type: isGood ? 'normal' : 'warning',
    reason: 'OperationCompleted',
    note: `Sync${to} ended: ${now.phase}${isGood || now.message === '' ? '' : `, ${now.message.slice(0, 800)}`}`,
  };
  return [
    ...(isOther && now.startedAt !== '' && now.isAutomated ? [started] : []),
    ...(now.finishedAt !== '' && (isOther || now.finishedAt !== old.finishedAt) ? [ended] : []),
  ];
}

/** Agents report it, so it may be anything. */
function operationIn(state: unknown): Operation {
  const { phase, startedAt, finishedAt, message, syncResult, operation } = fieldsOf(state);
  return {
    phase: textOf(phase),
    startedAt: textOf(startedAt),
    finishedAt: textOf(finishedAt),
    message: textOf(message),
    revision: textOf(fieldsOf(syncResult).revision) || textOf(fieldsOf(fieldsOf(operation).sync).revision),
    isAutomated: fieldsOf(fieldsOf(operation).initiatedBy).automated === true,
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
