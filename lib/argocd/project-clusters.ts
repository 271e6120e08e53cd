import { canonicalJson } from '../base/index.ts';
import type { SyncWindow } from './application.ts';
import { matchesGlob } from './glob.ts';

/** A cluster as an Argo CD knows it: the name and the server's URL in its cluster Secret. */
export interface ArgoCluster {
  readonly name: string;
  readonly server: string;
}

/** The cluster that Argo CD itself runs on, as it calls it. */
export const inCluster: ArgoCluster = { name: 'in-cluster', server: 'https://kubernetes.default.svc' };

/** Whether a glob of an AppProject matches the name or the URL of a cluster. An empty text matches nothing, as in Argo CD. */
export function matchesCluster(pattern: string, { name, server }: ArgoCluster): boolean {
  return (name !== '' && matchesGlob(pattern, name)) || (server !== '' && matchesGlob(pattern, server));
}

/** Whether a pattern of an AppProject denies what it names. */
export function isDenial(pattern: string): boolean {
  return pattern.startsWith('!');
}

/** A glob that matches this text alone, and that Argo CD does not take for a negation. */
export function literalGlob(text: string): string {
  return text.replace(/[\\*?[\]{}!]/g, '\\$&');
}

/**
 * The sync windows of a project for another Argo CD, which has one of the clusters that `clusters` may mean and calls it
 * `name`. A window applies there to the same Applications of this cluster, by Argo CD's rule (`SyncWindows.Matches`):
 * - With `andOperator`, all of the lists that are set must match. A window for other clusters then applies to nothing.
 * - Without it, one list is enough. The other lists of a window for other clusters still count.
 * @param isHere whether a pattern matches this cluster
 */
export function windowsForCluster(
  windows: readonly SyncWindow[],
  isHere: (pattern: string) => boolean,
  name: string,
): SyncWindow[] {
  const result = new Map<string, SyncWindow>();
  for (const window of windows) {
    const translated = windowForCluster(window, isHere, name);
    if (translated !== undefined) {
      // Argo CD refuses a project that has a window twice.
      result.set(canonicalJson(translated), translated);
    }
  }
  return [...result.values()];
}

function windowForCluster(
  window: SyncWindow,
  isHere: (pattern: string) => boolean,
  name: string,
): SyncWindow | undefined {
  const { clusters, ...others } = window;
  if (clusters === undefined || clusters.length === 0) {
    return window;
  }
  if (clusters.some(isHere)) {
    return { ...window, clusters: [name] };
  }
  const { andOperator = false, applications = [], namespaces = [] } = window;
  return andOperator || applications.length + namespaces.length === 0 ? undefined : others;
}
