import { isEqual, type Logger, type MergePatch } from '../../../base/index.ts';
import {
  type Clock,
  failureOf,
  type InboxOutcome,
  type ObjectRef,
  type ResourceKey,
  type Runtime,
  refOf,
  type Snapshot,
  type Store,
  type StoreChange,
  type Tuning,
  View,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { ApplicationsByUrl } from '../../applications-by-url.ts';
import { asAsking, asksForWorkload } from '../../leaving.ts';
import { annotations, skipSyncLabel } from '../../names.ts';
import { InstanceNames } from '../../owner-marks.ts';
import type { HubKind, SourceSync } from '../../peer/kind-sync.ts';
import { placeOf } from '../../place.ts';
import { isSkipped } from '../../routing.ts';
import { managedCopyDigest, sentApplication, sourceUidOf } from '../copy.ts';
import { planAgentError, planReport, ranUnreported } from '../status.ts';
import { AgentApplications, type Left, type ReportedRef } from './agent-applications.ts';
import { type AgentReport, type DeliveredRequests, operationMark, triggerMark } from './agent-report.ts';
import { Assignments } from './assignments.ts';
import { DisconnectedAgents } from './disconnected-agents.ts';
import { HubWarnings } from './hub-warnings.ts';
import { HubWriter } from './hub-writer.ts';
import { deliveredTo, RequestTracker } from './request-tracker.ts';

/** How a {@link HubApplications} works. */
export interface HubApplicationsOptions {
  readonly applications: Store<Application>;
  /** The principal's persistent identity. */
  readonly principalUid: string;
  /**
   * The agent that an Application belongs to; undefined when it belongs to none or takes no part in synchronisation. The
   * answer depends on the object alone, and on what its URL means ({@link UrlOptions}). The agent need not exist:
   * {@link HubApplications.syncFor} is called for those that do.
   */
  readonly agentOf: (application: Application) => string | undefined;
  /** How URLs decide whose Applications are. Default: none does. */
  readonly byUrl?: UrlOptions | undefined;
  /**
   * Whether the hub's AppProject lets an agent have an Application of its own. While it does not, the agent gets nothing new of it,
   * and keeps the copy that it has. Report a change to {@link HubApplications.permissionsChanged}. Default: it does.
   */
  readonly permits?: (application: Application, agent: string) => boolean;
  /** Namespace on the hub of what is in a namespace of an agent's cluster. Default: the agent's name. */
  readonly namespaceOf?: (agent: string, local: string) => string;
  /** When a managed agent was connected last, if that is known. Known: it was a managed agent. */
  readonly lastSeen?: (agent: string) => Date | undefined;
  /**
   * Why nobody deploys an Application, as far as the hub knows. The agent is undefined when it belongs to none. Report a
   * change to {@link HubApplications.permissionsChanged}. Default: no reason is known.
   */
  readonly notice?: (application: Application, agent: string | undefined) => string | undefined;
  /**
   * Whether this principal writes notices on an Application: another one may have its agent. Report that it has become so with
   * {@link HubApplications.responsibleFor}. Default: it does.
   */
  readonly isResponsible?: ((application: Application) => boolean) | undefined;
  /** How Applications show that their agent is not connected. Default: not at all. */
  readonly disconnection?: DisconnectionOptions | undefined;
  /** Called when an agent has an Application that the hub does not have and that was made for another principal. */
  readonly onForeign?: ((agent: string, application: ObjectRef) => void) | undefined;
  /**
   * Called when the hub's API server has refused for a while what an agent reports about an Application, once per reason: the
   * refusal may be of every write, so that the Application cannot show it.
   */
  readonly onRefused?: ((agent: string, application: ObjectRef, reason: string) => void) | undefined;
  /** Waits until the agent may write again; called before each of its messages is processed. Default: no wait. */
  readonly pace?: ((agent: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** How the URLs of clusters decide whose Applications are. What a URL means changes only as {@link HubApplications.reroute} says. */
export interface UrlOptions {
  /** The URL that decides about an Application; undefined when none does. */
  readonly urlOf: (application: Application) => string | undefined;
  /**
   * Whether nobody knows now whose an Application is. It belongs to no agent then, and an agent that has a copy keeps it as it is: no
   * user has taken it away.
   */
  readonly isUndecided: (application: Application) => boolean;
}

/** How the hub's Applications, mirrors included, show that the agent that reports their status is not connected. */
export interface DisconnectionOptions {
  /** For how long an agent may be without a connection; 0: for ever. */
  readonly graceMs: number;
  /** The agents of the fleet at the start. Report others to {@link HubApplications.expect}. */
  readonly members: () => Iterable<string>;
  /** When an agent of either mode was connected last, if that is known. The answer outlives the process. */
  readonly lastSeen: (agent: string) => Date | undefined;
  /** The autonomous agent whose Application a mirror shows; undefined for any other Application. Default: there are none. */
  readonly agentOfMirror?: (application: Application) => string | undefined;
  /** Names of the Applications in the namespace of an agent, if mirrors are no agent's by `agentOf`. Default: none. */
  readonly namesIn?: (agent: string) => ReadonlySet<string>;
}

/** An agent that has been without a connection for longer than the grace period. */
export interface DisconnectedAgent {
  readonly agent: string;
  /** How many Applications of the hub show what it reported last. */
  readonly applications: number;
}

/**
 * The hub's side of managed mode, for all agents: sends every agent its Applications as they are now, passes on what
 * users ask of Argo CD (sync, terminate, refresh), and writes what agents report. It knows a store, connections and a
 * clock, no Kubernetes and no gRPC.
 */
export class HubApplications implements HubKind<SourceSync> {
  readonly #options: HubApplicationsOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #view: View<Application>;
  readonly #stop = new AbortController();
  /** Agents that were connected since this process runs. Of others nothing is to be remembered. */
  readonly #peers = new Map<string, AgentApplications>();
  readonly #snapshots = new WeakMap<Application, Snapshot<Application>>();
  readonly #assignments = new Assignments();
  readonly #byUrl: ApplicationsByUrl | undefined;
  /** Agents that may keep a copy of an Application while nobody knows whose it is. */
  readonly #keepers = new Map<string, Set<string>>();
  readonly #instances = new InstanceNames();
  readonly #requests = new RequestTracker();
  readonly #writer: HubWriter;
  readonly #warnings: HubWarnings;
  readonly #disconnected: DisconnectedAgents;

  constructor(options: HubApplicationsOptions) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#log = options.runtime.log;
    this.#byUrl = options.byUrl && new ApplicationsByUrl(options.byUrl.urlOf);
    this.#view = new View({
      clock: this.#clock,
      changed: (ref, change) => this.#hubChange(ref, change),
      doubted: (ref) => void this.#writer.check(ref, this.#stop.signal),
    });
    this.#writer = new HubWriter({ store: options.applications, view: this.#view, log: this.#log });
    const { disconnection } = options;
    const reporterOf = (application: Application) =>
      options.agentOf(application) ?? disconnection?.agentOfMirror?.(application);
    this.#disconnected = new DisconnectedAgents({
      graceMs: disconnection?.graceMs ?? 0,
      lastSeen: disconnection?.lastSeen ?? (() => undefined),
      changed: (agent) => {
        for (const hub of this.#shownOf(agent)) {
          this.#warnings.disconnectionChanged(hub);
        }
      },
      runtime: options.runtime,
    });
    this.#warnings = new HubWarnings({
      writer: this.#writer,
      agentOf: options.agentOf,
      lastSeen: options.lastSeen ?? (() => undefined),
      notice: options.notice ?? (() => undefined),
      disconnection: {
        read: (ref) => this.#view.get(ref),
        reporterOf,
        mayTell: (application, agent) =>
          disconnection?.agentOfMirror?.(application) === agent || options.permits?.(application, agent) !== false,
        isResponsible: options.isResponsible,
        agents: this.#disconnected,
      },
      runtime: options.runtime,
    });
  }

  /** Starts to follow the store. Call it when the store's cache is filled, and before the first connection. */
  start(signal: AbortSignal): void {
    // Before anything is read: what an earlier process wrote stays for the time that agents have to come back.
    for (const agent of this.#options.disconnection?.members() ?? []) {
      this.#disconnected.expect(agent);
    }
    const unfollow = this.#view.follow(this.#options.applications);
    signal.addEventListener('abort', () => {
      unfollow();
      this.#stop.abort();
      this.#disconnected.close();
      this.#warnings.close();
      for (const peer of this.#peers.values()) {
        peer.close();
      }
    });
  }

  /**
   * What decides about permissions and notices has changed for an agent, or for the Applications of an AppProject: they are looked
   * at again.
   */
  permissionsChanged(of: { readonly agent: string } | { readonly projects: (name: string) => boolean }): void {
    const { agentOf } = this.#options;
    const follow = (hub: Application) => {
      const agent = agentOf(hub);
      this.#warnings.follow(refOf(hub), hub, agent, agent);
      if (agent !== undefined) {
        this.#peers.get(agent)?.changed(keyOf(refOf(hub)));
      }
    };
    if ('agent' in of) {
      for (const key of [...this.#assignments.of(of.agent)]) {
        const hub = this.#view.get(key);
        if (hub !== undefined) {
          follow(hub);
        }
      }
      return;
    }
    for (const hub of this.#view.values()) {
      if (of.projects(hub.spec.project || 'default')) {
        follow(hub);
      }
    }
  }

  /**
   * What a URL means is about to change. Call the returned function when it has changed, before anything else happens: each
   * Application that this URL decides about is judged again.
   */
  reroute(url: string): () => void {
    const { agentOf } = this.#options;
    const concerned = (this.#byUrl?.of(url) ?? []).map((hub) => ({ hub, before: agentOf(hub) }));
    return () => {
      for (const { hub, before } of concerned) {
        this.#judge(refOf(hub), { old: hub, now: hub, gap: undefined }, before, agentOf(hub));
      }
    };
  }

  /** The agent has come into the fleet: unless it is connected, its absence is shown after the grace period. */
  expect(agent: string): void {
    this.#disconnected.expect(agent);
  }

  /** An agent connected or disconnected. Call it for autonomous agents; of managed ones it is known. */
  presenceChanged(agent: string, isThere: boolean): void {
    if (isThere) {
      this.#disconnected.connected(agent);
    } else {
      this.#disconnected.disconnected(agent);
    }
  }

  /** Another principal has a connection of an agent, or has it no longer. `isManaged`: it is a managed agent. */
  servedElsewhere(agent: string, isServed: boolean, isManaged: boolean): void {
    this.presenceChanged(agent, isServed);
    if (isManaged) {
      this.#warnings.servedElsewhere(agent, isServed);
    }
  }

  /** This principal is responsible from now on for the Applications of an agent; undefined: for all that nobody else has. */
  responsibleFor(agent: string | undefined): void {
    const { agentOf } = this.#options;
    for (const hub of agent === undefined ? this.#view.values() : this.#shownOf(agent)) {
      const its = agentOf(hub);
      this.#warnings.follow(refOf(hub), hub, its, its);
    }
  }

  /** The agents whose absence is shown. */
  disconnectedAgents(): DisconnectedAgent[] {
    const { disconnection } = this.#options;
    return Array.from(this.#disconnected.names(), (agent) => ({
      agent,
      applications: this.#assignments.count(agent) + (disconnection?.namesIn?.(agent).size ?? 0),
    }));
  }

  /** Whether the hub has an Application that Argo CD's instance label would name so. */
  isInstance(instance: string): boolean {
    return this.#instances.has(instance);
  }

  /** What is between the hub and one agent. */
  syncFor(agent: string): SourceSync {
    return this.#peers.get(agent) ?? this.#newPeer(agent);
  }

  /** The agent was detached: its state here is dropped; objects stay. */
  forgetAgent(agent: string): void {
    this.#peers.get(agent)?.close();
    this.#peers.delete(agent);
    this.#warnings.forgetAgent(agent);
    this.#disconnected.forgetAgent(agent);
    for (const key of this.#assignments.of(agent)) {
      this.#requests.forget(key);
    }
  }

  /** Another principal serves the agent, or may: what this one has of it is dropped. */
  releaseAgent(agent: string): void {
    this.#peers.get(agent)?.close();
    this.#peers.delete(agent);
    this.#warnings.releaseAgent(agent);
    for (const key of this.#assignments.of(agent)) {
      this.#requests.forget(key);
    }
  }

  #newPeer(agent: string): AgentApplications {
    const peer = new AgentApplications({
      agent,
      principalUid: this.#options.principalUid,
      read: (key) => this.#snapshot(agent, key),
      withholds: (key) => this.#withholds(agent, key),
      denies: (key) => this.#denies(agent, key),
      keys: () => this.#assignments.of(agent),
      count: () => this.#assignments.count(agent),
      left: (key, uid, signal) => this.#left(agent, key, uid, signal),
      asksForWorkload: (key, uid) => {
        const hub = this.#view.get(key);
        return hub !== undefined && sourceUidOf(hub) === uid && asksForWorkload(hub);
      },
      delivered: (key) => this.#delivered(agent, key),
      hasShown: (key, startedAt) => {
        const hub = this.#view.get(key);
        return hub !== undefined && this.#requests.hasShown(hub, key, startedAt);
      },
      apply: (report, signal) => this.#apply(agent, report, signal),
      hubKey: (reported) => this.#hubKey(agent, reported),
      refused: (key, reason) => this.#reportRefused(agent, key, reason),
      foundForeign: (key) => this.#foundForeign(agent, key),
      presenceChanged: (isThere) => this.#managedPresenceChanged(agent, isThere),
      runtime: this.#options.runtime,
      tuning: this.#options.tuning,
    });
    this.#peers.set(agent, peer);
    for (const key of this.#assignments.of(agent)) {
      const hub = this.#view.get(key);
      if (hub !== undefined) {
        this.#requests.follow(peer, key, hub);
        peer.changed(key);
      }
    }
    return peer;
  }

  #snapshot(agent: string, key: ResourceKey): Snapshot<Application> | undefined {
    const hub = this.#view.get(key);
    if (hub === undefined || this.#options.agentOf(hub) !== agent) {
      return undefined;
    }
    let snapshot = this.#snapshots.get(hub);
    if (snapshot === undefined) {
      snapshot = this.#snapshotOf(hub);
      this.#snapshots.set(hub, snapshot);
    }
    return snapshot;
  }

  /** A deletion is never withheld: it takes rights away. */
  #withholds(agent: string, key: ResourceKey): boolean {
    const hub = this.#view.get(key);
    if (hub === undefined || hub.metadata.deletionTimestamp !== undefined) {
      return false;
    }
    if (this.#isUndecided(hub)) {
      const place = placeOf(key);
      this.#keepers.set(place, (this.#keepers.get(place) ?? new Set()).add(agent));
      return true;
    }
    return this.#denies(agent, key);
  }

  #isUndecided(hub: Application): boolean {
    return this.#options.byUrl?.isUndecided(hub) === true;
  }

  #denies(agent: string, key: ResourceKey): boolean {
    const hub = this.#view.get(key);
    return hub !== undefined && this.#options.agentOf(hub) === agent && this.#options.permits?.(hub, agent) === false;
  }

  #snapshotOf(hub: Application): Snapshot<Application> {
    const object = sentApplication(hub, (instance) => this.isInstance(instance));
    return {
      uid: sourceUidOf(hub),
      version: this.#view.versionOf(hub),
      digest: `${managedCopyDigest(object)}${triggerMark(hub)}`,
      object,
    };
  }

  /**
   * The last state of what an agent should not have any more. One that is kept out of the cache, as by its labels, is read: it may
   * ask for the deletion of its workload, where what is gone does not. One that may not be read is taken for one that is there
   * and asks for nothing.
   */
  async #left(agent: string, key: ResourceKey, uid: string, signal: AbortSignal): Promise<Left | undefined> {
    const known = this.#view.get(key);
    const hub = known ?? (await this.#readLeft(key, signal));
    if (hub === 'unreadable') {
      return { metadata: { namespace: key.namespace, name: key.name } };
    }
    if (hub === undefined || sourceUidOf(hub) !== uid) {
      return undefined;
    }
    if (known === undefined && this.#options.agentOf(hub) === agent) {
      throw new Error('the agent should have it after all');
    }
    return asAsking(hub);
  }

  async #readLeft(key: ResourceKey, signal: AbortSignal): Promise<Application | 'unreadable' | undefined> {
    try {
      return await this.#options.applications.read({ namespace: key.namespace, name: key.name }, signal);
    } catch (error) {
      if (failureOf(error) === 'rejected') {
        this.#log.warn(
          { application: placeOf(key), error },
          'Application that leaves cannot be read, what it deployed stays',
        );
        return 'unreadable';
      }
      throw error;
    }
  }

  #hubChange(ref: ObjectRef, change: StoreChange<Application>): void {
    const { old, now } = change;
    if ((old === undefined) !== (now === undefined)) {
      this.#instances.count(ref, now === undefined ? -1 : 1);
    }
    this.#byUrl?.move(old, now);
    const { agentOf } = this.#options;
    this.#judge(ref, change, old && agentOf(old), now && agentOf(now));
  }

  /** Does what follows from a change of an Application, or of what its URL means, for the agents that had it and have it. */
  #judge(
    ref: ObjectRef,
    { old, now, gap }: StoreChange<Application>,
    before: string | undefined,
    agent: string | undefined,
  ): void {
    const key = keyOf(ref);
    const isKept = now?.metadata.deletionTimestamp === undefined && now !== undefined && this.#isUndecided(now);
    if (!isKept) {
      this.#decided(key, old, now, agent);
    }
    this.#assignments.move(ref, before, agent);
    this.#warnings.follow(ref, now, before, agent);
    if (before !== agent || agent === undefined) {
      this.#requests.forget(ref);
    }
    if (before !== undefined && before !== agent) {
      const peer = this.#peers.get(before);
      // Else it was deleted by its user, and the agent was through with it.
      if (peer !== undefined && old?.metadata.deletionTimestamp === undefined) {
        if (isKept) {
          const message =
            'Application names a cluster by a URL of no cluster Secret, or of several: its copy stays as it is';
          this.#log.info({ agent: before, application: placeOf(ref) }, message);
        } else {
          this.#logRemoval(ref, now, before);
        }
      }
      peer?.withdraw(key, 'set-operation');
      peer?.withdraw(key, 'terminate-operation');
      if (!isKept) {
        this.#part(peer, key, old, now);
      }
      peer?.changed(key);
    }
    const peer = agent === undefined ? undefined : this.#peers.get(agent);
    if (now === undefined || peer === undefined) {
      return;
    }
    this.#requests.follow(peer, key, now);
    // In a gap of the watch it may have been another agent's and have come back.
    const mayHaveReturned = gap !== undefined && !isEqual(old?.status, now.status);
    if (old !== undefined && (before !== agent || mayHaveReturned)) {
      // It may carry the status of the other agent: if this one has it still, it has to report again.
      peer.repeat(key);
    } else {
      peer.changed(key);
    }
  }

  /** It is known whose an Application is, or it is gone: what agents have kept of it till now goes by the usual rules. */
  #decided(
    key: ResourceKey,
    old: Application | undefined,
    now: Application | undefined,
    agent: string | undefined,
  ): void {
    const keepers = this.#keepers.get(placeOf(key)) ?? [];
    this.#keepers.delete(placeOf(key));
    for (const keeper of keepers) {
      const peer = this.#peers.get(keeper);
      if (keeper !== agent && peer !== undefined) {
        this.#logRemoval({ namespace: key.namespace, name: key.name }, now, keeper);
        this.#part(peer, key, old, now);
        peer.changed(key);
      }
    }
  }

  /** The agent may have a copy with a finalizer that the Application had no more when it left. */
  #part(
    peer: AgentApplications | undefined,
    key: ResourceKey,
    old: Application | undefined,
    now: Application | undefined,
  ): void {
    const isGoing = old?.metadata.deletionTimestamp !== undefined;
    const left = now ?? old;
    if (peer === undefined || old === undefined || left === undefined || isGoing) {
      return;
    }
    if (!asksForWorkload(left)) {
      const last = withFinalizers(old, asAsking(left).metadata.finalizers);
      peer.left(key, this.#snapshotOf(last));
    } else if (now === undefined) {
      peer.vanished(key, sourceUidOf(old));
    }
  }

  async #apply(agent: string, report: AgentReport, signal: AbortSignal): Promise<InboxOutcome> {
    await this.#options.pace?.(agent, signal);
    const plan = (hub: Application | undefined) => {
      if (hub !== undefined && this.#options.agentOf(hub) === agent) {
        return this.#patchFor(agent, hub, report);
      }
      this.#strayed(agent, report.key, report.message);
      return undefined;
    };
    return this.#writer.run(report.key, plan, signal);
  }

  #patchFor(agent: string, hub: Application, report: AgentReport): MergePatch | undefined {
    const { message } = report;
    if (message.type === 'error') {
      return planAgentError(hub, agent, message.error.message, this.#options.runtime.today?.() ?? new Date());
    }
    const source = message.object.metadata.annotations?.[annotations.sourceUid];
    if (source !== undefined && source !== sourceUidOf(hub)) {
      this.#strayed(agent, keyOf(refOf(hub)), message);
      return undefined;
    }
    if (message.type === 'delete') {
      return this.#releaseDeleted(agent, hub);
    }
    if (source !== undefined) {
      this.#peers.get(agent)?.seen(report.key, source);
      if (hub.metadata.deletionTimestamp !== undefined && message.object.metadata.deletionTimestamp === undefined) {
        this.#peers.get(agent)?.alive(report.key, source);
      }
    }
    // After a restart the principal requests again what was not reported as finished. This report may be of its end.
    const hasShown = (time: string) => this.#requests.hasShown(hub, keyOf(refOf(hub)), time);
    const isDone = ranUnreported(hub, message.object, hasShown);
    if (isDone) {
      this.#peers.get(agent)?.withdraw(report.key, 'set-operation');
    }
    const patch = planReport(hub, message.object, {
      operationDelivered: isDone || report.delivered.operation === operationMark(hub),
      triggersDelivered: report.delivered.triggers === triggerMark(hub),
      terminating: report.terminating,
      hasShown,
    });
    this.#requests.reported(hub, keyOf(refOf(hub)), message.object, patch?.operation !== undefined);
    return patch;
  }

  /**
   * The agent reports about something that it should not have: it may have made it after the hub's object was gone, from
   * a message of before. The outbox sends what it should have instead, or the deletion.
   */
  #strayed(agent: string, key: ResourceKey, message: AgentReport['message']): void {
    if (message.type === 'delete') {
      this.#warnings.departed(key, agent);
      return;
    }
    if (message.type !== 'status-update') {
      return;
    }
    const { annotations: marks, deletionTimestamp } = message.object.metadata;
    const uid = marks?.[annotations.sourceUid];
    if (uid !== undefined && deletionTimestamp !== undefined) {
      this.#warnings.departing(key, agent, uid);
    } else {
      this.#warnings.departed(key, agent);
    }
    if (uid !== undefined) {
      const hub = this.#view.get(key);
      if (hub === undefined || !this.#isUndecided(hub)) {
        this.#log.info({ agent, application: placeOf(key) }, 'the agent has an Application that it should not have');
      }
      this.#peers.get(agent)?.peerHolds(key, { uid }, marks?.[annotations.principalUid]);
    }
  }

  #reportRefused(agent: string, { namespace, name }: ResourceKey, reason: string | undefined): void {
    const ref = { namespace, name };
    this.#warnings.reportRefused(ref, agent, reason);
    if (reason !== undefined) {
      this.#options.onRefused?.(agent, ref, reason);
    }
  }

  #foundForeign(agent: string, key: ResourceKey): void {
    this.#log.warn({ agent, application: placeOf(key) }, 'the agent keeps an Application of another principal');
    this.#options.onForeign?.(agent, { namespace: key.namespace, name: key.name });
  }

  /** The Applications that may show what an agent reports. */
  *#shownOf(agent: string): Generator<Application> {
    const names = this.#options.disconnection?.namesIn?.(agent) ?? [];
    const mirrors = Array.from(names, (name) => ({ namespace: agent, name }));
    for (const ref of [...this.#assignments.of(agent), ...mirrors]) {
      const hub = this.#view.get(ref);
      if (hub !== undefined) {
        yield hub;
      }
    }
  }

  #managedPresenceChanged(agent: string, isThere: boolean): void {
    this.presenceChanged(agent, isThere);
    if (!isThere) {
      this.#warnings.disconnected(agent);
      return;
    }
    // It may have finished a removal without being able to report it: it answers when it has nothing to delete.
    for (const { ref, sourceUid } of this.#warnings.connected(agent)) {
      this.#peers.get(agent)?.peerHolds(keyOf(ref), { uid: sourceUid });
    }
  }

  /** Workloads may be deleted with a copy, so each removal is logged. */
  #logRemoval(ref: ObjectRef, now: Application | undefined, agent: string): void {
    const why =
      now === undefined
        ? 'is gone on the hub, or not selected there any more'
        : isSkipped(now)
          ? `is taken out of synchronisation by the label ${skipSyncLabel}`
          : 'goes to another cluster, or to none';
    const what =
      now === undefined
        ? 'what it deployed there stays, unless it still asks for its removal'
        : asksForWorkload(now)
          ? 'and Argo CD there removes what it deployed'
          : 'what it deployed there stays';
    this.#log.info({ agent, application: placeOf(ref) }, `Application ${why}: its copy is deleted, ${what}`);
  }

  /** The agent has no copy any more. A hub object that is being deleted was waiting for that. */
  #releaseDeleted(agent: string, hub: Application): MergePatch | undefined {
    if (hub.metadata.deletionTimestamp === undefined) {
      this.#log.warn({ agent, application: placeOf(refOf(hub)) }, 'the agent lost an Application; it is sent again');
      this.#peers.get(agent)?.peerHolds(keyOf(refOf(hub)), undefined);
      return undefined;
    }
    this.#log.info({ agent, application: placeOf(refOf(hub)) }, 'Application is gone on the managed cluster');
    return { metadata: { uid: hub.metadata.uid, finalizers: null } };
  }

  #delivered(agent: string, key: ResourceKey): DeliveredRequests {
    const hub = this.#view.get(key);
    const peer = this.#peers.get(agent);
    if (hub === undefined || peer === undefined) {
      return { operation: undefined, triggers: undefined };
    }
    return deliveredTo(peer, key, hub);
  }

  /** Agents report either side's namespace, a Go agent sometimes the wrong one: the hub's own Application counts first. */
  #hubKey(agent: string, { name, namespace, remapped }: ReportedRef): ResourceKey {
    const mapped = this.#options.namespaceOf?.(agent, namespace) ?? agent;
    const hub = this.#view.get({ namespace, name });
    return !remapped && hub !== undefined && this.#options.agentOf(hub) === agent
      ? keyOf({ namespace, name })
      : keyOf({ namespace: mapped, name });
  }
}

function withFinalizers(hub: Application, finalizers: readonly string[] = []): Application {
  return { ...hub, metadata: { ...hub.metadata, finalizers: [...finalizers] } };
}

function keyOf(ref: ObjectRef): ResourceKey {
  return { kind: 'Application', namespace: ref.namespace, name: ref.name };
}
