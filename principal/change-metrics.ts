import { wellKnown } from '../lib/base/index.ts';
import type { ConfigMap, Informer, KubeObject, Secret } from '../lib/kube/index.ts';
import type { PrincipalCaches } from './caches.ts';
import type { CountedKind, PrincipalMetrics } from './metrics.ts';

/** Counts what changes on the hub. */
export function countChanges(caches: PrincipalCaches, metrics: PrincipalMetrics): void {
  count(caches.Applications, 'applications', metrics);
  count(caches.AppProjects, 'app_projects', metrics);
  count(caches.Secrets, 'repositories', metrics, isRepository);
}

/** How many GPG keys the hub's Argo CD has. */
export function gpgKeyCount(informer: Informer<ConfigMap>): number {
  return informer.list().reduce((sum, { data }) => sum + Object.keys(data ?? {}).length, 0);
}

function count<T extends KubeObject>(
  informer: Informer<T>,
  kind: CountedKind,
  metrics: PrincipalMetrics,
  counts: (object: T) => boolean = () => true,
): void {
  informer.subscribe({
    added: (now) => counts(now) && metrics.changed(kind, 'created'),
    updated: (_, now) => counts(now) && metrics.changed(kind, 'updated'),
    deleted: (last) => counts(last) && metrics.changed(kind, 'deleted'),
  });
}

function isRepository({ metadata }: Secret): boolean {
  const type = metadata.labels?.[wellKnown.secretTypeLabel];
  return type === 'repository' || type === 'repo-creds';
}
