import { clusterUrl, routingUrl } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import type { KubeObject, Secret } from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';

/** An Application of the hub, with the fields that detaching a cluster reads. */
export interface HubApplication extends KubeObject {
  spec?: { destination?: { name?: string; server?: string } };
}

/** Keeps only the fields of {@link HubApplication}: a hub may have very many Applications. */
export function slimApplication({ metadata, spec }: HubApplication): HubApplication {
  const { namespace, name, uid, resourceVersion, deletionTimestamp, ownerReferences } = metadata;
  const { name: cluster, server } = spec?.destination ?? {};
  const destination = {
    ...(cluster === undefined ? {} : { name: cluster }),
    ...(server === undefined ? {} : { server }),
  };
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
    },
    ...(cluster === undefined && server === undefined ? {} : { spec: { destination } }),
  };
}

/**
 * Names and URLs of the clusters whose agent may own an Application: its destination's (destination-based mapping) and its
 * namespace.
 */
export function clustersOf(application: HubApplication): string[] {
  const { metadata, spec } = application;
  const named = [spec?.destination?.name, routingUrl(application), metadata.namespace];
  return [...new Set(named.flatMap((one) => one || []))];
}

/** The URL in a cluster Secret, by which Applications may name the cluster; none in any other Secret. */
export function urlsIn({ metadata, data }: Secret): string[] {
  const server = metadata.labels?.[wellKnown.secretTypeLabel] === 'cluster' ? (secretText(data, 'server') ?? '') : '';
  return server === '' ? [] : [clusterUrl(server)];
}
