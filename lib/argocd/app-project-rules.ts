import { canonicalJson } from '../base/index.ts';
import type { AppProject, Destination, DestinationServiceAccount } from './application.ts';
import { isGlob, matchesAny, matchesGlob } from './glob.ts';
import { type ArgoCluster, inCluster, windowsForCluster } from './project-clusters.ts';

/** How Applications are mapped to agents; projects follow. */
export type Mapping = 'namespace' | 'destination';

/** A managed agent as AppProjects of the hub mean it. */
export interface ProjectTarget {
  readonly agent: string;
  /** Its clusters in the hub's Argo CD. */
  readonly clusters: readonly ArgoCluster[];
}

/**
 * Whether a managed agent gets a project: a destination means it (a glob on `name`; or without a name a glob on `server`,
 * which may name the agent in its parameter `agentName`), no destination denies it (`name` or `server` with `!`), and with
 * namespace-based mapping `sourceNamespaces` admits its namespace. This is argocd-agent's rule, with Argo CD's one for
 * servers. Argo CD's untouched `default` project, which has no `sourceNamespaces`, goes to nobody with namespace-based mapping.
 */
export function isProjectForAgent(project: AppProject, target: ProjectTarget, mapping: Mapping): boolean {
  const destinations = project.spec.destinations ?? [];
  return (
    !destinations.some((destination) => isDenied(destination, target)) &&
    destinations.some((destination) => isDestinationForAgent(destination, target)) &&
    (mapping === 'destination' || matchesAny(project.spec.sourceNamespaces ?? [], target.agent))
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
 */
export function projectForAgent(project: AppProject, target: ProjectTarget, mapping: Mapping): AppProject {
  const {
    sourceNamespaces,
    roles: _roles,
    destinations = [],
    syncWindows,
    destinationServiceAccounts: accounts,
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
  const local = new Map<string, Destination>();
  for (const destination of destinations) {
    const { server = '', namespace = '' } = destination;
    const turned = isDestinationForAgent(destination, target)
      ? { ...destination, ...inCluster }
      : server.startsWith('!') && isServerOf(server.slice(1), target)
        ? // It denies a namespace. With `!https://kubernetes.default.svc` it would permit it on all other clusters.
          { server: '!**', namespace }
        : undefined;
    if (turned !== undefined) {
      local.set(canonicalJson(turned), turned);
    }
  }
  return [...local.values()];
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

function isDestinationForAgent({ name = '', server = '' }: Destination, target: ProjectTarget): boolean {
  return name === '' ? isServerOf(server, target) : matchesGlob(name, target.agent);
}

/** Whether a destination denies an agent all namespaces. Argo CD obeys a negated name whatever the namespace is. */
function isDenied({ name = '', server = '', namespace = '' }: Destination, target: ProjectTarget): boolean {
  return (
    (name.startsWith('!') && isNameOf(name.slice(1), target)) ||
    (server.startsWith('!') && isServerOf(server.slice(1), target) && /^\**$/.test(namespace))
  );
}

function isClusterOf(pattern: string, target: ProjectTarget): boolean {
  return isNameOf(pattern, target) || isServerOf(pattern, target);
}

function isNameOf(pattern: string, { agent, clusters }: ProjectTarget): boolean {
  return matchesGlob(pattern, agent) || clusters.some(({ name }) => name !== '' && matchesGlob(pattern, name));
}

function isServerOf(pattern: string, { agent, clusters }: ProjectTarget): boolean {
  if (pattern === '*' || clusters.some(({ server }) => server !== '' && matchesGlob(pattern, server))) {
    return true;
  }
  const agents = URL.canParse(pattern) ? (new URL(pattern).searchParams.get('agentName') ?? '') : '';
  return agents !== '' && matchesGlob(agents, agent);
}
