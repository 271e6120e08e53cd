import { fingerprintsOf } from '../../lib/pki/index.ts';
import { workName } from '../hub/names.ts';
import type { RenderedWork } from '../render/pack.ts';
import type { ClusterCertificates } from '../trust/rotation.ts';
import type { ClusterContext } from './cluster-context.ts';
import type { DeliveredSecrets } from './cluster-secrets.ts';
import { isApplied } from './cluster-works.ts';

/**
 * What a cluster's certificates rest on, once it reports that it has applied what is delivered now; before that nobody
 * knows what it has.
 */
export function clusterCertificates(
  context: Pick<ClusterContext, 'cluster' | 'caches' | 'foundation'>,
  rendered: readonly RenderedWork[],
  delivered: DeliveredSecrets,
): ClusterCertificates {
  const { cluster, caches, foundation } = context;
  const isThere = rendered
    .filter(({ spec }) => spec.workload.manifests.some(({ kind }) => kind === 'Secret'))
    .every(({ part, index, spec }) =>
      isApplied(caches.works.get({ namespace: cluster, name: workName(part, index) }), spec),
    );
  if (!isThere) {
    return { trusts: [], authority: undefined };
  }
  return { trusts: fingerprintsOf(foundation.authorities), authority: delivered.authority };
}
