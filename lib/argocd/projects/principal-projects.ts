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
import type { Listed, PrincipalKind, SourcePart } from '../parts/part.ts';

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
  readonly part: SourcePart;
}

/** Sends every agent the AppProjects that concern it. */
export class PrincipalProjects implements PrincipalKind<SourcePart> {
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

  part(agent: string): SourcePart {
    return this.#peer(agent).part;
  }

  /** The agent left the fleet. */
  forgetAgent(agent: string): void {
    this.#peers.get(agent)?.outbox.close();
    this.#peers.delete(agent);
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
      peer = { outbox, part: this.#part(agent, outbox, snapshots) };
      this.#peers.set(agent, peer);
      for (const project of this.#view.values()) outbox.changed(keyOf(refOf(project)));
    }
    return peer;
  }

  #part(agent: string, outbox: Outbox<AppProject>, snapshots: WeakMap<AppProject, Snapshot<AppProject>>): SourcePart {
    let connection: PeerConnection | undefined;
    let isOpen = false;
    const send = () => {
      const to = connection;
      if (isOpen && to) outbox.connected({ send: (delivery) => to.send(this.#messageFor(delivery)) });
    };
    const keyNamed = (name: string): ResourceKey => ({ kind: 'AppProject', namespace: this.#namespace, name });
    return {
      kind: 'AppProject',
      connected: (to) => {
        connection = to;
        outbox.disconnected();
        send();
      },
      disconnected: () => {
        connection = undefined;
        outbox.disconnected();
      },
      open: () => {
        isOpen = true;
        send();
      },
      writable: () => outbox.writable(),
      acknowledged: ({ resourceId, eventId }) => outbox.acknowledged(resourceId, eventId),
      receive: () => false,
      holds: ({ name, uid }: RequestUpdate) => {
        const key = keyNamed(name);
        if (uid === '' || outbox.held(key)?.uid !== uid) {
          outbox.peerHolds(key, uid === '' ? undefined : { uid, digest: undefined });
        }
        return this.#read(agent, key, snapshots) === undefined ? undefined : name;
      },
      lacks: (name) => outbox.peerHolds(keyNamed(name), undefined),
      list: () => {
        const listed: Listed[] = [];
        for (const { metadata } of this.#view.values()) {
          const { name, namespace = '' } = metadata;
          const uid = this.#read(agent, keyNamed(name), snapshots)?.uid;
          if (uid !== undefined) listed.push({ id: name, name, namespace, uid });
        }
        return listed;
      },
      stats: () => ({ pending: outbox.pending, inFlight: outbox.inFlight, queued: 0, retrying: 0 }),
      close: () => outbox.close(),
    };
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
