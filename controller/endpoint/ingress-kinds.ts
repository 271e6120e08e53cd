import { type KubeNode, type KubeObject, resourceType } from '../../lib/kube/index.ts';

/** networking.k8s.io/v1 Ingress, with the fields that are read here. */
export interface Ingress extends KubeObject {
  spec?: {
    defaultBackend?: IngressBackend;
    rules?: { host?: string; http?: { paths?: { backend?: IngressBackend }[] } }[];
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

interface IngressBackend {
  service?: { name?: string };
}

/** route.openshift.io/v1 Route, with the fields that are read here. */
export interface Route extends KubeObject {
  spec?: { host?: string; to?: { kind?: string; name?: string }; tls?: { termination?: string } };
  status?: { ingress?: { host?: string }[] };
}

/** gateway.networking.k8s.io TLSRoute, with the fields that are read here. */
export interface TlsRoute extends KubeObject {
  spec?: {
    hostnames?: string[];
    parentRefs?: { kind?: string; namespace?: string; name: string; sectionName?: string; port?: number }[];
    rules?: { backendRefs?: { kind?: string; namespace?: string; name: string }[] }[];
  };
}

/** gateway.networking.k8s.io Gateway, with the fields that are read here. */
export interface Gateway extends KubeObject {
  spec?: {
    listeners?: { name: string; hostname?: string; port: number; protocol?: string; tls?: { mode?: string } }[];
  };
  status?: { addresses?: { value: string }[] };
}

const gateway = { group: 'gateway.networking.k8s.io', namespaced: true };

/** networking.k8s.io/v1 Ingress. */
export const ingresses = resourceType<Ingress>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'Ingress',
  plural: 'ingresses',
  namespaced: true,
});
/** route.openshift.io/v1 Route. */
export const routes = resourceType<Route>({
  group: 'route.openshift.io',
  version: 'v1',
  kind: 'Route',
  plural: 'routes',
  namespaced: true,
});
/** gateway.networking.k8s.io TLSRoute of the given version, for example `v1`. */
export const tlsRoutes = (version: string) =>
  resourceType<TlsRoute>({ ...gateway, version, kind: 'TLSRoute', plural: 'tlsroutes' });
/** gateway.networking.k8s.io Gateway of the given version. */
export const gateways = (version: string) =>
  resourceType<Gateway>({ ...gateway, version, kind: 'Gateway', plural: 'gateways' });
/** apiregistration.k8s.io/v1 APIService. The API server has one for every group and version that it serves. */
export const apiServices = resourceType({
  group: 'apiregistration.k8s.io',
  version: 'v1',
  kind: 'APIService',
  plural: 'apiservices',
  namespaced: false,
});

/** Drops the fields of a node that change every few minutes. */
export function slimNode({ apiVersion, kind, metadata, spec, status }: KubeNode): KubeNode {
  const { name, uid, resourceVersion } = metadata;
  const conditions = (status?.conditions ?? []) as { type: string; status: string }[];
  const ready = conditions.filter(({ type }) => type === 'Ready').map(({ type, status: is }) => ({ type, status: is }));
  return {
    ...(apiVersion && { apiVersion }),
    ...(kind && { kind }),
    metadata: { name, ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) },
    spec: { unschedulable: spec?.unschedulable === true },
    status: { addresses: status?.addresses ?? [], conditions: ready },
  };
}
