import { randomUUID } from 'node:crypto';
import type { Pace } from './event-writer.ts';
import type { GoStatus } from './go-calls.ts';
import { GoDialer } from './go-dialer.ts';
import { extensionOf, type GoEvent, goPayload, targetOf, typeOf } from './go-event.ts';
import type { GoPeer, GoTls } from './go-peer.ts';
import { GoObjects, type GoStream, type GoTarget, goKind } from './go-side.ts';
import { aboutObject, type GoObject, goChecksum, goListChecksum, recordedEvent, withPayload } from './templates.ts';

const sourceUid = 'argocd.argoproj.io/source-uid';
const principalUid = 'argocd.argoproj.io/principal-uid';
const adoptionPolicy = 'argocd.argoproj.io/adoption-policy';
const remapped = 'argocd.argoproj.io/namespace-remapped';
const refresh = 'argocd.argoproj.io/refresh';
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

const targets = ['application', 'appproject', 'repository', 'gpgkey'] as const;
const fromAgent = { dir: 'agent->principal', agent: 'agent-managed' } as const;

/**
 * A managed agent of the original, played from recordings: what it sends are recorded messages about other objects, what it
 * does with what it gets are the original's rules, and its cluster is a map. It has the original's faults where they show on
 * the wire.
 */
export class GoManagedAgent {
  readonly name: string;
  readonly namespace = 'argocd-managed';
  readonly #objects = new GoObjects(targets, 4_000);
  /** The cluster: copies and local objects by target and name. It outlives a restart of the agent. */
  readonly cluster = this.#objects.maps;
  readonly #keepsNamespaces: boolean;
  readonly #dialer: GoDialer;
  /** Applications that the agent handles, in memory only. */
  #managed = new Set<string>();

  /** @param options.destinationMapping Applications keep their namespaces, but for the principal's own */
  constructor(options: {
    go: GoPeer;
    address: string;
    tls: GoTls;
    name: string;
    pace: Pace;
    random: () => number;
    destinationMapping?: boolean;
  }) {
    this.name = options.name;
    this.#keepsNamespaces = options.destinationMapping === true;
    const handle = (event: GoEvent) => this.#handle(event);
    this.#dialer = new GoDialer({ ...options, mode: 'managed', namespace: this.namespace, handle });
  }

  get stream(): GoStream {
    return this.#dialer.stream;
  }

  /** How the current event stream ended. */
  get ended(): Promise<GoStatus> {
    return this.#dialer.call.ended;
  }

  /** Logs in, asks for the version, opens the event stream, and says what it holds when the process is new. */
  async connect(): Promise<void> {
    if (await this.#dialer.open()) {
      this.#tellAll();
      const which = { ...fromAgent, target: 'resourceResync', type: 'request-synced-resource-list' };
      this.stream.say(withPayload(recordedEvent('app-managed', which), { checksum: goListChecksum(this.#keys()) }));
    }
  }

  /** The connection breaks, or the process ends: without a word on the stream. */
  disconnect(): void {
    this.#dialer.close();
  }

  /** A new process on the same cluster: what was in memory is gone. Every object of the cluster is handled again. */
  restart(): void {
    this.#dialer.restart();
    this.#managed = new Set(this.cluster.application.keys());
  }

  /** Argo CD, or a user, changes an Application on the cluster; the agent reports it. */
  change(name: string, edit: (object: GoObject) => void): GoObject {
    const object = this.#objects.get('application', name);
    edit(object);
    this.#objects.touch(object);
    if (object.metadata.annotations?.[sourceUid] !== undefined) {
      this.#report(object);
    }
    return object;
  }

  /** Argo CD has finished deleting: the Application goes, and the principal hears of it if the agent handled it. */
  finalise(name: string): void {
    const object = this.#objects.get('application', name);
    this.cluster.application.delete(name);
    // An API server tells of a deletion under a version of its own.
    this.#objects.touch(object);
    if (!this.#managed.delete(name)) {
      return;
    }
    const template = recordedEvent('delete', { ...fromAgent, target: 'application', type: 'delete' });
    this.stream.say(aboutObject(template, object));
  }

  /** A user makes an Application on the cluster that the principal knows nothing of. */
  createLocally(object: GoObject): GoObject {
    const made = this.#store('application', structuredClone(object));
    this.#managed.add(made.metadata.name);
    return made;
  }

  /** Sends a heartbeat, and what the agent knows of Argo CD's cache. */
  beat(): void {
    const heartbeat = recordedEvent('connect', { ...fromAgent, target: 'heartbeat', type: 'ping' });
    this.stream.say(withPayload(heartbeat));
    const info = recordedEvent('connect', {
      ...fromAgent,
      target: 'clusterCacheInfoUpdate',
      type: 'cluster-cache-info-update',
      nth: 1,
    });
    this.stream.say(withPayload(info, goPayload(info)));
  }

  #handle(event: GoEvent): string | undefined {
    const target = targetOf(event);
    switch (target) {
      case 'application':
        return this.#takeApplication(event);
      case 'appproject':
      case 'repository':
      case 'gpgkey':
        return this.#takeCopy(target, event);
      case 'resourceResync':
        return this.#takeResync(event);
      default:
        return `unknown target ${target}`;
    }
  }

  #takeApplication(event: GoEvent): string | undefined {
    const incoming = goPayload<GoObject>(event);
    if (incoming === undefined) {
      return 'no object';
    }
    const type = typeOf(event);
    const { name } = incoming.metadata;
    const existing = this.cluster.application.get(name);
    const from = existing?.metadata.annotations?.[sourceUid];
    const identity = incoming.metadata.annotations?.[sourceUid] || incoming.metadata.uid || '';
    if (existing !== undefined && from === undefined && type !== 'create') {
      return 'source UID annotation not found';
    }
    const stamp = extensionOf(event, 'principaluid');
    switch (type) {
      case 'create':
      case 'spec-update': {
        if (existing === undefined) {
          return this.#create(incoming, identity, stamp);
        }
        if (from === undefined && existing.metadata.annotations?.[adoptionPolicy] === 'never') {
          this.#refuseToAdopt(name);
          return undefined;
        }
        const known = existing.metadata.annotations?.[principalUid];
        const isOtherPrincipal = stamp !== '' && known !== undefined && stamp !== known;
        const adopts =
          from === undefined || isOtherPrincipal || (stamp !== '' && known === undefined && from !== identity);
        if (adopts || from === identity) {
          return this.#update(existing, incoming, adopts ? { identity, stamp } : undefined);
        }
        this.#remove(existing);
        return this.#create(incoming, identity, stamp);
      }
      case 'delete':
        if (!this.#managed.has(name) || existing === undefined) {
          return 'not managed';
        }
        this.#managed.delete(name);
        this.#remove(existing);
        return undefined;
      case 'set-operation':
        if (existing === undefined || from !== identity) {
          return 'not found, or another one';
        }
        this.#patch(existing, { operation: operationToUse(existing, incoming) });
        return undefined;
      case 'terminate-operation': {
        const state = existing?.status?.operationState;
        if (existing === undefined || typeof state !== 'object') {
          return 'no operation in progress';
        }
        // Not remembered as a change of its own, so it is reported.
        this.#patch(existing, { status: { ...existing.status, operationState: { ...state, phase: 'Terminating' } } });
        this.#report(existing);
        return undefined;
      }
      default:
        return `unknown event type ${type}`;
    }
  }

  #refuseToAdopt(name: string): void {
    const template = recordedEvent('errors', { ...fromAgent, target: 'application', type: 'error' });
    const told = { ...goPayload(template), resourceName: name, resourceNamespace: this.namespace };
    this.stream.say(withPayload(template, told));
  }

  #create(incoming: GoObject, identity: string, stamp: string): string | undefined {
    const { name } = incoming.metadata;
    if (this.#managed.has(name)) {
      return 'already managed';
    }
    const { [lastApplied]: _, ...annotations } = incoming.metadata.annotations ?? {};
    const made = structuredClone(incoming);
    delete made.metadata.ownerReferences;
    delete made.metadata.deletionTimestamp;
    made.metadata.annotations = {
      ...annotations,
      [sourceUid]: identity,
      ...(stamp === '' ? {} : { [principalUid]: stamp }),
    };
    made.spec = localSpec(incoming);
    this.#store('application', made);
    this.#managed.add(name);
    return undefined;
  }

  #update(existing: GoObject, incoming: GoObject, adopt?: { identity: string; stamp: string }): string | undefined {
    const old = existing.metadata.annotations ?? {};
    const annotations = { ...incoming.metadata.annotations };
    if (old[refresh] !== undefined) {
      annotations[refresh] = old[refresh];
    }
    const from = adopt?.identity ?? old[sourceUid];
    const principal = (adopt?.stamp || undefined) ?? old[principalUid];
    if (from !== undefined) {
      annotations[sourceUid] = from;
    }
    if (old[remapped] !== undefined) {
      annotations[remapped] = old[remapped];
    }
    if (principal !== undefined) {
      annotations[principalUid] = principal;
    }
    const { labels, finalizers, deletionTimestamp } = incoming.metadata;
    existing.metadata.annotations = annotations;
    replaceOrDelete(existing.metadata, { labels, finalizers });
    this.#patch(existing, { spec: localSpec(incoming), operation: operationToUse(existing, incoming) });
    this.#managed.add(existing.metadata.name);
    if (deletionTimestamp !== undefined && existing.metadata.deletionTimestamp === undefined) {
      if ((finalizers ?? []).length === 0) {
        this.finalise(existing.metadata.name);
      } else {
        this.change(existing.metadata.name, ({ metadata }) => Object.assign(metadata, { deletionTimestamp: now() }));
      }
    }
    return undefined;
  }

  /** Without finalizers it is gone, with them Argo CD has to finish first. */
  #remove(object: GoObject): void {
    if ((object.metadata.finalizers ?? []).length === 0) {
      this.cluster.application.delete(object.metadata.name);
    } else {
      object.metadata.deletionTimestamp ??= now();
    }
  }

  #takeCopy(target: Exclude<GoTarget, 'application'>, event: GoEvent): string | undefined {
    const incoming = goPayload<GoObject>(event);
    if (incoming === undefined) {
      return 'no object';
    }
    const { name } = incoming.metadata;
    const existing = this.cluster[target].get(name);
    switch (typeOf(event)) {
      case 'create':
      case 'spec-update': {
        if (
          target === 'repository' &&
          existing !== undefined &&
          existing.metadata.annotations?.[sourceUid] === undefined
        ) {
          return 'source UID annotation not found';
        }
        const made = structuredClone(incoming);
        made.metadata.annotations = { ...made.metadata.annotations, [sourceUid]: incoming.metadata.uid ?? '' };
        if (existing?.metadata.uid !== undefined) {
          made.metadata.uid = existing.metadata.uid;
        }
        this.#store(target, made, existing?.metadata.uid);
        return undefined;
      }
      case 'delete':
        return this.cluster[target].delete(name) ? undefined : 'not managed';
      default:
        return `unknown event type ${typeOf(event)}`;
    }
  }

  #takeResync(event: GoEvent): string | undefined {
    switch (typeOf(event)) {
      case 'request-resource-resync':
        this.#tellAll();
        return undefined;
      case 'response-synced-resource': {
        const {
          kind,
          name,
          namespace = '',
        } = goPayload<{ kind: string; name: string; namespace?: string }>(event) ?? {
          kind: '',
          name: '',
        };
        const target = this.#objects.targetOf(kind);
        if (target === undefined) {
          return `unknown kind ${kind}`;
        }
        const object = this.cluster[target].get(name);
        if (object === undefined) {
          this.#requestUpdate({ name, namespace, uid: '', kind, checksum: null });
        } else {
          return this.#tell(target, object);
        }
        return undefined;
      }
      default:
        return 'not for a managed agent';
    }
  }

  #tellAll(): void {
    for (const { target, object } of this.#objects.all()) {
      this.#tell(target, object);
    }
  }

  #tell(target: GoTarget, object: GoObject): string | undefined {
    const { name, annotations } = object.metadata;
    const uid = annotations?.[sourceUid];
    if (uid === undefined) {
      return 'source UID annotation not found';
    }
    const checksum = goChecksum(object.spec ?? object.data);
    const namespace =
      annotations?.[remapped] === undefined ? object.metadata.namespace : this.#dialer.answer.principalNamespace;
    this.#requestUpdate({ name, namespace, uid, kind: goKind(target), checksum });
    return undefined;
  }

  #requestUpdate(payload: object): void {
    const template = recordedEvent('app-managed', { ...fromAgent, target: 'resourceResync', type: 'request-update' });
    this.stream.say(withPayload(template, payload));
  }

  #keys() {
    return this.#objects.all().map(({ target, object: { metadata } }) => ({
      kind: goKind(target),
      name: metadata.name,
      uid: metadata.annotations?.[sourceUid] ?? metadata.uid ?? '',
    }));
  }

  #report(object: GoObject): void {
    const template = recordedEvent('app-managed', { ...fromAgent, target: 'application', type: 'status-update' });
    this.stream.say(aboutObject(template, structuredClone(object)));
  }

  #patch(object: GoObject, fields: { readonly [field: string]: unknown }): void {
    replaceOrDelete(object, fields);
    this.#objects.touch(object);
  }

  #store(target: GoTarget, object: GoObject, uid: string = randomUUID()): GoObject {
    const { namespace } = object.metadata;
    const isKept = target === 'application' && this.#keepsNamespaces && namespace !== undefined;
    if (isKept && namespace === this.#dialer.answer.principalNamespace) {
      object.metadata.annotations = { ...object.metadata.annotations, [remapped]: 'true' };
    }
    const isOwn = !isKept || namespace === this.#dialer.answer.principalNamespace;
    Object.assign(object.metadata, { namespace: isOwn ? this.namespace : namespace, uid });
    this.#objects.touch(object);
    this.cluster[target].set(object.metadata.name, object);
    return object;
  }
}

function localSpec({ spec }: GoObject): Record<string, unknown> {
  const { server: _, name: __, ...destination } = (spec?.destination ?? {}) as Record<string, unknown>;
  return { ...spec, destination: { ...destination, name: 'in-cluster' } };
}

/** Nothing new leaves an operation as it is, and one that is being terminated is not replaced. */
function operationToUse(existing: GoObject, incoming: GoObject): Record<string, unknown> | undefined {
  const state = existing.status?.operationState as { phase?: string } | undefined;
  return incoming.operation === undefined || state?.phase === 'Terminating' ? existing.operation : incoming.operation;
}

function replaceOrDelete(target: object, fields: object): void {
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) {
      delete (target as Record<string, unknown>)[key];
    } else {
      (target as Record<string, unknown>)[key] = value;
    }
  }
}

function now(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z');
}
