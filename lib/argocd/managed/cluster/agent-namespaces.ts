import type { ObjectRef, Store } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { annotations } from '../../names.ts';
import { type NamespaceMapping, oneNamespace } from '../mapping.ts';

/** In which namespaces an agent may have Applications, and what those are called on the hub. */
export interface AgentNamespacesOptions {
  /** The agent's namespace. */
  readonly namespace: string;
  /** Where Applications live, given the principal's namespace (empty: unknown). Default: all in the agent's namespace. */
  readonly mapping?: (principalNamespace: string) => NamespaceMapping;
  /** Namespaces besides the agent's where Applications may be; others do not exist to it. Default: none. */
  readonly isAllowed?: (namespace: string) => boolean;
}

/** The agent's namespaces, and how the principal calls them. */
export class AgentNamespaces {
  readonly #options: AgentNamespacesOptions;
  /** Empty until a principal sends it. */
  #principalNamespace = '';
  #mapping: NamespaceMapping;

  constructor(options: AgentNamespacesOptions) {
    this.#options = options;
    this.#mapping = this.#mappingTo('');
  }

  /** The principal's namespace, received when connecting; empty when it was not sent. */
  set principalNamespace(namespace: string) {
    if (namespace !== '') {
      this.#principalNamespace = namespace;
      this.#mapping = this.#mappingTo(namespace);
    }
  }

  /** Where an Application of the hub lives here. Its namespace is empty when there is no place for it. */
  toLocal(name: string, hubNamespace = ''): ObjectRef {
    return { namespace: this.#mapping.toLocal(hubNamespace), name };
  }

  /** The hub's namespace of what is in this one here. */
  toHub(namespace: string): string {
    return this.#mapping.toHub(namespace);
  }

  /** How an error names what is here: as the hub calls it. */
  hubNameOf({ namespace, name }: ObjectRef): { resourceName: string; resourceNamespace: string } {
    return { resourceName: name, resourceNamespace: this.toHub(namespace) };
  }

  /** Whether what is here is in another namespace on the hub; undefined while that is not known. */
  isRemapped(namespace: string): boolean | undefined {
    return this.#principalNamespace === '' ? undefined : namespace !== '' && this.toHub(namespace) !== namespace;
  }

  /** Why nothing may be made in a namespace; undefined when it may. */
  objection(namespace: string): string | undefined {
    if (namespace === '') {
      const own = this.#options.namespace;
      return `the agent's namespace ${own} stands for the principal's, which leaves no place for the hub's namespace ${own}`;
    }
    return this.#has(namespace) ? undefined : `namespace ${namespace} is not among the agent's --allowed-namespaces`;
  }

  /** The store without what is elsewhere. */
  within(store: Store<Application>): Pick<Store<Application>, 'subscribe'> {
    return {
      subscribe: (listener) =>
        store.subscribe((change) => {
          if (this.#has((change.now ?? change.old)?.metadata.namespace ?? '')) {
            listener(change);
          }
        }),
    };
  }

  /** The object as it is reported to the principal: with the mark by which the principal finds its own, even if it was removed here. */
  asReported(object: Application): Application {
    const { namespace = '', annotations: marks } = object.metadata;
    const mark = this.isRemapped(namespace) === true ? 'true' : undefined;
    if (namespace !== '' && marks?.[annotations.namespaceRemapped] === mark) {
      return object;
    }
    const { [annotations.namespaceRemapped]: _, ...others } = marks ?? {};
    const metadata = {
      ...object.metadata,
      namespace: namespace === '' ? this.toHub(namespace) : namespace,
      annotations: mark === undefined ? others : { ...others, [annotations.namespaceRemapped]: mark },
    };
    return { ...object, metadata };
  }

  #has(namespace: string): boolean {
    return namespace === this.#options.namespace || this.#options.isAllowed?.(namespace) === true;
  }

  #mappingTo(principalNamespace: string): NamespaceMapping {
    const { namespace, mapping } = this.#options;
    return mapping?.(principalNamespace) ?? oneNamespace(namespace, namespace);
  }
}
