import type { Application, Message, PeerConnection } from '../lib/argocd/index.ts';
import { isNotFound } from '../lib/kube/index.ts';
import type { ObjectRef, Store } from '../lib/sync/index.ts';

const remapped = 'argocd.argoproj.io/namespace-remapped';

/** Which namespaces Applications live in, with destination-based mapping. */
export interface NamespaceOptions {
  /** Argo CD's namespace here: what is in the principal's namespace on the hub is in this one here. */
  readonly namespace: string;
  readonly isAllowed: (namespace: string) => boolean;
  /** Makes a missing namespace; absent: a missing one is an error. */
  readonly ensureNamespace?: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
}

/**
 * Destination-based mapping for an engine that knows one namespace: to it, the Application `name` in `namespace` is called
 * `namespace/name`. Names are translated where objects are stored and where messages go in and out. Applications keep the
 * hub's namespace, except that the principal's namespace and the agent's stand for each other, as in argocd-agent.
 */
export class ManyNamespaces {
  readonly #options: NamespaceOptions;
  /** The engine's view of an object of the cache, so that one object always has one view. */
  readonly #views = new WeakMap<Application, Application>();
  #principalNamespace: string | undefined;

  constructor(options: NamespaceOptions) {
    this.#options = options;
  }

  /** The principal's namespace, learnt when connecting; empty when it did not say. */
  set principalNamespace(namespace: string) {
    if (namespace !== '') this.#principalNamespace = namespace;
  }

  /** The store as the engine sees it. Namespaces that are not allowed do not exist to it, and cannot be written to. */
  store(real: Store<Application>): Store<Application> {
    return {
      subscribe: (listener) =>
        real.subscribe(({ old, now }) => {
          if (!this.#options.isAllowed((now ?? old)?.metadata.namespace ?? '')) return;
          listener({ old: old && this.#inward(old), now: now && this.#inward(now) });
        }),
      read: async (ref, signal) => {
        const found = await real.read(split(ref.name), signal);
        return found && this.#inward(found);
      },
      create: async (object, signal) => {
        const { namespace, name } = split(object.metadata.name);
        if (!this.#options.isAllowed(namespace)) throw new NamespaceNotAllowed(namespace);
        const outward = { ...object, metadata: { ...object.metadata, namespace, name } };
        try {
          return this.#inward(await real.create(outward, signal));
        } catch (error) {
          if (this.#options.ensureNamespace === undefined || !isNotFound(error)) throw error;
          await this.#options.ensureNamespace(namespace, signal);
          return this.#inward(await real.create(outward, signal));
        }
      },
      patch: async (ref, patch, signal) => this.#inward(await real.patch(split(ref.name), patch, signal)),
      delete: (ref, options, signal) => real.delete(split(ref.name), options, signal),
    };
  }

  /** A message of the principal as the engine understands it. */
  incoming(message: Message): Message {
    if (message.target === 'application' && message.type !== 'error') {
      const { name, namespace = '' } = message.object.metadata;
      const inside = `${this.#localOf(namespace)}/${name}`;
      const metadata = { ...message.object.metadata, name: inside, namespace: this.#options.namespace };
      return { ...message, object: { ...message.object, metadata } };
    }
    if (
      message.target === 'resourceResync' &&
      message.type === 'response-synced-resource' &&
      message.payload.kind === 'Application'
    ) {
      const { name, namespace = '' } = message.payload;
      return { ...message, payload: { ...message.payload, name: `${this.#localOf(namespace)}/${name}` } };
    }
    return message;
  }

  /** The connection as the engine sees it. */
  connection(real: PeerConnection): PeerConnection {
    return {
      send: (message) => real.send(this.#outgoing(message)),
      acknowledge: (message) => real.acknowledge(message),
    };
  }

  #outgoing(message: Message): Message {
    if (message.target === 'application') {
      if (message.type === 'error') {
        const { name: resourceName, namespace: resourceNamespace } = split(message.error.resourceName);
        return { ...message, error: { ...message.error, resourceName, resourceNamespace } };
      }
      const { name, namespace } = split(message.object.metadata.name);
      const metadata = { ...message.object.metadata, name, namespace };
      if (this.#isRemapped(namespace)) metadata.annotations = { ...metadata.annotations, [remapped]: 'true' };
      return { ...message, object: { ...message.object, metadata } };
    }
    if (
      message.target === 'resourceResync' &&
      message.type === 'request-update' &&
      message.payload.kind === 'Application'
    ) {
      const { name, namespace: local } = split(message.payload.name);
      const namespace = this.#isRemapped(local) ? (this.#principalNamespace ?? local) : local;
      return { ...message, payload: { ...message.payload, name, namespace } };
    }
    return message;
  }

  #localOf(hubNamespace: string): string {
    return hubNamespace === this.#principalNamespace ? this.#options.namespace : hubNamespace;
  }

  #isRemapped(localNamespace: string): boolean {
    return localNamespace === this.#options.namespace && this.#principalNamespace !== localNamespace;
  }

  #inward(object: Application): Application {
    let view = this.#views.get(object);
    if (view === undefined) {
      const { namespace = '', name } = object.metadata;
      const metadata = { ...object.metadata, name: `${namespace}/${name}`, namespace: this.#options.namespace };
      view = { ...object, metadata };
      this.#views.set(object, view);
    }
    return view;
  }
}

/** The agent may not put Applications there; shown on the hub's Application. */
class NamespaceNotAllowed extends Error {
  override name = 'NamespaceNotAllowed';
  /** Read by the engine like an API server's refusal. */
  readonly status = 403;
  readonly reason = 'Forbidden';

  constructor(namespace: string) {
    super(`namespace ${namespace} is not among the agent's --allowed-namespaces`);
  }
}

function split(name: string): ObjectRef {
  const slash = name.indexOf('/');
  return { namespace: name.slice(0, slash), name: name.slice(slash + 1) };
}
