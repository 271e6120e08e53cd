import {
  type Application,
  applicationRouter,
  isSkipped,
  type Mapping,
  type NamespaceMapping,
  sameNamespaces,
} from '../lib/argocd/index.ts';
import type { ObjectRef } from '../lib/sync/index.ts';
import { agentOfUrl } from './cluster-secrets.ts';

/** Where Argo CD is on the hub, which is the principal's namespace too. */
export const principalNamespace = 'openshift-gitops';
/** Where Argo CD and the agent are on every managed cluster. */
export const agentNamespace = 'argocd';

/** What the hub's Argo CD calls the cluster of an autonomous agent. */
export function clusterOf(agent: string): string {
  return `cluster-of-${agent}`;
}

/** How Applications of the hub are given to agents, and where they live. */
export interface Layout {
  readonly agentOf: (application: Application) => string | undefined;
  /** The agent's side of the mapping. */
  readonly mapping: ((principalNamespace: string) => NamespaceMapping) | undefined;
  /** The principal's side of it. */
  readonly namespaceOf: ((agent: string, local: string) => string) | undefined;
  /** Where users put Applications on the hub that are meant for this agent. */
  readonly hubNamespaces: (agent: string) => readonly string[];
  readonly localNamespaces: readonly string[];
  readonly names: readonly string[];
  /** Where users may turn an Application, besides to agents; empty when the destination decides nothing. */
  readonly otherDestinations: readonly string[];
  /** What an Application of the hub is called on its agent's cluster. */
  readonly toLocal: (ref: ObjectRef) => ObjectRef;
  /** Which projects an agent gets. */
  readonly projectMapping: Mapping;
  /** Equal for the names of one Application on either side. */
  readonly lane: (name: string, namespace: string) => string;
}

/** Namespace-based mapping. */
export const byNamespace: Layout = {
  agentOf: (application) => (isSkipped(application) ? undefined : application.metadata.namespace),
  mapping: undefined,
  namespaceOf: undefined,
  hubNamespaces: (agent) => [agent],
  localNamespaces: [agentNamespace],
  names: ['shop', 'web', 'jobs'],
  otherDestinations: [],
  toLocal: ({ name }) => ({ namespace: agentNamespace, name }),
  projectMapping: 'namespace',
  lane: (name) => name,
};

const same = sameNamespaces(principalNamespace, agentNamespace);

/** Destination-based mapping: equal names in several namespaces, one of which has another name on each side. */
export const byDestination: Layout = {
  agentOf: applicationRouter({
    namespace: principalNamespace,
    allowedNamespaces: ['team-*'],
    mapping: 'destination',
    agentOfUrl,
  }),
  mapping: (principal) => sameNamespaces(principal, agentNamespace),
  namespaceOf: (_, local) => same.toHub(local),
  hubNamespaces: () => [principalNamespace, 'team-a', 'team-b'],
  localNamespaces: [agentNamespace, 'team-a', 'team-b'],
  names: ['shop', 'web'],
  otherDestinations: ['', 'in-cluster'],
  toLocal: ({ namespace, name }) => ({ namespace: same.toLocal(namespace), name }),
  projectMapping: 'destination',
  lane: (name, namespace) => `${namespace === principalNamespace ? agentNamespace : namespace}/${name}`,
};
