import {
  Inbox,
  type InboxOutcome,
  type ObjectRef,
  type RetryDelays,
  type Runtime,
  TurnQueue,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { agentDisconnectedCondition, agentWarningCondition, annotations } from '../../names.ts';
import { placeOf, refAt } from '../../place.ts';
import { sourceUidOf } from '../copy.ts';
import { conditionMessage, planUserRelease, planWarnings } from '../status.ts';
import { DisconnectionNotices, type DisconnectionNoticesOptions } from './disconnection-notices.ts';
import type { HubWriter } from './hub-writer.ts';

/** What {@link HubWarnings} need of the hub. */
export interface HubWarningsOptions {
  readonly writer: HubWriter;
  /** The agent that has an Application. */
  readonly agentOf: (application: Application) => string | undefined;
  /** When an agent that is not connected was last; undefined when that is not known. */
  readonly lastSeen: (agent: string) => Date | undefined;
  /** Why nobody deploys an Application, as far as the hub knows. The agent is undefined when it belongs to none. */
  readonly notice: (application: Application, agent: string | undefined) => string | undefined;
  readonly disconnection: DisconnectionNoticesOptions;
  readonly runtime: Runtime;
}

/** An agent may be away for this long before its absence is reported. */
const graceMs = 30_000;
/** Applications that nobody deploys are looked through at most this often. */
const leastShowingMs = 1_000;
/** Departures that are remembered. */
const mostDepartures = 10_000;
const retry: RetryDelays = { baseMs: 500, factor: 2, capMs: 60_000, jitter: 1 };

interface Presence {
  readonly isConnected: boolean;
  /** Wall-clock time of the last change. */
  readonly since: Date;
  /** The same on the engine's clock. */
  readonly at: number;
  readonly isMember: boolean;
}

interface Look {
  readonly ref: ObjectRef;
  readonly id: string;
}

/**
 * Writes on the hub's Applications what the principal alone knows: that nobody deploys one, that one being deleted waits for
 * an agent that is away, that an agent's report cannot be written, and that another cluster, which had it before, is still removing what it deployed. A user may release
 * one that waits ({@link annotations.release}). Another condition says that an agent is not connected, also on mirrors.
 */
export class HubWarnings {
  readonly #options: HubWarningsOptions;
  readonly #inbox: Inbox<Look>;
  readonly #disconnection: DisconnectionNotices;
  readonly #stop = new AbortController();
  readonly #startedAt: Date;
  readonly #presence = new Map<string, Presence>();
  /** Agent → its Applications that are being deleted on the hub. */
  readonly #leaving = new Map<string, Map<string, ObjectRef>>();
  /** Application → agents that received its deletion and have not finished it, with the source's uid. */
  readonly #departures = new Map<string, Map<string, { readonly sourceUid: string; readonly since: Date }>>();
  readonly #timers = new Map<string, () => void>();
  /** Applications that nobody deploys. They have a notice when that lasts: agents and projects come one after another. */
  readonly #unserved = new Map<string, { readonly ref: ObjectRef; readonly since: number; isShown: boolean }>();
  /** What agents report and the hub's API server refuses, by Application. */
  readonly #refused = new Map<string, { readonly agent: string; readonly text: string }>();
  /** Applications of which it is not known yet whether somebody deploys them: one AppProject may have those of all agents. */
  readonly #served: TurnQueue<ObjectRef>;
  #cancelShowing: (() => void) | undefined;
  #ids = 0;

  constructor(options: HubWarningsOptions) {
    this.#options = options;
    this.#startedAt = options.runtime.today();
    this.#served = new TurnQueue(options.runtime, (id, ref) => this.#lookAtService(id, ref));
    this.#inbox = new Inbox<Look>(
      {
        apply: ({ ref }, signal) => this.#write(ref, signal),
        acknowledge: () => undefined,
        laneOf: ({ ref }) => placeOf(ref),
        idOf: ({ id }) => id,
        supersedes: () => true,
        onError: (error, { ref }, attempt) =>
          options.runtime.log.warn({ application: placeOf(ref), attempt, error }, 'notice not written, will retry'),
        runtime: options.runtime,
        retry,
        isOwn: () => true,
      },
      this.#stop.signal,
    );
    this.#disconnection = new DisconnectionNotices(
      options.disconnection,
      (ref, signal) => this.#write(ref, signal),
      options.runtime,
      this.#stop.signal,
    );
  }

  /** Looks whose write failed and is tried again, and those under way. */
  get pending(): number {
    return this.#inbox.queued;
  }

  /** A change of the hub's Application, and the agents that had it and have it. */
  follow(ref: ObjectRef, hub: Application | undefined, before: string | undefined, agent: string | undefined): void {
    if (before !== undefined && before !== agent) {
      this.#stay(ref, before);
    }
    if (agent !== undefined) {
      this.#depart(ref, agent, undefined);
    }
    if (hub === undefined) {
      this.#served.withdraw(placeOf(ref));
      this.#unserved.delete(placeOf(ref));
      this.#refused.delete(placeOf(ref));
      return;
    }
    this.#served.add(placeOf(ref), ref);
    const isLeaving = hub.metadata.deletionTimestamp !== undefined && (hub.metadata.finalizers ?? []).length > 0;
    if (agent !== undefined && isLeaving) {
      this.#leave(ref, agent);
    }
    if (isLeaving || this.#departures.has(placeOf(ref)) || conditionMessage(hub, agentWarningCondition) !== undefined) {
      this.#look(ref);
    }
  }

  /** What an agent reports about an Application cannot be written, for this reason; undefined: it can. */
  reportRefused(ref: ObjectRef, agent: string, reason: string | undefined): void {
    const place = placeOf(ref);
    if (reason !== undefined) {
      this.#refused.set(place, { agent, text: `what agent ${agent} reports cannot be written here: ${reason}` });
      this.#look(ref);
    } else if (this.#refused.delete(place)) {
      this.#look(ref);
    }
  }

  /** What is to be said on this Application of an agent that is not connected may have changed. */
  disconnectionChanged(hub: Application): void {
    this.#disconnection.follow(hub);
  }

  #lookAtService(id: string, ref: ObjectRef): void {
    const hub = this.#options.disconnection.read(ref);
    if (hub === undefined) {
      return;
    }
    this.#disconnection.follow(hub);
    const text = this.#options.notice(hub, this.#options.agentOf(hub));
    const entry = this.#unserved.get(id);
    if (text === undefined) {
      this.#unserved.delete(id);
    } else if (entry === undefined) {
      this.#unserved.set(id, { ref, since: this.#options.runtime.clock.now(), isShown: false });
      this.#showLater(graceMs);
    } else if (entry.isShown) {
      this.#look(ref);
    }
  }

  #showLater(ms: number): void {
    if (this.#cancelShowing !== undefined || this.#stop.signal.aborted) {
      return;
    }
    const { clock } = this.#options.runtime;
    this.#cancelShowing = clock.after(ms, () => {
      this.#cancelShowing = undefined;
      // In the order in which they came.
      for (const entry of this.#unserved.values()) {
        const left = entry.since + graceMs - clock.now();
        if (entry.isShown) {
          continue;
        }
        if (left > 0) {
          this.#showLater(Math.max(left, leastShowingMs));
          return;
        }
        entry.isShown = true;
        this.#look(entry.ref);
      }
    });
  }

  /** The agent is there. Gives the copies that it was deleting when it was here last. */
  connected(agent: string): { readonly ref: ObjectRef; readonly sourceUid: string }[] {
    this.#set(agent, { isConnected: true, isMember: true });
    this.#lookAtAll(agent);
    return Array.from(this.#departuresOf(agent));
  }

  /** The agent's connection is gone. */
  disconnected(agent: string): void {
    if (this.#presence.get(agent)?.isConnected === true) {
      this.#set(agent, { isConnected: false, isMember: true });
      this.#lookLater(agent);
    }
  }

  /** The agent was detached. */
  forgetAgent(agent: string): void {
    this.releaseAgent(agent);
    if (this.#presence.has(agent)) {
      this.#set(agent, { isConnected: false, isMember: false });
      this.#lookLater(agent);
    }
  }

  /** Another principal serves the agent: what was known of it here does not count, nor is it said any longer. */
  releaseAgent(agent: string): void {
    for (const { ref } of [...this.#departuresOf(agent)]) {
      this.#depart(ref, agent, undefined);
      this.#look(ref);
    }
    for (const [place, refused] of [...this.#refused]) {
      if (refused.agent === agent) {
        this.reportRefused(refAt(place), agent, undefined);
      }
    }
  }

  /** Another principal has a connection of a managed agent, or has it no longer. */
  servedElsewhere(agent: string, isServed: boolean): void {
    if (isServed) {
      this.#set(agent, { isConnected: true, isMember: true });
    } else {
      this.disconnected(agent);
    }
  }

  /** An agent reports that it is deleting a copy that it should not have any more. */
  departing(ref: ObjectRef, agent: string, sourceUid: string): void {
    if (this.#departures.get(placeOf(ref))?.get(agent)?.sourceUid !== sourceUid) {
      this.#options.runtime.log.info(
        { agent, application: placeOf(ref) },
        'the agent is removing what the Application deployed there',
      );
      this.#depart(ref, agent, { sourceUid, since: this.#options.runtime.today() });
      this.#look(ref);
    }
  }

  /** An agent's copy that it was deleting is gone, or is there and not being deleted. */
  departed(ref: ObjectRef, agent: string): void {
    if (this.#departures.get(placeOf(ref))?.has(agent) === true) {
      this.#options.runtime.log.info(
        { agent, application: placeOf(ref) },
        'the agent has removed what the Application deployed there',
      );
      this.#depart(ref, agent, undefined);
      this.#look(ref);
    }
  }

  /** Stops all timers. */
  close(): void {
    this.#stop.abort();
    this.#served.close();
    this.#cancelShowing?.();
    for (const cancel of this.#timers.values()) {
      cancel();
    }
  }

  #write(ref: ObjectRef, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#options.writer.run(ref, (hub) => this.#plan(ref, hub), signal);
  }

  #plan(ref: ObjectRef, hub: Application | undefined) {
    if (hub === undefined || this.#options.disconnection.isResponsible?.(hub) === false) {
      return undefined;
    }
    const release = planUserRelease(hub);
    if (release !== undefined) {
      this.#options.runtime.log.warn(
        { agent: this.#options.agentOf(hub), application: placeOf(ref) },
        'a user lets this Application go without an answer of its agent',
      );
      return release;
    }
    const notice = this.#notice(ref, hub);
    const refused = this.#refused.get(placeOf(ref))?.text;
    const texts = [notice, refused, this.#waiting(hub), ...this.#removals(ref, hub)].filter(
      (text) => text !== undefined,
    );
    const messages = {
      [agentWarningCondition]: texts.length === 0 ? undefined : texts.join('; '),
      [agentDisconnectedCondition]: this.#disconnection.messageFor(hub),
    };
    const patch = planWarnings(hub, messages, this.#options.runtime.today());
    if (patch !== undefined && notice !== undefined) {
      this.#options.runtime.log.warn({ agent: this.#options.agentOf(hub), application: placeOf(ref) }, notice);
    }
    return patch;
  }

  #notice(ref: ObjectRef, hub: Application): string | undefined {
    return this.#unserved.get(placeOf(ref))?.isShown === true
      ? this.#options.notice(hub, this.#options.agentOf(hub))
      : undefined;
  }

  #waiting(hub: Application): string | undefined {
    const agent = this.#options.agentOf(hub);
    const { deletionTimestamp, finalizers = [] } = hub.metadata;
    if (deletionTimestamp === undefined || finalizers.length === 0 || agent === undefined) {
      return undefined;
    }
    const { lastSeen } = this.#options;
    const { clock } = this.#options.runtime;
    const known = this.#presence.get(agent);
    const last = lastSeen(agent);
    // What never was a managed agent's, or is an autonomous agent's, is somebody else's.
    const isMirror = hub.metadata.annotations?.[annotations.mirrorOf] !== undefined;
    if (isMirror || known?.isConnected === true || (known === undefined && last === undefined)) {
      return undefined;
    }
    if (clock.now() < (known?.at ?? 0) + graceMs) {
      this.#lookLater(agent);
      return undefined;
    }
    const since = (known?.since ?? last ?? this.#startedAt).toISOString();
    const why = known?.isMember === false ? 'has been outside the fleet' : 'has not been connected';
    return `waiting for agent ${agent}, which ${why} since ${since}; annotate ${annotations.release}: "true" to let this Application go`;
  }

  *#departuresOf(agent: string): Generator<{ readonly ref: ObjectRef; readonly sourceUid: string }> {
    for (const [id, agents] of this.#departures) {
      const departure = agents.get(agent);
      if (departure !== undefined) {
        const [namespace = '', name = ''] = id.split('/');
        yield { ref: { namespace, name }, sourceUid: departure.sourceUid };
      }
    }
  }

  /** Only an agent that once had the Application knows its UID; reports of any other are not shown on it. */
  #removals(ref: ObjectRef, hub: Application): string[] {
    const agent = this.#options.agentOf(hub);
    return Array.from(this.#departures.get(placeOf(ref)) ?? [])
      .filter(([other, { sourceUid }]) => other !== agent && sourceUid === sourceUidOf(hub))
      .map(([other, { since }]) => `agent ${other} is removing what was deployed there since ${since.toISOString()}`);
  }

  #set(agent: string, { isConnected, isMember }: { isConnected: boolean; isMember: boolean }): void {
    const { clock, today } = this.#options.runtime;
    this.#presence.set(agent, { isConnected, isMember, since: today(), at: clock.now() });
  }

  #leave(ref: ObjectRef, agent: string): void {
    let refs = this.#leaving.get(agent);
    if (refs === undefined) {
      refs = new Map();
      this.#leaving.set(agent, refs);
    }
    refs.set(placeOf(ref), ref);
  }

  #stay(ref: ObjectRef, agent: string): void {
    const refs = this.#leaving.get(agent);
    refs?.delete(placeOf(ref));
    if (refs?.size === 0) {
      this.#leaving.delete(agent);
    }
  }

  #depart(ref: ObjectRef, agent: string, how: { sourceUid: string; since: Date } | undefined): void {
    const id = placeOf(ref);
    const agents = this.#departures.get(id) ?? new Map<string, { sourceUid: string; since: Date }>();
    if (how === undefined) {
      agents.delete(agent);
    } else {
      agents.set(agent, how);
    }
    if (agents.size === 0) {
      this.#departures.delete(id);
    } else {
      this.#departures.set(id, agents);
      if (this.#departures.size > mostDepartures) {
        for (const oldest of this.#departures.keys()) {
          this.#departures.delete(oldest);
          break;
        }
      }
    }
  }

  #lookAtAll(agent: string): void {
    for (const ref of this.#leaving.get(agent)?.values() ?? []) {
      this.#look(ref);
    }
  }

  #lookLater(agent: string): void {
    if (this.#timers.has(agent) || !this.#leaving.has(agent) || this.#stop.signal.aborted) {
      return;
    }
    const due = (this.#presence.get(agent)?.at ?? 0) + graceMs;
    const cancel = this.#options.runtime.clock.after(Math.max(0, due - this.#options.runtime.clock.now()), () => {
      this.#timers.delete(agent);
      this.#lookAtAll(agent);
    });
    this.#timers.set(agent, cancel);
  }

  #look(ref: ObjectRef): void {
    this.#inbox.receive({ ref, id: String(++this.#ids) });
  }
}
