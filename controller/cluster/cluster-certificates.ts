import { fingerprintsOf } from '../../lib/pki/index.ts';
import { partWorkName } from '../hub/index.ts';
import type { ClusterCertificates } from '../ownership/index.ts';
import type { RenderedWork } from '../render/index.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';
import type { DeliveredSecrets } from './cluster-secrets.ts';
import { isApplied } from './cluster-works.ts';

/**
 * The authorities that a cluster trusts and uses. They are known once the cluster reports that it has applied the current
 * works; before that the result names none.
 */
export function clusterCertificates(
  { caches }: Pick<ClusterDeps, 'caches'>,
  { cluster, foundation }: Pick<Enrolment, 'cluster' | 'foundation'>,
  rendered: readonly RenderedWork[],
  delivered: DeliveredSecrets,
): ClusterCertificates {
  const isThere = rendered
    .filter(({ spec }) => spec.workload.manifests.some(({ kind }) => kind === 'Secret'))
    .every(({ part, index, spec }) =>
      isApplied(caches.works.get({ namespace: cluster, name: partWorkName(part, index) }), spec),
    );
  if (!isThere) {
    return { trusts: [], authority: undefined };
  }
  return { trusts: fingerprintsOf(foundation.authorities), authority: delivered.authority };
}
