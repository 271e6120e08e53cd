import { type Caches, keys, labelValue } from '../hub/index.ts';

/** Key of the GitOpsCluster that owns a cluster, read from the objects made for it; undefined without such objects. */
export function currentOwnerOf(cluster: string, caches: Caches): string | undefined {
  const marked = [
    ...caches.addOns.list(cluster),
    ...caches.works.list(cluster),
    ...caches.ownSecrets.byIndex('cluster', labelValue(cluster)),
  ];
  return marked.map(({ metadata }) => metadata.annotations?.[keys.owner]).find(Boolean);
}
