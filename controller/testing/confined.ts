import { ApiError, type KubeClient } from '../../lib/kube/index.ts';

/** A client with the rights of the chart: on Secrets and workloads only in the namespaces in which it has a Role. */
export function confined(client: KubeClient, isGranted: (namespace: string) => boolean): KubeClient {
  const clusterWide = new Set([
    'gitopsclusters',
    'placements',
    'placementdecisions',
    'managedclusteraddons',
    'manifestworks',
    'addondeploymentconfigs',
    'applications',
    'gateways',
    'events',
  ]);
  /** Of these kinds, objects in all namespaces may only be read. */
  const readOnly = new Set(['placements', 'placementdecisions']);
  const reads = new Set<PropertyKey>(['get', 'list', 'listPage', 'watch']);
  const refuse = (what: string, plural: string, namespace: string | undefined) => {
    throw new ApiError({ status: 403, message: `${what} ${plural} in ${namespace ?? 'all namespaces'} is forbidden` });
  };
  return new Proxy(client, {
    get: (target, property) => {
      const value = Reflect.get(target, property, target);
      if (typeof value !== 'function') {
        return value;
      }
      return (...args: unknown[]) => {
        const [type, of] = args as [
          { plural: string; namespaced: boolean }?,
          { namespace?: string; metadata?: { namespace?: string } }?,
        ];
        const namespace = of?.namespace ?? of?.metadata?.namespace;
        const isWide = type && clusterWide.has(type.plural) && (reads.has(property) || !readOnly.has(type.plural));
        if (type?.namespaced && !isWide && (namespace === undefined || !isGranted(namespace))) {
          return refuse(String(property), type.plural, namespace);
        }
        return value.apply(target, args);
      };
    },
  });
}
