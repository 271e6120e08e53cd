import type { AppProject, Destination } from '../application.ts';
import { digestOf } from '../canonical-json.ts';
import { annotations } from '../names.ts';
import { matchesAny, matchesGlob } from '../patterns.ts';

/**
 * Whether an agent gets a project: one of its destinations means the agent and no denied one (`!` before the name) does;
 * with namespace-based mapping the agent's namespace must also be among `sourceNamespaces`. The rules are argocd-agent's.
 */
export function isProjectOfAgent(project: AppProject, agent: string, destinationBasedMapping: boolean): boolean {
  const destinations = project.spec.destinations ?? [];
  if (destinations.some(({ name }) => name?.startsWith('!') && matchesGlob(name.slice(1), agent))) return false;
  if (!destinations.some((destination) => isDestinationOfAgent(destination, agent))) return false;
  return destinationBasedMapping || matchesAny(project.spec.sourceNamespaces ?? [], agent);
}

function isDestinationOfAgent({ name, server }: Destination, agent: string): boolean {
  if (name !== undefined && name !== '') return !name.startsWith('!') && matchesGlob(name, agent);
  if (server === undefined || server === '') return false;
  if (server === '*') return true;
  const wanted = URL.canParse(server) ? new URL(server).searchParams.get('agentName') : null;
  return wanted !== null && wanted !== '' && matchesGlob(wanted, agent);
}

/**
 * A project as an agent gets it: only the destinations that mean the agent, turned to the cluster itself; no roles, whose
 * tokens are the hub's; and with namespace-based mapping no `sourceNamespaces`, which are the hub's too.
 */
export function projectForAgent(project: AppProject, agent: string, destinationBasedMapping: boolean): AppProject {
  const destinations = new Map<string, Destination>();
  for (const destination of project.spec.destinations ?? []) {
    if (isDestinationOfAgent(destination, agent)) {
      const local = { ...destination, name: 'in-cluster', server: 'https://kubernetes.default.svc' };
      destinations.set(local.namespace ?? '', local);
    }
  }
  const { sourceNamespaces, roles: _, ...rest } = project.spec;
  const spec = {
    ...rest,
    destinations: [...destinations.values()],
    ...(destinationBasedMapping && sourceNamespaces !== undefined ? { sourceNamespaces } : {}),
  };
  const { status: _status, ...others } = project;
  return { ...others, spec };
}

/** Equal for two projects of which an agent makes the same copy. */
export function projectDigest(project: AppProject): string {
  const { labels, annotations, finalizers, spec } = projectFields(project);
  return digestOf([labels, annotations, finalizers, spec]);
}

const hubOnly: ReadonlySet<string> = new Set([annotations.lastApplied, annotations.lastUpdated, annotations.sourceUid]);

/** What a copy takes over from the project that a principal sent. */
export function projectFields(project: AppProject): {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  finalizers: string[];
  spec: AppProject['spec'];
} {
  const { labels = {}, annotations = {}, finalizers = [] } = project.metadata;
  const shared = Object.fromEntries(Object.entries(annotations).filter(([key]) => !hubOnly.has(key)));
  return { labels, annotations: shared, finalizers, spec: project.spec };
}
