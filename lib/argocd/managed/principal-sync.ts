import {
  type Backoff,
  type Clock,
  failureOf,
  type MergePatch,
  mayPassLater,
  type ObjectRef,
  type ResourceKey,
  refOf,
  type Snapshot,
  type Store,
  type StoreChange,
  systemClock,
  View,
} from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { digestOf } from '../canonical-json.ts';
import { annotations } from '../names.ts';
import type { PrincipalKind, SourcePart } from '../parts/part.ts';
import { managedCopyDigest, sourceUidOf, triggersOf } from './copy.ts';
import { displayName, type SyncLog } from './log.ts';
import { type Delivered, PrincipalPeer, type Report, type Told } from './principal-peer.ts';
import { planAgentError, planReport } from './status.ts';

/** How a {@link PrincipalSync} works. */
export interface PrincipalSyncOptions {
  readonly applications: Store<Application>;
  /** The principal's persistent identity. */
  readonly principalUid: string;
  /** Which agent has an Application, undefined for none. Also says whether it takes part at all. */
  readonly agentOf: (application: Application) => string | undefined;
  /** Namespace on the hub of what is in a namespace of an agent's cluster. Default: the agent's name. */
  readonly namespaceOf?: (agent: string, local: string) => string;
  readonly log: SyncLog;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** Wall-clock time, for condition times. */
  readonly today?: () => Date;
  readonly maxInFlight?: number;
  readonly concurrency?: number;
  readonly resend?: Backoff;
}

/** The operation that the agent of an Application has got or is about to get. */
interface KnownOperation {
  readonly uid: string;
  readonly digest: string;
}

const maxSteps = 6;

/**
 * The hub's side of managed mode, for all agents: sends every agent its Applications as they are now, passes on what
 * users ask of Argo CD (sync, terminate, refresh), and writes what agents report. It knows a store, connections and a
 * clock, no Kubernetes and no gRPC.
 */
export class PrincipalSync implements PrincipalKind<SourcePart> {
  readonly #options: PrincipalSyncOptions;
  readonly #clock: Clock;
  readonly #log: SyncLog;
  readonly #view: View<Application>;
  readonly #stop = new AbortController();
  readonly #peers = new Map<string, PrincipalPeer>();
  readonly #snapshots = new WeakMap<Application, Snapshot<Application>>();
  readonly #operations = new Map<string, KnownOperation>();
  /** Application → uid of those whose termination the agent knows or is about to know. */
  readonly #terminating = new Map<string, string>();

  constructor(options: PrincipalSyncOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log;
    this.#view = new View({
      clock: this.#clock,
      changed: (ref, change) => this.#hubChange(ref, change),
      doubted: (ref) => void this.#check(ref),
    });
  }

  /** Starts to follow the store. Call it when the store's cache is filled, and before the first connection. */
  start(signal: AbortSignal): void {
    const unfollow = this.#view.follow(this.#options.applications);
    signal.addEventListener('abort', () => {
      unfollow();
      this.#stop.abort();
      for (const peer of this.#peers.values()) {
        peer.close();
      }
    });
  }

  /** What is between the hub and one agent. */
  part(agent: string): SourcePart {
    return this.#peer(agent);
  }

  /** The agent left the fleet: what is known of it is dropped; objects stay. */
  forgetAgent(agent: string): void {
    this.#peers.get(agent)?.close();
    this.#peers.delete(agent);
  }

  #peer(agent: string): PrincipalPeer {
    let peer = this.#peers.get(agent);
    if (peer === undefined) {
      peer = new PrincipalPeer({
        agent,
        principalUid: this.#options.principalUid,
        read: (key) => this.#snapshot(agent, key),
        keys: () => this.#keysOf(agent),
        delivered: (key) => this.#delivered(agent, key),
        apply: (report, signal) => this.#apply(agent, report, signal),
        hubKey: (told) => this.#hubKey(agent, told),
        log: this.#log,
        clock: this.#clock,
        random: this.#options.random ?? Math.random,
        maxInFlight: this.#options.maxInFlight,
        concurrency: this.#options.concurrency,
        resend: this.#options.resend,
      });
      this.#peers.set(agent, peer);
      for (const key of this.#keysOf(agent)) {
        peer.changed(key);
      }
    }
    return peer;
  }

  #keysOf(agent: string): ResourceKey[] {
    const keys = [];
    for (const application of this.#view.values()) {
      if (this.#options.agentOf(application) === agent) {
        keys.push(keyOf(refOf(application)));
      }
    }
    return keys;
  }

  #snapshot(agent: string, key: ResourceKey): Snapshot<Application> | undefined {
    const hub = this.#view.get(key);
    if (hub === undefined || this.#options.agentOf(hub) !== agent) {
      return undefined;
    }
    let snapshot = this.#snapshots.get(hub);
    if (snapshot === undefined) {
      snapshot = {
        uid: sourceUidOf(hub),
        version: hub.metadata.resourceVersion ?? '',
        digest: `${managedCopyDigest(hub)}${triggerMark(hub)}`,
        object: hub,
      };
      this.#snapshots.set(hub, snapshot);
    }
    return snapshot;
  }

  #hubChange(ref: ObjectRef, { old, now }: StoreChange<Application>): void {
    const key = keyOf(ref);
    const before = old === undefined ? undefined : this.#options.agentOf(old);
    const agent = now === undefined ? undefined : this.#options.agentOf(now);
    if (before !== undefined && before !== agent) {
      const peer = this.#peers.get(before);
      peer?.withdraw(key, 'set-operation');
      peer?.withdraw(key, 'terminate-operation');
      peer?.changed(key);
      // What this agent knew of the requests says nothing about the next one.
      this.#operations.delete(idOf(ref));
      this.#terminating.delete(idOf(ref));
    }
    if (now === undefined || agent === undefined) {
      this.#operations.delete(idOf(ref));
      this.#terminating.delete(idOf(ref));
      return;
    }
    const peer = this.#peer(agent);
    this.#followOperation(peer, key, now);
    this.#followTermination(peer, key, now);
    if (old === undefined || before === agent) {
      peer.changed(key);
    } else {
      // It came from another agent, whose status it may carry: if this agent has it still, it has to report again.
      peer.repeat(key);
    }
  }

  /** Sees what a user newly asks for, told from what the agent reported or has got. */
  #followOperation(peer: PrincipalPeer, key: ResourceKey, hub: Application): void {
    const id = idOf(key);
    const uid = hub.metadata.uid ?? '';
    if (hub.operation === undefined) {
      this.#operations.delete(id);
      peer.withdraw(key, 'set-operation');
      return;
    }
    const digest = digestOf(hub.operation);
    const known = this.#operations.get(id);
    if (known?.uid === uid && known.digest === digest) {
      return;
    }
    this.#operations.set(id, { uid, digest });
    // Seen for the first time, after a restart: when the agent reports progress of it, the agent has it.
    if (known?.uid === uid || !isInProgress(hub, digest)) {
      peer.request(key, 'set-operation');
    }
  }

  #followTermination(peer: PrincipalPeer, key: ResourceKey, hub: Application): void {
    const id = idOf(key);
    if (hub.status?.operationState?.phase !== 'Terminating') {
      this.#terminating.delete(id);
    } else if (this.#terminating.get(id) !== hub.metadata.uid) {
      this.#terminating.set(id, hub.metadata.uid ?? '');
      peer.request(key, 'terminate-operation');
    }
  }

  async #apply(agent: string, report: Report, signal: AbortSignal): Promise<'done' | 'retry'> {
    const { key: ref, message } = report;
    for (let step = 0; step < maxSteps; step++) {
      const hub = this.#view.get(ref);
      if (hub === undefined || this.#options.agentOf(hub) !== agent) {
        this.#strayed(agent, ref, message);
        return 'done';
      }
      const patch = this.#patchFor(agent, hub, report);
      if (patch === undefined) {
        return 'done';
      }
      try {
        this.#view.learn(await this.#options.applications.patch(ref, patch, signal));
        return 'done';
      } catch (error) {
        switch (failureOf(error)) {
          case 'rejected':
            if (mayPassLater(error)) throw error;
            this.#log.error(
              { agent, application: displayName(ref), err: error },
              "the API server refuses an agent's report",
            );
            return 'done';
          case 'transient':
            throw error;
          default:
            await this.#read(ref, signal);
        }
      }
    }
    return 'retry';
  }

  #patchFor(agent: string, hub: Application, report: Report): MergePatch | undefined {
    const { message } = report;
    if (message.type === 'error') {
      return planAgentError(hub, agent, message.error.message, this.#options.today?.() ?? new Date());
    }
    const source = message.object.metadata.annotations?.[annotations.sourceUid];
    if (source !== undefined && source !== sourceUidOf(hub)) {
      this.#strayed(agent, keyOf(refOf(hub)), message);
      return undefined;
    }
    if (message.type === 'delete') {
      return this.#releaseDeleted(agent, hub);
    }
    const id = idOf(refOf(hub));
    const patch = planReport(hub, message.object, {
      operationDelivered: report.delivered.operation === operationMark(hub),
      triggersDelivered: report.delivered.triggers === triggerMark(hub),
      terminating: report.terminating,
    });
    // What is written here must not pass for a user's request when the cache shows it.
    const { operation, status } = message.object;
    if (patch?.operation !== undefined && operation !== undefined) {
      this.#operations.set(id, { uid: hub.metadata.uid ?? '', digest: digestOf(operation) });
    }
    if (status?.operationState?.phase === 'Terminating') {
      this.#terminating.set(id, hub.metadata.uid ?? '');
    }
    return patch;
  }

  /**
   * The agent reports about something that it should not have: it may have made it after the hub's object was gone, from
   * a message of before. What it should have instead, or that it should go, is said by the outbox.
   */
  #strayed(agent: string, key: ResourceKey, message: Report['message']): void {
    const uid =
      message.type === 'status-update' ? message.object.metadata.annotations?.[annotations.sourceUid] : undefined;
    if (uid !== undefined) {
      this.#log.info({ agent, application: displayName(key) }, 'the agent has an Application that it should not have');
      this.#peer(agent).peerHolds(key, { uid });
    }
  }

  /** The agent has no copy any more. A hub object that is being deleted was waiting for that. */
  #releaseDeleted(agent: string, hub: Application): MergePatch | undefined {
    if (hub.metadata.deletionTimestamp === undefined) {
      this.#log.warn(
        { agent, application: displayName(refOf(hub)) },
        'the agent lost an Application; it is sent again',
      );
      this.#peer(agent).peerHolds(keyOf(refOf(hub)), undefined);
      return undefined;
    }
    this.#log.info({ agent, application: displayName(refOf(hub)) }, 'Application is gone on the managed cluster');
    return { metadata: { uid: hub.metadata.uid, finalizers: null } };
  }

  async #check(ref: ObjectRef): Promise<void> {
    try {
      await this.#read(ref, this.#stop.signal);
    } catch (error) {
      this.#log.debug({ application: displayName(ref), err: error }, 'not in the cache, and not readable now');
    }
  }

  async #read(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const before = this.#view.get(ref);
    const now = await this.#options.applications.read(ref, signal);
    if (now !== undefined) {
      this.#view.learn(now);
    } else if (before !== undefined) {
      this.#view.lost(before);
    }
  }

  #delivered(agent: string, key: ResourceKey): Delivered {
    const hub = this.#view.get(key);
    const peer = this.#peers.get(agent);
    if (hub === undefined || peer === undefined) {
      return { operation: undefined, triggers: undefined };
    }
    const triggers = triggerMark(hub);
    return {
      operation: peer.requested(key, 'set-operation') ? undefined : operationMark(hub),
      triggers: peer.held(key)?.digest?.endsWith(triggers) === true ? triggers : undefined,
    };
  }

  /** Agents say either side's namespace, a Go agent sometimes the wrong one: the hub's own Application goes first. */
  #hubKey(agent: string, { name, namespace, remapped }: Told): ResourceKey {
    const mapped = this.#options.namespaceOf?.(agent, namespace) ?? agent;
    const hub = this.#view.get({ namespace, name });
    return !remapped && hub !== undefined && this.#options.agentOf(hub) === agent
      ? keyOf({ namespace, name })
      : keyOf({ namespace: mapped, name });
  }
}

function keyOf(ref: ObjectRef): ResourceKey {
  return { kind: 'Application', namespace: ref.namespace, name: ref.name };
}

function idOf(ref: ObjectRef): string {
  return `${ref.namespace}/${ref.name}`;
}

function triggerMark(hub: Application): string {
  const triggers = triggersOf(hub);
  return `|${Object.keys(triggers).length === 0 ? '' : digestOf(triggers)}`;
}

function operationMark(hub: Application): string {
  return hub.operation === undefined ? '' : digestOf(hub.operation);
}

/** Whether the agent reported that this operation runs. */
function isInProgress(hub: Application, digest: string): boolean {
  const state = hub.status?.operationState;
  return (state?.phase === 'Running' || state?.phase === 'Terminating') && digestOf(state.operation) === digest;
}
