import {
  type Clock,
  type Delivery,
  Outbox,
  type ResourceKey,
  refOf,
  type Snapshot,
  type Store,
  systemClock,
  View,
} from '../../sync/index.ts';
import {
  isProjectForAgent,
  isUntouchedDefault,
  type Mapping,
  projectDigest,
  projectForAgent,
} from '../app-project-rules.ts';
import type { AppProject } from '../application.ts';
import type { SyncLog } from '../managed/log.ts';
import type { Message, PeerConnection, RequestUpdate } from '../managed/messages.ts';
import { annotations } from '../names.ts';

/** How {@link PrincipalProjects} works. */
export interface PrincipalProjectsOptions {
  /** The AppProjects of the principal's namespace. */
  readonly store: Store<AppProject>;
  readonly principalUid: string;
  readonly mapping: Mapping;
  readonly log: SyncLog;
  readonly clock?: Clock;
  readonly random?: () => number;
}

interface Peer {
  readonly outbox: Outbox<AppProject>;
  readonly snapshots: WeakMap<AppProject, Snapshot<AppProject>>;
  connection: PeerConnection | undefined;
}

/**
 * Sends every agent the AppProjects that concern it. Projects are few and agents cannot be asked what became of them, so
 * all are sent again at every connect; an agent that has them writes nothing.
 */
export class PrincipalProjects {
  readonly #options: PrincipalProjectsOptions;
  readonly #view: View<AppProject>;
  readonly #peers = new Map<string, Peer>();

  constructor(options: PrincipalProjectsOptions) {
    this.#options = options;
    this.#view = new View({
      clock: options.clock ?? systemClock,
      changed: (ref) => {
        for (const { outbox } of this.#peers.values()) outbox.changed(keyOf(ref));
      },
      // Nothing is created here, so what is known was in the cache.
      doubted: (ref) => options.log.debug({ appProject: ref.name }, 'not in the cache'),
    });
  }

  /** Follows the store until aborted. */
  start(signal: AbortSignal): void {
    const unfollow = this.#view.follow(this.#options.store);
    signal.addEventListener('abort', () => {
      unfollow();
      for (const { outbox } of this.#peers.values()) outbox.close();
    });
  }

  /** The agent is there; a newer connection takes the place of an older one. */
  connected(agent: string, connection: PeerConnection): void {
    const peer = this.#peer(agent);
    peer.connection = connection;
    peer.outbox.repeatAll();
    for (const project of this.#view.values()) peer.outbox.changed(keyOf(refOf(project)));
    peer.outbox.connected({ send: (delivery) => connection.send(this.#messageFor(delivery)) });
  }

  /** The connection is gone; ignored when a newer one has taken its place. */
  disconnected(agent: string, connection: PeerConnection): void {
    const peer = this.#peers.get(agent);
    if (peer?.connection !== connection) return;
    peer.connection = undefined;
    peer.outbox.disconnected();
  }

  /** The connection takes more after it had refused. */
  writable(agent: string): void {
    this.#peers.get(agent)?.outbox.writable();
  }

  /** The agent processed an event; false when it was none of these. */
  acknowledged(agent: string, event: { readonly resourceId: string; readonly eventId: string }): boolean {
    return this.#peers.get(agent)?.outbox.acknowledged(event.resourceId, event.eventId) ?? false;
  }

  /** The agent says which copy of a project it has. */
  holds(agent: string, { name, uid }: RequestUpdate): void {
    const peer = this.#peer(agent);
    const key: ResourceKey = { kind: 'AppProject', namespace: this.#namespace, name };
    const held = peer.outbox.held(key);
    if (held !== undefined && held.uid === uid) return;
    peer.outbox.peerHolds(key, uid === '' ? undefined : { uid, digest: undefined });
  }

  /** The agent left the fleet. */
  forgetAgent(agent: string): void {
    this.#peers.get(agent)?.outbox.close();
    this.#peers.delete(agent);
  }

  /** Projects that the agent has not acknowledged. */
  pending(agent: string): number {
    return this.#peers.get(agent)?.outbox.pending ?? 0;
  }

  get #namespace(): string {
    for (const { metadata } of this.#view.values()) return metadata.namespace ?? '';
    return '';
  }

  #peer(agent: string): Peer {
    let peer = this.#peers.get(agent);
    if (peer === undefined) {
      const snapshots = new WeakMap<AppProject, Snapshot<AppProject>>();
      const outbox = new Outbox<AppProject>({
        source: { read: (key) => this.#read(agent, key, snapshots) },
        clock: this.#options.clock ?? systemClock,
        random: this.#options.random ?? Math.random,
      });
      peer = { outbox, snapshots, connection: undefined };
      this.#peers.set(agent, peer);
    }
    return peer;
  }

  #read(
    agent: string,
    key: ResourceKey,
    snapshots: WeakMap<AppProject, Snapshot<AppProject>>,
  ): Snapshot<AppProject> | undefined {
    const project = this.#view.get(key);
    const { mapping } = this.#options;
    // A project that is itself a mirror belongs to an autonomous agent.
    if (project === undefined || project.metadata.annotations?.[annotations.sourceUid]) return undefined;
    if (project.metadata.deletionTimestamp !== undefined) return undefined;
    if (!isProjectForAgent(project, agent, mapping) && !isUntouchedDefault(project)) return undefined;
    let snapshot = snapshots.get(project);
    if (snapshot === undefined) {
      const object = projectForAgent(project, agent, mapping);
      const { uid = '', resourceVersion: version = '' } = project.metadata;
      snapshot = { uid, version, digest: projectDigest(object), object };
      snapshots.set(project, snapshot);
    }
    return snapshot;
  }

  #messageFor(delivery: Delivery<AppProject>): Message {
    const { key, resourceId, eventId } = delivery;
    const common = { target: 'appproject', resourceId, eventId, principalUid: this.#options.principalUid } as const;
    if (delivery.type === 'delete') {
      const { uid, version: resourceVersion } = delivery;
      const metadata = { name: key.name, namespace: key.namespace, uid, resourceVersion };
      return { ...common, type: 'delete', object: { metadata, spec: {} } };
    }
    const type = delivery.type === 'create' ? 'create' : 'spec-update';
    return { ...common, type, object: delivery.snapshot.object };
  }
}

function keyOf(ref: { readonly namespace: string; readonly name: string }): ResourceKey {
  return { kind: 'AppProject', namespace: ref.namespace, name: ref.name };
}
