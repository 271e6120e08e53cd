import { randomUUID } from 'node:crypto';
import type { Pace } from './event-writer.ts';
import { GoDialer } from './go-dialer.ts';
import { type GoEvent, goPayload, targetOf, typeOf } from './go-event.ts';
import type { GoPeer, GoTls } from './go-peer.ts';
import { GoObjects, type GoStream, goKind } from './go-side.ts';
import { aboutObject, type GoObject, goChecksum, goListChecksum, recordedEvent, withPayload } from './templates.ts';

const refresh = 'argocd.argoproj.io/refresh';
const fromAgent = { dir: 'agent->principal', agent: 'agent-autonomous' } as const;
const targets = ['application', 'appproject'] as const;
/** What an autonomous agent tells of. */
export type Owned = (typeof targets)[number];

/**
 * An autonomous agent of the original, played from recordings: it owns its Applications and AppProjects and tells of every
 * change, and takes from the principal what users ask for there.
 */
export class GoAutonomousAgent {
  readonly name: string;
  readonly namespace = 'argocd-autonomous';
  readonly #objects = new GoObjects(targets, 1_800);
  readonly cluster = this.#objects.maps;
  /** What came that would have made an agent of the original destroy or overwrite something of its own. */
  readonly harm: GoEvent[] = [];
  readonly #dialer: GoDialer;

  constructor(options: { go: GoPeer; address: string; tls: GoTls; name: string; pace: Pace; random: () => number }) {
    this.name = options.name;
    const handle = (event: GoEvent) => this.#handle(event);
    this.#dialer = new GoDialer({ ...options, mode: 'autonomous', namespace: this.namespace, handle });
  }

  get stream(): GoStream {
    return this.#dialer.stream;
  }

  /** Logs in, opens the event stream, and asks to be asked when the process is new. */
  async connect(): Promise<void> {
    if (await this.#dialer.open()) {
      const which = { ...fromAgent, target: 'resourceResync', type: 'request-resource-resync' };
      this.stream.say(withPayload(recordedEvent('connect', which), {}));
    }
  }

  /** The connection breaks, or the process ends. */
  disconnect(): void {
    this.#dialer.close();
  }

  /** A new process on the same cluster: everything is told as if it had just been made. */
  restart(): void {
    this.#dialer.restart();
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
    this.#objects.touch(made);
    this.cluster[target].set(made.metadata.name, made);
    this.#tell(target, 'create', made);
    return made;
  }

  /** A user, or Argo CD, changes it. */
  change(target: Owned, name: string, edit: (object: GoObject) => void): GoObject {
    const object = this.#objects.get(target, name);
    edit(object);
    this.#objects.touch(object);
    this.#tell(target, 'spec-update', object);
    return object;
  }

  /** It is deleted, finalizers and all. */
  delete(target: Owned, name: string): void {
    const object = this.#objects.get(target, name);
    this.cluster[target].delete(name);
    // An API server tells of a deletion under a version of its own.
    this.#objects.touch(object);
    this.#tell(target, 'delete', object);
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
      this.#objects.touch(object);
    } else if (type === 'set-operation') {
      const { operation } = incoming;
      if (operation !== undefined && state?.phase !== 'Terminating') {
        object.operation = operation;
        this.#objects.touch(object);
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
        this.stream.say(withPayload(template, { name, namespace: this.namespace, uid, kind }));
      }
      return undefined;
    }
    if (typeOf(event) !== 'request-update') {
      return 'not for an autonomous agent';
    }
    const target = this.#objects.targetOf(payload.kind);
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
    return this.#objects.all().map(({ target, name, object }) => ({
      kind: goKind(target),
      name,
      uid: object.metadata.uid ?? '',
    }));
  }

  #tell(target: Owned, type: string, object: GoObject): void {
    const recording = target === 'appproject' ? 'appproject' : 'app-autonomous';
    const recorded = recordedEvent(recording, { ...fromAgent, target, type });
    this.stream.say(aboutObject(recorded, structuredClone(object)));
  }
}
