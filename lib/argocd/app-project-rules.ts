import { canonicalJson } from '../base/index.ts';
import type { AppProject, Destination } from './application.ts';
import { matchesAny, matchesGlob } from './glob.ts';

/** How Applications are mapped to agents; projects follow. */
export type Mapping = 'namespace' | 'destination';

/**
 * Whether a managed agent gets a project: a destination names it (a glob on `name`, `server` `*`, or an `agentName`
 * parameter in `server`), no destination denies it (`name` beginning with `!`), and with namespace-based mapping
 * `sourceNamespaces` admits its namespace. So argocd-agent's rule; Argo CD's untouched `default` project, which has no
 * `sourceNamespaces`, goes to nobody with namespace-based mapping.
 */
export function isProjectForAgent(project: AppProject, agent: string, mapping: Mapping): boolean {
  const destinations = project.spec.destinations ?? [];
  if (destinations.some(({ name = '' }) => name.startsWith('!') && matchesGlob(name.slice(1), agent))) {
    return false;
  }
  return (
    destinations.some((destination) => isDestinationForAgent(destination, agent)) &&
    (mapping === 'destination' || matchesAny(project.spec.sourceNamespaces ?? [], agent))
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
 * The project as an agent gets it: only the destinations that are for it, turned to the managed cluster itself and
 * without duplicates; no roles, which belong to the hub's users; `sourceNamespaces` only with destination-based mapping.
 */
export function projectForAgent(project: AppProject, agent: string, mapping: Mapping): AppProject {
  const { sourceNamespaces, roles: _roles, destinations = [], ...spec } = project.spec;
  const { ownerReferences: _owners, managedFields: _fields, ...metadata } = project.metadata;
  const { status: _status, ...rest } = project;
  const local = new Map<string, Destination>();
  for (const destination of destinations) {
    if (isDestinationForAgent(destination, agent)) {
      const turned = { ...destination, name: 'in-cluster', server: 'https://kubernetes.default.svc' };
      local.set(canonicalJson(turned), turned);
    }
  }
  return {
    ...rest,
    metadata,
    spec: {
      ...spec,
      destinations: [...local.values()],
      ...(mapping === 'destination' && sourceNamespaces !== undefined ? { sourceNamespaces } : {}),
    },
  };
}

function isDestinationForAgent({ name = '', server = '' }: Destination, agent: string): boolean {
  if (name !== '') {
    return matchesGlob(name, agent);
  }
  if (server === '*') {
    return true;
  }
  const pattern = URL.canParse(server) ? (new URL(server).searchParams.get('agentName') ?? '') : '';
  return pattern !== '' && matchesGlob(pattern, agent);
}
