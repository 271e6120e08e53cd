import { canonicalJson } from '../base/index.ts';
import type { AppProject, Destination, DestinationServiceAccount } from './application.ts';
import { isGlob, matchesAny, matchesGlob } from './glob.ts';
import { type ArgoCluster, inCluster, isDenial, windowsForCluster } from './project-clusters.ts';
import { excessOf } from './project-size.ts';

/** How Applications are mapped to agents; projects follow. */
export type Mapping = 'namespace' | 'destination';

/** A managed agent as AppProjects of the hub mean it. */
export interface ProjectTarget {
  readonly agent: string;
  /** Its clusters in the hub's Argo CD. */
  readonly clusters: readonly ArgoCluster[];
  /** The AppProjects that have one of these clusters to themselves. Default: none. */
  readonly projects?: readonly string[];
}

/**
 * Whether a managed agent gets a project: a destination permits its cluster, none denies all of it, and with namespace-based
 * mapping `sourceNamespaces` admits its namespace. The rules are Argo CD's (`isDestinationMatched`): a destination means a
 * cluster by its name or by its server, and `!` means all others. As in argocd-agent, the agent's own name counts as well, and
 * a server may name the agent in its parameter `agentName`. Argo CD's untouched `default` project, which has no
 * `sourceNamespaces`, goes to nobody with namespace-based mapping, and neither does one that is too large (`excessOf`).
 * @param project as Argo CD uses it (`virtualProject`)
 */
export function isProjectForAgent(project: AppProject, target: ProjectTarget, mapping: Mapping): boolean {
  if (excessOf(project) !== undefined) {
    return false;
  }
  const { destinations = [], sourceNamespaces = [], permitOnlyProjectScopedClusters } = project.spec;
  const meanings = destinations.map((destination) => meaningOf(destination, target));
  return (
    meanings.some(({ permits }) => permits) &&
    !meanings.some(({ deniesAll }) => deniesAll) &&
    (permitOnlyProjectScopedClusters !== true || (target.projects ?? []).includes(project.metadata.name)) &&
    (mapping === 'destination' || matchesAny(sourceNamespaces, target.agent))
  );
}

/**
 * Argo CD's `default` project as it creates it, which lets every Application do everything. A hub that never touched
 * projects has only this one, and a managed cluster without it reports every Application as invalid.
 */
export function isUntouchedDefault(project: AppProject): boolean {
  const { sourceRepos, destinations, clusterResourceWhitelist, ...rest } = project.spec;
  return (
    project.metadata.name === 'default' &&
    [sourceRepos, destinations, clusterResourceWhitelist].every((list) => Array.isArray(list) && list.length === 1) &&
    canonicalJson([sourceRepos, destinations, clusterResourceWhitelist]) ===
      canonicalJson([['*'], [{ namespace: '*', server: '*' }], [{ group: '*', kind: '*' }]]) &&
    Object.keys(rest).length === 0
  );
}

/**
 * The project as an agent gets it, for the Argo CD of the managed cluster itself:
 * - of the destinations those that mean this agent, and the namespaces that are denied there
 * - of sync windows and service accounts those that apply to its cluster
 * - no roles, which belong to the hub's users; `sourceNamespaces` only with destination-based mapping
 * - no `permitOnlyProjectScopedClusters`: the hub has decided by its cluster Secrets, and the cluster has none
 */
export function projectForAgent(project: AppProject, target: ProjectTarget, mapping: Mapping): AppProject {
  const {
    sourceNamespaces,
    roles: _roles,
    destinations = [],
    syncWindows,
    destinationServiceAccounts: accounts,
    permitOnlyProjectScopedClusters: _scoped,
    ...spec
  } = project.spec;
  const { ownerReferences: _owners, managedFields: _fields, ...metadata } = project.metadata;
  const { status: _status, ...rest } = project;
  return {
    ...rest,
    metadata,
    spec: {
      ...spec,
      destinations: localDestinations(destinations, target),
      ...(syncWindows && {
        syncWindows: windowsForCluster(syncWindows, (pattern) => isClusterOf(pattern, target), inCluster.name),
      }),
      ...(accounts && { destinationServiceAccounts: localAccounts(accounts, target) }),
      ...(mapping === 'destination' && sourceNamespaces !== undefined ? { sourceNamespaces } : {}),
    },
  };
}

function localDestinations(destinations: readonly Destination[], target: ProjectTarget): Destination[] {
  const local = destinations
    .map((destination) => localDestination(destination, target))
    .filter((destination) => destination !== undefined);
  return [...new Map(local.map((one) => [canonicalJson(one), one])).values()];
}

/** Denies all clusters. With `!https://kubernetes.default.svc` an entry would permit all others. */
const nowhere = '!**';

/** An entry that permits and denies on the agent's cluster what the hub's entry does there. */
function localDestination(destination: Destination, target: ProjectTarget): Destination | undefined {
  const { namespace = '' } = destination;
  const { isServer, deniesName, deniesServer, permits } = meaningOf(destination, target);
  if (!permits) {
    return deniesName ? { name: nowhere, namespace } : deniesServer ? { server: nowhere, namespace } : undefined;
  }
  if (deniesName) {
    return { ...destination, name: nowhere, server: inCluster.server };
  }
  if (!isServer && isDenial(namespace)) {
    // Argo CD obeys a negated namespace only where the server matches.
    const { server: _, ...rest } = destination;
    return { ...rest, name: inCluster.name };
  }
  return { ...destination, ...inCluster };
}

/**
 * Argo CD takes the first entry whose globs match the URL of the cluster and the namespace
 * (`DeriveServiceAccountToImpersonate`), and carries out nothing when it comes to one that is no glob.
 */
function localAccounts(accounts: readonly DestinationServiceAccount[], target: ProjectTarget) {
  const local = new Map<string, DestinationServiceAccount>();
  for (const account of accounts) {
    const { server, namespace = '' } = account;
    const turned = isGlob(server) ? { ...account, server: inCluster.server } : account;
    const key = `${turned.server}/${namespace}`;
    if ((turned === account || isServerOf(server, target)) && !local.has(key)) {
      local.set(key, turned);
    }
  }
  return [...local.values()];
}

/** What a destination says of an agent's cluster. */
interface Meaning {
  readonly isServer: boolean;
  /** By its name or by its server it permits the cluster's namespaces that match. */
  readonly permits: boolean;
  /** It denies whatever it does not permit. */
  readonly deniesName: boolean;
  /** It denies the namespaces that match. */
  readonly deniesServer: boolean;
  /** It denies all of the cluster. */
  readonly deniesAll: boolean;
}

function meaningOf({ name = '', server = '', namespace = '' }: Destination, target: ProjectTarget): Meaning {
  const isName = isDenial(name) ? !isNameOf(name.slice(1), target) : isNameOf(name, target);
  const isServer = isDenial(server) ? isOtherServer(server.slice(1), target) : isServerOf(server, target);
  const permits = isName || isServer;
  const deniesName = isDenial(name) && !isName;
  const deniesServer = isDenial(server) && !permits;
  const deniesAll = !permits && (deniesName || (deniesServer && /^\**$/.test(namespace)));
  return { isServer, permits, deniesName, deniesServer, deniesAll };
}

function isClusterOf(pattern: string, target: ProjectTarget): boolean {
  return isNameOf(pattern, target) || isServerOf(pattern, target);
}

function isNameOf(pattern: string, { agent, clusters }: ProjectTarget): boolean {
  return matchesGlob(pattern, agent) || clusters.some(({ name }) => name !== '' && matchesGlob(pattern, name));
}

/** Of an agent whose servers are not known nothing can be said. */
function isOtherServer(pattern: string, target: ProjectTarget): boolean {
  return target.clusters.some(({ server }) => server !== '') && !isServerOf(pattern, target);
}

function isServerOf(pattern: string, { agent, clusters }: ProjectTarget): boolean {
  if (pattern === '*' || clusters.some(({ server }) => server !== '' && matchesGlob(pattern, server))) {
    return true;
  }
  const agents =
    pattern.includes('agentName') && URL.canParse(pattern)
      ? (new URL(pattern).searchParams.get('agentName') ?? '')
      : '';
  return agents !== '' && matchesGlob(agents, agent);
}
