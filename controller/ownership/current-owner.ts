import { type Caches, keys, labelValue } from '../hub/index.ts';

/** The GitOpsCluster that a cluster belongs to, by what was made for it; undefined when there is nothing of ours. */
export function currentOwnerOf(cluster: string, caches: Caches): string | undefined {
  const marked = [
    ...caches.addOns.list(cluster),
    ...caches.works.list(cluster),
    ...caches.ownSecrets.byIndex('cluster', labelValue(cluster)),
  ];
  return marked.map(({ metadata }) => metadata.annotations?.[keys.owner]).find(Boolean);
}
