import type { Secret } from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import type { ManifestWork } from '../hub/index.ts';

/** Where the works deliver the generated values of a cluster: by key of the hub's Secret, Secret and key on the cluster. */
const places = {
  'redis-password': ['argocd-redis', 'auth'],
  'server.secretkey': ['argocd-secret', 'server.secretkey'],
} as const;

/**
 * Whether the works of a cluster contain a StatefulSet of an earlier version, without `podManagementPolicy`. Kubernetes does
 * not let that field change.
 */
export function deliversOrderedPods(works: readonly ManifestWork[]): boolean {
  return works
    .flatMap(({ spec }) => spec.workload.manifests)
    .some(
      (object) =>
        object.kind === 'StatefulSet' &&
        (object as { spec?: { podManagementPolicy?: string } }).spec?.podManagementPolicy !== 'Parallel',
    );
}

/** The generated values in the works of a cluster; undefined where the works have none. */
export function deliveredValues(works: readonly ManifestWork[]): Record<keyof typeof places, string | undefined> {
  const delivered = works.flatMap(({ spec }) => spec.workload.manifests).filter(({ kind }) => kind === 'Secret');
  const find = ([name, key]: readonly [string, string]) => {
    const texts = delivered.map((secret) =>
      secret.metadata.name === name ? secretText((secret as Secret).data, key) : undefined,
    );
    return texts.find(Boolean);
  };
  return { 'redis-password': find(places['redis-password']), 'server.secretkey': find(places['server.secretkey']) };
}
