import { randomUUID } from 'node:crypto';
import type { Pace } from './event-writer.ts';
import { GoDialer } from './go-dialer.ts';
import { type GoEvent, goPayload, targetOf, typeOf } from './go-event.ts';
import type { GoPeer, GoTls } from './go-peer.ts';
import { GoStream } from './go-stream.ts';
import { aboutObject, type GoObject, goChecksum, goListChecksum, recordedEvent, withPayload } from './templates.ts';

const refresh = 'argocd.argoproj.io/refresh';
const fromAgent = { dir: 'agent->principal', agent: 'agent-autonomous' } as const;
const kinds = { application: 'Application', appproject: 'AppProject' } as const;
/** What an autonomous agent tells of. */
export type Owned = keyof typeof kinds;

/**
 * An autonomous agent of the original, played from recordings: it owns its Applications and AppProjects and tells of every
 * change, and takes from the principal what users ask for there.
 */
export class GoAutonomousAgent {
  readonly name: string;
  readonly namespace = 'argocd-autonomous';
  readonly cluster = { application: new Map<string, GoObject>(), appproject: new Map<string, GoObject>() };
  /** What came that would have made an agent of the original destroy or overwrite something of its own. */
  readonly harm: GoEvent[] = [];
  stream: GoStream;
  readonly #options: { readonly pace: Pace; readonly random: () => number };
  readonly #dialer: GoDialer;
  #resynced = false;
  #version = 1_800;

  constructor(options: { go: GoPeer; address: string; tls: GoTls; name: string; pace: Pace; random: () => number }) {
    this.name = options.name;
    this.#options = options;
    this.#dialer = new GoDialer({ ...options, mode: 'autonomous', namespace: this.namespace });
    this.stream = this.#newStream();
  }

  /** Logs in, opens the event stream, and asks to be asked when the process is new. */
  async connect(): Promise<void> {
    const { stream } = this;
    await this.#dialer.open(stream);
    if (this.#resynced) {
      return;
    }
    this.#resynced = true;
    const template = recordedEvent('connect', {
      ...fromAgent,
      target: 'resourceResync',
      type: 'request-resource-resync',
    });
    stream.writer.add(withPayload(template, {}));
  }

  /** The connection breaks, or the process ends. */
  disconnect(): void {
    this.stream.writer.stop();
    this.#dialer.close();
  }

  /** A new process on the same cluster: everything is told as if it had just been made. */
  restart(): void {
    this.disconnect();
    this.#resynced = false;
    this.stream = this.#newStream();
    for (const target of ['appproject', 'application'] as const) {
      for (const object of this.cluster[target].values()) {
        this.#tell(target, 'create', object);
      }
    }
  }

  /** A user, or Argo CD, makes an object on the cluster. */
  create(target: Owned, object: GoObject): GoObject {
    const made = structuredClone(object);
    Object.assign(made.metadata, { namespace: this.namespace, uid: randomUUID() });
    this.#touch(made);
    this.cluster[target].set(made.metadata.name, made);
    this.#tell(target, 'create', made);
    return made;
  }

  /** A user, or Argo CD, changes it. */
  change(target: Owned, name: string, edit: (object: GoObject) => void): GoObject {
    const object = this.#object(target, name);
    edit(object);
    this.#touch(object);
    this.#tell(target, 'spec-update', object);
    return object;
  }

  /** It is deleted, finalizers and all. */
  delete(target: Owned, name: string): void {
    const object = this.#object(target, name);
    this.cluster[target].delete(name);
    // An API server tells of a deletion under a version of its own.
    this.#touch(object);
    this.#tell(target, 'delete', object);
  }

  #newStream(): GoStream {
    return new GoStream({
      ...this.#options,
      source: 'agent://agent-managed',
      handle: (event) => this.#handle(event),
    });
  }

  #handle(event: GoEvent): string | undefined {
    switch (targetOf(event)) {
      case 'application':
        return this.#takeApplication(event);
      case 'resourceResync':
        return this.#takeResync(event);
      case 'appproject':
      case 'repository':
      case 'gpgkey':
        this.harm.push(event);
        return 'not for an autonomous agent';
      default:
        return `unknown target ${targetOf(event)}`;
    }
  }

  #takeApplication(event: GoEvent): string | undefined {
    const incoming = goPayload<GoObject>(event);
    if (incoming === undefined) {
      return 'no object';
    }
    const type = typeOf(event);
    if (type === 'create' || type === 'delete') {
      this.harm.push(event);
      return 'discarded';
    }
    const object = this.cluster.application.get(incoming.metadata.name);
    if (object === undefined) {
      return 'not found';
    }
    const state = object.status?.operationState as { phase?: string } | undefined;
    if (type === 'spec-update') {
      // Of everything only the wish to be refreshed is taken. Without annotations the original's patch has no place to go.
      const wanted = incoming.metadata.annotations?.[refresh];
      if (wanted === undefined) {
        return undefined;
      }
      // Its own writing is no news that the original would report.
      object.metadata.annotations = { ...object.metadata.annotations, [refresh]: wanted };
      this.#touch(object);
    } else if (type === 'set-operation') {
      const { operation } = incoming;
      if (operation !== undefined && state?.phase !== 'Terminating') {
        object.operation = operation;
        this.#touch(object);
      }
    } else if (type === 'terminate-operation') {
      if (state === undefined) {
        return 'no operation in progress';
      }
      this.change('application', object.metadata.name, () => Object.assign(state, { phase: 'Terminating' }));
    } else {
      return `unknown event type ${type}`;
    }
    return undefined;
  }

  #takeResync(event: GoEvent): string | undefined {
    const payload = goPayload<Record<string, string | null>>(event) ?? {};
    if (typeOf(event) === 'request-synced-resource-list') {
      const keys = this.#keys();
      if (keys.length === 0 || goListChecksum(keys) === payload.checksum) {
        return undefined;
      }
      const template = recordedEvent('connect', {
        ...fromAgent,
        target: 'resourceResync',
        type: 'response-synced-resource',
      });
      for (const { kind, name, uid } of keys) {
        this.stream.writer.add(withPayload(template, { name, namespace: this.namespace, uid, kind }));
      }
      return undefined;
    }
    if (typeOf(event) !== 'request-update') {
      return 'not for an autonomous agent';
    }
    const target = (Object.keys(kinds) as Owned[]).find((each) => kinds[each] === payload.kind);
    if (target === undefined) {
      return `unknown kind ${payload.kind}`;
    }
    const prefix = `${this.name}-`;
    const told = payload.name ?? '';
    const name =
      target === 'appproject' && told.startsWith(prefix) && told !== prefix ? told.slice(prefix.length) : told;
    const object = this.cluster[target].get(name);
    if (object === undefined) {
      const isStub = ({ metadata }: GoObject) => metadata.resourceVersion === undefined;
      const where = { dir: 'principal->agent', target, type: 'delete', where: isStub } as const;
      const stub = goPayload<GoObject>(recordedEvent('resync', where)) as GoObject;
      const metadata = { ...stub.metadata, name, namespace: this.namespace, uid: payload.uid ?? '' };
      this.#tell(target, 'delete', { ...stub, metadata });
    } else if (goChecksum(object.spec) !== payload.checksum) {
      this.#tell(target, 'spec-update', object);
    }
    return undefined;
  }

  #keys() {
    return (Object.keys(kinds) as Owned[]).flatMap((target) =>
      [...this.cluster[target].values()].map(({ metadata }) => ({
        kind: kinds[target],
        name: metadata.name,
        uid: metadata.uid ?? '',
      })),
    );
  }

  #tell(target: Owned, type: string, object: GoObject): void {
    const recording = target === 'appproject' ? 'appproject' : 'app-autonomous';
    const recorded = recordedEvent(recording, { ...fromAgent, target, type });
    this.stream.writer.add(aboutObject(recorded, structuredClone(object)));
  }

  #object(target: Owned, name: string): GoObject {
    const object = this.cluster[target].get(name);
    if (object === undefined) {
      throw new Error(`there is no ${target} ${name}`);
    }
    return object;
  }

  #touch(object: GoObject): void {
    this.#version += 1;
    object.metadata.resourceVersion = String(this.#version);
  }
}
