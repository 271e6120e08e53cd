import type { AppProject, Destination } from './application.ts';
import { matchesAny, matchesGlob } from './glob.ts';
import { isDenial } from './project-clusters.ts';
import { normalRepositoryUrl } from './repository-use.ts';

/**
 * Whether a project admits Applications of a namespace other than Argo CD's own: an entry of `sourceNamespaces` matches.
 * This is the rule of Argo CD's `AppProject.IsAppNamespacePermitted`.
 */
export function admitsNamespace({ spec }: AppProject, namespace: string): boolean {
  return matchesAny(spec.sourceNamespaces ?? [], namespace);
}

/**
 * Whether the destinations of a project permit a destination: one matches, and none of those with `!` denies it. This is
 * the rule of Argo CD's `AppProject.isDestinationMatched`, without `permitOnlyProjectScopedClusters`.
 * @param destination name and server of one cluster
 */
export function permitsDestination({ spec }: AppProject, destination: Required<Destination>): boolean {
  let isPermitted = false;
  for (const { name = '', server = '', namespace = '' } of spec.destinations ?? []) {
    const isName = destination.name !== '' && matchesDeniable(name, destination.name);
    const isServer = destination.server !== '' && matchesDeniable(server, destination.server);
    const isNamespace = matchesDeniable(namespace, destination.namespace);
    if ((isName || isServer) && isNamespace) {
      isPermitted = true;
    } else if (
      (!isName && isDenial(name)) ||
      (!isServer && isDenial(server) && isNamespace) ||
      (!isNamespace && isDenial(namespace) && isServer)
    ) {
      return false;
    }
  }
  return isPermitted;
}

/**
 * Whether a project permits Applications with a source in a repository. This is the rule of Argo CD's
 * `AppProject.IsSourcePermitted`. An address of more than 4,096 characters is permitted by none.
 */
export function permitsSource({ spec: { sourceRepos } }: AppProject, url: string): boolean {
  if (url.length > longestUrl) {
    return false;
  }
  const text = normalRepositoryUrl(url);
  const entries = Array.isArray(sourceRepos) ? sourceRepos.filter((entry) => typeof entry === 'string') : [];
  const matches = (pattern: string) => pattern === '*' || matchesGlob(normalRepositoryUrl(pattern), text, '/');
  const denied = entries.filter(isDenial);
  return (
    !denied.some((entry) => matches(entry.slice(1))) &&
    // To Argo CD a list that only denies permits the rest.
    (denied.length > 0 || entries.some(matches))
  );
}

/** Git and registries take no longer ones. Matching takes time in proportion to it, and whoever writes an Application chooses it. */
const longestUrl = 4_096;

/** Argo CD reads `!pattern` as: everything that `pattern` does not match. */
function matchesDeniable(pattern: string, text: string): boolean {
  return isDenial(pattern) ? !matchesGlob(pattern.slice(1), text) : matchesGlob(pattern, text);
}
