import type { Secret } from '../../lib/kube/index.ts';
import {
  addOnName,
  type Caches,
  clientSecretName,
  keys,
  type ManagedClusterAddOn,
  type ManifestWork,
  signerName,
} from '../hub/index.ts';
import type { Foundation } from '../spec/index.ts';
import { hasIssued } from './issued-certificate.ts';

/**
 * How a cluster gets its agent's certificate. Both are true while a cluster with a delivered key is to request its own: it
 * keeps the delivered one until a requested certificate is issued.
 */
export interface ClientCertificatePlan {
  /** The hub makes the key, and the works deliver it. */
  readonly isDelivered: boolean;
  /** OCM's registration agent of the cluster makes a key and requests the certificate. */
  readonly isRequested: boolean;
}

/**
 * Decides how a cluster gets its agent's certificate. Without a setting, the cluster requests it; a cluster that has a
 * delivered key keeps that. The key itself is the record of this, so nothing but a setting changes an enrolled cluster.
 * @param secret the hub's Secret with the values that are delivered to the cluster
 */
export function planClientCertificate(
  { addOns, works }: Pick<Caches, 'addOns' | 'works'>,
  { cluster, foundation, now }: { cluster: string; foundation: Pick<Foundation, 'addOn'>; now: Date },
  secret: Secret | undefined,
): ClientCertificatePlan {
  const setting = foundation.addOn.clientCertificate;
  const addOn = addOns.get({ namespace: cluster, name: addOnName });
  const hasKey = secret?.data?.['tls.key'] !== undefined || works.list(cluster).some(deliversKey);
  if (setting === 'Generated' || (setting === undefined && (hasKey || (!secret && isTakenOver(addOn))))) {
    return { isDelivered: true, isRequested: false };
  }
  return { isDelivered: hasKey && !hasIssued(addOn, now), isRequested: true };
}

/**
 * Whether argocd-pull-integration has enrolled the cluster, and this controller has not changed its add-on yet. OCM's add-on
 * manager may still write such an add-on, and the certificate would go where its agent does not look for it.
 */
export function isTakenOver(addOn: ManagedClusterAddOn | undefined): boolean {
  const isRegistered = addOn?.status?.registrations?.some((one) => one.signerName === signerName) ?? false;
  return isRegistered && addOn?.metadata.annotations?.[keys.owner] === undefined;
}

function deliversKey({ spec }: ManifestWork): boolean {
  return spec.workload.manifests.some(({ kind, metadata }) => kind === 'Secret' && metadata.name === clientSecretName);
}
