import { type Collection, type Kinds, SimulatedCluster, VirtualTime } from '../../../simulation/index.ts';
import { jsonPatchOf, needsJsonPatch } from '../../base/index.ts';
import type { ObjectRef, Runtime, Store, StoreChange } from '../../sync/index.ts';
import {
  AgentSync,
  type Application,
  ApplicationCopies,
  type ApplicationCopiesOptions,
  type ApplicationMessage,
  HubApplications,
  type HubApplicationsOptions,
  HubSync,
  isSkipped,
  type Message,
  type PeerConnection,
} from '../index.ts';
import { joinPeers, messageName, type RecordedSide } from './join.ts';

/** The wall-clock time of a lab, so that tests know condition times. */
export const today = new Date('2026-01-02T03:04:05Z');

/**
 * A cluster's objects of one kind, Applications unless another one is named: a store without delay whose calls can be made
 * to fail, and whose objects nobody may change.
 */
export class LabCluster<K extends keyof Kinds = 'Application'> implements Store<Kinds[K]> {
  readonly objects: Collection<Kinds[K]>;
  /** Called before every call of the store; throws what the call is to fail with. */
  intercept: (call: 'read' | 'create' | 'patch' | 'delete', ref: ObjectRef) => void = () => undefined;
  /** Writes through the store. */
  writes = 0;
  readonly #listeners = new Set<(change: StoreChange<Kinds[K]>) => void>();
  #isWatchBroken = false;
  /** Objects that the cache does not show, as those that a label selector leaves out. */
  isHidden: (object: Kinds[K]) => boolean = () => false;

  /** How late a change reaches the cache, in milliseconds. */
  lagMs = 0;

  constructor(name: string, time: VirtualTime, kind: K = 'Application' as K) {
    this.objects = new SimulatedCluster(name, time).of(kind);
    this.objects.watch(({ old, now }) => {
      const before = old === undefined || this.isHidden(old) ? undefined : old;
      const after = now === undefined || this.isHidden(now) ? undefined : now;
      if (before === undefined && after === undefined) {
        return;
      }
      // Like a watch with a selector, which gives the version at which an object left it.
      const resourceVersion = now?.metadata.resourceVersion ?? old?.metadata.resourceVersion ?? '';
      const last = before && { ...before, metadata: { ...before.metadata, resourceVersion } };
      const change = frozen({ old: after === undefined ? last : before, now: after });
      if (this.lagMs > 0) {
        time.after(this.lagMs, () => this.#notify(change));
      } else {
        this.#notify(change);
      }
    });
  }

  /** The watch breaks. When the returned function is called, a list shows what is different since then. */
  breakWatch(): () => void {
    const before = new Map(this.objects.list().map((object) => [object.metadata.uid, object]));
    this.#isWatchBroken = true;
    return () => {
      this.#isWatchBroken = false;
      const listed = this.objects.list();
      const gone = [...before.values()].filter(({ metadata }) =>
        listed.every((now) => now.metadata.uid !== metadata.uid),
      );
      for (const old of gone) {
        this.#notify(frozen({ old, now: undefined }));
      }
      for (const now of listed) {
        const old = before.get(now.metadata.uid);
        if (old !== now) {
          this.#notify(frozen({ old, now, gap: old === undefined ? undefined : 'list' }));
        }
      }
    };
  }

  #notify(change: StoreChange<Kinds[K]>): void {
    if (this.#isWatchBroken) {
      return;
    }
    for (const listener of this.#listeners) {
      listener(change);
    }
  }

  subscribe(listener: (change: StoreChange<Kinds[K]>) => void): () => void {
    this.#listeners.add(listener);
    for (const now of this.objects.list()) {
      if (!this.isHidden(now)) {
        listener(frozen({ old: undefined, now }));
      }
    }
    return () => this.#listeners.delete(listener);
  }

  async read(ref: ObjectRef): Promise<Kinds[K] | undefined> {
    this.intercept('read', ref);
    return frozen(this.objects.get(ref));
  }

  async create(object: Kinds[K]): Promise<Kinds[K]> {
    this.intercept('create', { namespace: object.metadata.namespace ?? '', name: object.metadata.name });
    this.writes++;
    return frozen(this.objects.create(object));
  }

  async patch(ref: ObjectRef, patch: Readonly<Record<string, unknown>>): Promise<Kinds[K]> {
    this.intercept('patch', ref);
    this.writes++;
    const now = this.objects.get(ref);
    // As KubeClient.patch does it.
    const changed =
      now !== undefined && needsJsonPatch(patch)
        ? this.objects.jsonPatch(ref, jsonPatchOf(now, patch))
        : this.objects.patch(ref, patch);
    return frozen(changed);
  }

  async delete(ref: ObjectRef, options: { uid: string; propagation: 'Foreground' | 'Background' }): Promise<void> {
    this.intercept('delete', ref);
    this.writes++;
    this.objects.delete(ref, options);
  }
}

/** One hub, clusters and virtual time; nothing fails and nothing takes time unless a test makes it so. */
export class Lab {
  readonly time = new VirtualTime();
  readonly hub = new LabCluster('hub', this.time);
  /** What was logged. */
  readonly log: { readonly level: string; readonly fields: object; readonly message: string }[] = [];

  /** Runs what is due, then lets `ms` milliseconds pass. */
  async run(ms = 0): Promise<void> {
    this.time.after(0, () => undefined);
    await this.time.runUntil(this.time.now() + ms, 100_000);
  }

  /** A principal on the hub. */
  principal(more: Partial<HubApplicationsOptions> = {}): LabPrincipal {
    return new LabPrincipal(this, more);
  }

  /** An agent on a cluster of its own. */
  agent(
    more: Partial<ApplicationCopiesOptions> = {},
    cluster: LabCluster = new LabCluster('agent', this.time),
  ): LabAgent {
    return new LabAgent(this, cluster, more);
  }

  /** Joins the two by a connection that loses nothing, until the returned function is called. */
  join(principal: LabPrincipal, agent: LabAgent, name = 'a'): () => void {
    return joinPeers(this.time, principal, agent, { name, mode: 'managed' });
  }

  /** What both kinds of programs need. */
  common(who: string) {
    const record = (level: string) => (fields: object, message: string) =>
      void this.log.push({ level, fields, message });
    let ids = 0;
    const runtime: Runtime = {
      log: { debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') },
      clock: this.time,
      random: () => 0.5,
      newId: () => `${who}${++ids}`,
      today: () => today,
    };
    return { runtime };
  }
}

/** A principal, alone or joined with agents. */
export class LabPrincipal implements RecordedSide {
  readonly sent: Message[] = [];
  readonly acknowledged: string[] = [];
  readonly applications: HubApplications;
  readonly sync: HubSync;
  readonly stop = new AbortController();

  constructor(lab: Lab, more: Partial<HubApplicationsOptions>) {
    const common = lab.common('p');
    const options = { applications: lab.hub, principalUid: 'p', ...common, ...more };
    this.applications = new HubApplications({
      agentOf: (application) => (isSkipped(application) ? undefined : application.metadata.namespace),
      ...options,
    });
    this.sync = new HubSync({ managed: [this.applications], ...common });
    this.sync.start(this.stop.signal);
  }

  /** A peer that acknowledges everything at once and sends only what the test sends. */
  connect(agent: string): PeerConnection {
    const connection: PeerConnection = {
      send: (message) => {
        this.sent.push(message);
        this.sync.acknowledged(agent, message);
        return true;
      },
      acknowledge: (message) => void this.acknowledged.push(messageName(message)),
    };
    this.sync.connected(agent, 'managed', connection);
    return connection;
  }
}

/** An agent, alone or joined with a principal. */
export class LabAgent implements RecordedSide {
  readonly sent: Message[] = [];
  readonly acknowledged: string[] = [];
  readonly cluster: LabCluster;
  readonly applications: ApplicationCopies;
  readonly sync: AgentSync;
  readonly stop = new AbortController();

  constructor(lab: Lab, cluster: LabCluster, more: Partial<ApplicationCopiesOptions>) {
    this.cluster = cluster;
    const common = lab.common('a');
    this.applications = new ApplicationCopies({
      applications: cluster,
      namespace: 'argocd',
      mismatchPolicy: 'recreate',
      adoptionPolicy: 'always',
      onRecreate: 'ignore',
      ...common,
      ...more,
    });
    this.sync = new AgentSync({ mode: 'managed', kinds: [this.applications], ...common });
    this.sync.start(this.stop.signal);
  }

  /** A peer that acknowledges everything at once and sends only what the test sends. */
  connect(principalNamespace = 'argocd'): PeerConnection {
    const connection: PeerConnection = {
      send: (message) => {
        this.sent.push(message);
        this.sync.acknowledged(message);
        return true;
      },
      acknowledge: (message) => void this.acknowledged.push(messageName(message)),
    };
    this.sync.connected(connection, { agent: 'a', principalNamespace });
    return connection;
  }

  /** The copy of this name. */
  copy(name = 'shop', namespace = 'argocd'): Application | undefined {
    return this.cluster.objects.get({ namespace, name });
  }
}

/** An Application as a user makes it on the hub. */
export function hubApplication(
  metadata: Partial<Application['metadata']> = {},
  rest: Partial<Application> = {},
): Application {
  return {
    metadata: { namespace: 'a', name: 'shop', ...metadata },
    spec: { project: 'default', source: { path: 'p0' }, destination: { name: 'a', namespace: 'shop' } },
    ...rest,
  };
}

/** The messages about Applications of a type. */
export function sentMessages(talk: RecordedSide, type: ApplicationMessage['type']): ApplicationMessage[] {
  return talk.sent.filter(
    (message): message is ApplicationMessage => message.target === 'application' && message.type === type,
  );
}

/** Objects of a cache belong to it: a write to one throws. */
function frozen<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) {
      frozen(item);
    }
  }
  return value;
}
