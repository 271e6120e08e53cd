import { randomUUID } from 'node:crypto';
import type { Pace } from './event-writer.ts';
import { extensionOf, type GoEvent, goPayload, targetOf, typeOf } from './go-event.ts';
import { GoListener } from './go-listener.ts';
import type { GoPeer, GoTls } from './go-peer.ts';
import { GoObjects, type GoStream, type GoTarget } from './go-side.ts';
import type { Fields } from './protobuf.ts';
import { aboutObject, type GoObject, goChecksum, goListChecksum, recordedEvent, withPayload } from './templates.ts';

const refresh = 'argocd.argoproj.io/refresh';
const toAgent = { dir: 'principal->agent', agent: 'agent-managed' } as const;

const targets = ['application', 'appproject', 'repository', 'gpgkey'] as const;
/** Where each type of event is recorded. */
const recordings = {
  application: 'app-managed',
  appproject: 'appproject',
  repository: 'repository',
  gpgkey: 'gpgkey',
} as const;

/**
 * The original's principal with one managed agent, played from recordings: what it sends are recorded messages about other
 * objects, what it does with what it gets are the original's rules, and its hub is a map. It takes only agents of its own
 * version, loses its queues when it restarts, and sends again what it has sent when in doubt.
 */
export class GoPrincipal {
  readonly agent: string;
  readonly namespace = 'argocd-principal';
  readonly uid = randomUUID();
  readonly #objects = new GoObjects(targets, 2_000);
  readonly hub = this.#objects.maps;
  readonly #listener: GoListener;

  constructor(options: { go: GoPeer; tls: GoTls; pace: Pace; random: () => number; agent: string }) {
    this.agent = options.agent;
    const handle = (event: GoEvent) => this.#handle(event);
    this.#listener = new GoListener({ ...options, mode: 'managed', handle, greet: (isFirst) => this.#greet(isFirst) });
  }

  get stream(): GoStream {
    return this.#listener.stream;
  }

  /** Where it listens, `host:port`. */
  get address(): string {
    return this.#listener.address;
  }

  /** The logins that came. */
  get logins(): readonly Fields[] {
    return this.#listener.logins;
  }

  /** Whether the agent has an event stream. */
  get isConnected(): boolean {
    return this.#listener.isConnected;
  }

  /** Listens; after `stop` on the same port. */
  async start(): Promise<void> {
    await this.#listener.start();
  }

  /** The process ends: queues and what it knew of agents are gone, the hub stays. */
  async stop(): Promise<void> {
    await this.#listener.stop();
  }

  /** A new process on the same hub: every Application is news to it. */
  async restart(): Promise<void> {
    await this.stop();
    for (const object of this.hub.application.values()) {
      this.#tell('application', 'create', object);
    }
    await this.start();
  }

  /** Cuts the agent's stream; queues stay. */
  disconnect(): void {
    this.#listener.disconnect();
  }

  /** Everything that waits to be sent is lost, as the oldest entries are when a queue of the original is full. */
  forgetQueue(): void {
    this.#listener.forgetQueue();
  }

  /** A user makes an object on the hub. */
  create(target: GoTarget, object: GoObject): GoObject {
    const made = structuredClone(object);
    const namespace = target === 'application' ? this.agent : this.namespace;
    Object.assign(made.metadata, { namespace, uid: randomUUID() });
    this.#objects.touch(made);
    this.hub[target].set(made.metadata.name, made);
    this.#tell(target, 'create', made);
    return made;
  }

  /** A user, or Argo CD's UI, changes an object on the hub. */
  change(target: GoTarget, name: string, edit: (object: GoObject) => void): GoObject {
    const object = this.object(target, name);
    const before = structuredClone(object);
    edit(object);
    this.#objects.touch(object);
    const phase = phaseOf(object);
    if (phase === 'Terminating' && phaseOf(before) !== undefined && phaseOf(before) !== 'Terminating') {
      this.#tell(target, 'terminate-operation', object);
      return object;
    }
    const { operation, ...state } = object;
    this.#tell(target, 'spec-update', state as GoObject);
    if (operation !== undefined && before.operation === undefined) {
      this.#tell(target, 'set-operation', object);
    }
    return object;
  }

  /** A user deletes an object on the hub. With finalizers it stays until the agent says that its copy is gone. */
  delete(target: GoTarget, name: string): void {
    const object = this.object(target, name);
    if (target === 'application' && (object.metadata.finalizers ?? []).length > 0) {
      this.change(target, name, ({ metadata }) =>
        Object.assign(metadata, { deletionTimestamp: new Date().toISOString() }),
      );
      return;
    }
    this.#gone(target, object);
  }

  /** The object of that name. */
  object(target: GoTarget, name: string): GoObject {
    return this.#objects.get(target, name);
  }

  #gone(target: GoTarget, object: GoObject): void {
    this.hub[target].delete(object.metadata.name);
    // An API server tells of a deletion under a version of its own.
    this.#objects.touch(object);
    this.#tell(target, 'delete', object);
  }

  #greet(isFirst: boolean): void {
    for (const target of ['appproject', 'repository', 'gpgkey'] as const) {
      // What is told at every connection is not stamped.
      for (const object of this.hub[target].values()) {
        this.#tell(target, 'spec-update', object, { principaluid: undefined });
      }
    }
    if (isFirst) {
      const which = { ...toAgent, target: 'resourceResync', type: 'request-resource-resync' };
      this.stream.say(withPayload(recordedEvent('app-managed', which)));
    }
  }

  #handle(event: GoEvent): string | undefined {
    const type = typeOf(event);
    switch (targetOf(event)) {
      case 'application':
        return this.#takeApplication(type, event);
      case 'resourceResync':
        return this.#takeResync(type, event);
      case 'clusterCacheInfoUpdate':
      case 'heartbeat':
        return undefined;
      default:
        return `unknown target ${targetOf(event)}`;
    }
  }

  #takeApplication(type: string, event: GoEvent): string | undefined {
    if (type === 'error') {
      return undefined;
    }
    const incoming = goPayload<GoObject>(event);
    if (incoming === undefined) {
      return 'no object';
    }
    const hub = this.hub.application.get(incoming.metadata.name);
    if (type === 'status-update') {
      if (hub === undefined) {
        return 'not found';
      }
      const { [refresh]: wish, ...annotations } = hub.metadata.annotations ?? {};
      const theirs = incoming.metadata.annotations?.[refresh];
      if (wish !== undefined || theirs !== undefined) {
        hub.metadata.annotations = theirs === undefined ? annotations : { ...annotations, [refresh]: wish ?? theirs };
      }
      hub.status = incoming.status ?? {};
      if (incoming.operation === undefined) {
        delete hub.operation;
      } else {
        hub.operation = incoming.operation;
      }
      // Its own write, of which it tells nobody.
      this.#objects.touch(hub);
      return undefined;
    }
    if (type === 'delete') {
      if (hub?.metadata.deletionTimestamp !== undefined) {
        this.#gone('application', hub);
      }
      return undefined;
    }
    return `a managed agent may not send ${type}`;
  }

  #takeResync(type: string, event: GoEvent): string | undefined {
    if (type === 'request-synced-resource-list') {
      const keys = [...this.hub.application.values()].map(({ metadata }) => ({
        kind: 'Application',
        name: metadata.name,
        uid: metadata.uid ?? '',
      }));
      const { checksum } = goPayload<{ checksum: string | null }>(event) ?? { checksum: null };
      if (keys.length === 0 || goListChecksum(keys) === checksum) {
        return undefined;
      }
      const template = recordedEvent('resync', {
        ...toAgent,
        target: 'resourceResync',
        type: 'response-synced-resource',
      });
      for (const { kind, name, uid } of keys) {
        this.stream.say(withPayload(template, { name, namespace: this.agent, uid, kind }));
      }
      return undefined;
    }
    if (type !== 'request-update') {
      return `a managed agent may not send ${type}`;
    }
    const { kind, name, namespace, uid, checksum } = goPayload<Record<string, string>>(event) ?? {};
    const target = this.#objects.targetOf(kind);
    if (target === undefined || name === undefined) {
      return `unknown kind ${kind}`;
    }
    const object = this.hub[target].get(name);
    if (object !== undefined && goChecksum(object.spec ?? object.data) === checksum) {
      return undefined;
    }
    // The original cannot repair repositories.
    if (target === 'repository') {
      return 'unknown kind Repository';
    }
    const stamp = target === 'application' ? this.uid : undefined;
    if (object !== undefined) {
      this.#tell(target, 'spec-update', object, { principaluid: stamp });
    } else {
      // An object of nothing but its name, as Go writes an otherwise empty one.
      const where = { dir: 'principal->agent', target, type: 'delete' } as const;
      const isStub = ({ metadata }: GoObject) => metadata.resourceVersion === undefined;
      const stub = goPayload<GoObject>(recordedEvent('resync', { ...where, where: isStub })) as GoObject;
      const metadata = { ...stub.metadata, name, uid: uid ?? '', ...(namespace === undefined ? {} : { namespace }) };
      this.#tell(target, 'delete', { ...stub, metadata }, { principaluid: stamp });
    }
    return undefined;
  }

  #tell(target: GoTarget, type: string, object: GoObject, strings: Record<string, string | undefined> = {}): void {
    const recording = type === 'terminate-operation' ? 'terminate' : recordings[target];
    const template = recordedEvent(recording, { ...toAgent, target, type });
    const stamped = extensionOf(template, 'principaluid') === '' ? {} : { principaluid: this.uid };
    this.stream.say(aboutObject(template, structuredClone(object), { ...stamped, ...strings }));
  }
}

function phaseOf({ status }: GoObject): string | undefined {
  return (status?.operationState as { phase?: string } | undefined)?.phase;
}
