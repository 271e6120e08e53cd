import { randomUUID } from 'node:crypto';
import type { Pace } from './event-writer.ts';
import { extensionOf, type GoEvent, goPayload, targetOf, typeOf } from './go-event.ts';
import { GoListener } from './go-listener.ts';
import type { GoPeer, GoTls } from './go-peer.ts';
import { GoObjects, type GoStream, goKind } from './go-side.ts';
import { aboutObject, type GoObject, goChecksum, goListChecksum, recordedEvent, withPayload } from './templates.ts';

const sourceUid = 'argocd.argoproj.io/source-uid';
const toAgent = { dir: 'principal->agent', agent: 'agent-autonomous' } as const;
const targets = ['application', 'appproject'] as const;
type Owned = (typeof targets)[number];

/**
 * The original's principal with one autonomous agent, played from recordings: it mirrors what the agent tells by the
 * original's rules, with the original's gaps, and sends what users ask for on the mirrors. Its gaps:
 * - An update of an Application that it does not mirror is forgotten (principal/event.go:processApplicationEvent).
 * - A project that is there already is not made again (principal/event.go:processAppProjectEvent).
 * - The creation of an Application drops the operation, also that of the mirror that is there already
 *   (internal/manager/application/application.go:Create).
 * - After a restart it does not know whose the projects are, so it asks only about those that the agent lists, under names
 *   without prefix, which it does not find (principal/callbacks.go:newAppProjectCallback,
 *   internal/resync/resync.go:ProcessIncomingSyncedResource).
 */
export class GoMirrorPrincipal {
  readonly agent: string;
  readonly namespace = 'argocd-principal';
  readonly uid = randomUUID();
  readonly #objects = new GoObjects(targets, 2_000);
  /** The mirrors, by the names that they have on the hub. */
  readonly hub = this.#objects.maps;
  readonly listener: GoListener;
  /** The projects whose agent it knows. */
  readonly #tracked = new Set<string>();

  constructor(options: { go: GoPeer; tls: GoTls; pace: Pace; random: () => number; agent: string }) {
    this.agent = options.agent;
    const handle = (event: GoEvent) => this.#handle(event);
    this.listener = new GoListener({
      ...options,
      mode: 'autonomous',
      handle,
      greet: (isFirst) => this.#greet(isFirst),
    });
  }

  get stream(): GoStream {
    return this.listener.stream;
  }

  /** Whether the agent has an event stream. */
  get isConnected(): boolean {
    return this.listener.isConnected;
  }

  /** A new process on the same hub. */
  async restart(change: () => void = () => undefined): Promise<void> {
    await this.listener.stop();
    this.#tracked.clear();
    change();
    await this.listener.start();
  }

  /** A user asks for something on a mirror. An operation is sent after the rest of the mirror, under the same ids. */
  request(
    name: string,
    type: 'spec-update' | 'set-operation' | 'terminate-operation',
    edit: (object: GoObject) => void,
  ) {
    const mirror = this.mirror(name);
    edit(mirror);
    this.#objects.touch(mirror);
    if (type === 'set-operation') {
      this.#send('spec-update', mirror);
    }
    this.#send(type, mirror);
  }

  /** The informer reports a mirror before the principal has noted that the change was its own. */
  echo(name: string): void {
    this.#send('spec-update', this.mirror(name));
  }

  #send(type: 'spec-update' | 'set-operation' | 'terminate-operation', mirror: GoObject): void {
    const template = recordedEvent(type === 'terminate-operation' ? 'terminate' : 'app-autonomous', {
      ...toAgent,
      target: 'application',
      type,
    });
    const stamp = extensionOf(template, 'principaluid') === '' ? {} : { principaluid: this.uid };
    const { operation: _, ...state } = mirror;
    const object = type === 'spec-update' ? (state as GoObject) : mirror;
    this.stream.say(aboutObject(template, structuredClone(object), stamp));
  }

  /** The mirror of an Application. */
  mirror(name: string): GoObject {
    return this.#objects.get('application', name);
  }

  #greet(isFirst: boolean): void {
    if (isFirst) {
      this.#askForAll();
      const which = { ...toAgent, target: 'resourceResync', type: 'request-synced-resource-list' };
      this.stream.say(withPayload(recordedEvent('connect', which), { checksum: goListChecksum(this.#keys()) ?? '' }));
    }
  }

  #handle(event: GoEvent): string | undefined {
    const type = typeOf(event);
    const target = targetOf(event);
    if (target === 'heartbeat' || target === 'clusterCacheInfoUpdate') {
      return undefined;
    }
    if (target === 'resourceResync') {
      return this.#takeResync(type, event);
    }
    if (target !== 'application' && target !== 'appproject') {
      return `unknown target ${target}`;
    }
    const incoming = goPayload<GoObject>(event);
    if (incoming === undefined) {
      return 'no object';
    }
    const name = target === 'appproject' ? `${this.agent}-${incoming.metadata.name}` : incoming.metadata.name;
    const existing = this.hub[target].get(name);
    switch (type) {
      case 'create':
        if (existing !== undefined && target === 'appproject') {
          return 'already exists';
        }
        delete incoming.operation;
        this.#mirror(target, name, incoming, existing);
        return undefined;
      case 'spec-update':
        // The original forgets an update of an Application that it does not mirror.
        if (existing !== undefined || target === 'appproject') {
          this.#mirror(target, name, incoming, existing);
        }
        return undefined;
      case 'delete':
        this.hub[target].delete(name);
        this.#tracked.delete(name);
        return undefined;
      default:
        return `an autonomous agent may not send ${type}`;
    }
  }

  #mirror(target: Owned, name: string, incoming: GoObject, existing: GoObject | undefined): void {
    const { metadata, spec = {}, ...rest } = structuredClone(incoming);
    const named = target === 'appproject' ? metadata.annotations?.[sourceUid] : undefined;
    const from = named ?? existing?.metadata.annotations?.[sourceUid] ?? metadata.uid ?? '';
    const annotations = { ...metadata.annotations, [sourceUid]: from };
    const ofTarget =
      target === 'application'
        ? {
            project: `${this.agent}-${spec.project}`,
            destination: { ...(spec.destination as object), name: this.agent, server: '' },
          }
        : { sourceNamespaces: [this.agent] };
    const mirror = {
      ...rest,
      metadata: { ...metadata, name, annotations, uid: existing?.metadata.uid ?? randomUUID() },
      spec: { ...spec, ...ofTarget },
    };
    mirror.metadata.namespace = target === 'application' ? this.agent : this.namespace;
    this.#objects.touch(mirror);
    this.hub[target].set(name, mirror);
    if (target === 'appproject') {
      this.#tracked.add(name);
    }
  }

  #takeResync(type: string, event: GoEvent): string | undefined {
    if (type === 'request-resource-resync') {
      this.#askForAll();
      return undefined;
    }
    if (type !== 'response-synced-resource') {
      return `an autonomous agent may not send ${type}`;
    }
    const { kind, name = '' } = goPayload<Record<string, string>>(event) ?? {};
    const target = this.#objects.targetOf(kind);
    if (target === undefined) {
      return `unknown kind ${kind}`;
    }
    const mirror = this.hub[target].get(name);
    this.#ask(target, mirror, name);
    return undefined;
  }

  #askForAll(): void {
    for (const { target, name, object } of this.#known()) {
      this.#ask(target, object, name);
    }
  }

  #ask(target: Owned, mirror: GoObject | undefined, name: string): void {
    const template = recordedEvent('resync', { ...toAgent, target: 'resourceResync', type: 'request-update' });
    const namespace = target === 'application' || mirror === undefined ? this.agent : this.namespace;
    const uid = mirror?.metadata.annotations?.[sourceUid] ?? '';
    const checksum = mirror === undefined ? null : goChecksum(mirror.spec);
    this.stream.say(withPayload(template, { name, namespace, uid, kind: goKind(target), checksum }));
  }

  #keys() {
    return this.#known().map(({ target, name, object }) => ({
      kind: goKind(target),
      name,
      uid: object.metadata.annotations?.[sourceUid] ?? '',
    }));
  }

  /** The mirrors that it counts as this agent's. */
  #known() {
    return this.#objects.all().filter(({ target, name }) => target === 'application' || this.#tracked.has(name));
  }
}
