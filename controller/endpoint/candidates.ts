import type { EndpointSlice, KubeNode, Service, ServicePort } from '../../lib/kube/index.ts';
import type { Gateway, Ingress, Route, TlsRoute } from './ingress-kinds.ts';

/** The objects on the hub that may make the principal reachable from outside. */
export interface ServiceExposure {
  readonly service: Service | undefined;
  /** All Services of the principal's labels, among them that of the fleet page. */
  readonly services: readonly Service[];
  /** The endpoints of the Service. */
  readonly slices: readonly EndpointSlice[];
  /** Only read when the Service has node ports. */
  readonly nodes: readonly KubeNode[];
  /** Ingresses, Routes and TLSRoutes of the Service's namespace; Gateways of all namespaces. */
  readonly ingresses: readonly Ingress[];
  readonly routes: readonly Route[];
  readonly tlsRoutes: readonly TlsRoute[];
  readonly gateways: readonly Gateway[];
}

/** Address and port at which agents reach the principal. */
export interface PrincipalEndpoint {
  readonly address: string;
  readonly port: string;
}

/** An endpoint that agents could use. */
interface Candidate extends PrincipalEndpoint {
  /** Its node is not ready. */
  readonly isAway?: boolean;
}

/**
 * The external endpoints of the principal, best first: the Service's load balancer, TLSRoutes, Routes, Ingresses, nodes.
 * Agents authenticate by client certificates, so only endpoints that pass TLS through count. For an Ingress this cannot be
 * checked.
 */
export function endpointCandidates(exposure: ServiceExposure): Candidate[] {
  const { service } = exposure;
  if (service === undefined) {
    return [];
  }
  const found = [
    ...ofLoadBalancer(service),
    ...ofTlsRoutes(exposure, service.metadata.name),
    ...ofRoutes(exposure.routes, service.metadata.name),
    ...ofIngresses(exposure.ingresses, service.metadata.name),
    ...ofNodes(exposure.nodes, service),
  ];
  return found.filter(({ address }) => address !== '' && !address.startsWith('*'));
}

/**
 * Whether a ready pod is behind the principal's Service; undefined when that cannot be seen, because there is no Service
 * or it leads to a name outside the hub.
 */
export function hasReadyEndpoint({ service, slices }: ServiceExposure): boolean | undefined {
  if (service === undefined || service.spec?.type === 'ExternalName') {
    return undefined;
  }
  // Kubernetes: an endpoint without the condition counts as ready.
  return slices.some(({ endpoints }) => endpoints?.some(({ conditions }) => conditions?.ready !== false));
}

/** The Service's port for agents; 443 when none is recognised. */
export function servingPort(service: Service): number {
  return (service.spec?.ports ?? []).find(isServing)?.port ?? 443;
}

function ofLoadBalancer(service: Service): PrincipalEndpoint[] {
  const port = String(servingPort(service));
  return (service.status?.loadBalancer?.ingress ?? []).flatMap(({ hostname, ip }) =>
    [hostname, ip].flatMap((address) => (address ? [{ address, port }] : [])),
  );
}

function ofTlsRoutes({ tlsRoutes, gateways }: ServiceExposure, service: string): PrincipalEndpoint[] {
  return byName(tlsRoutes).flatMap(({ metadata, spec }) => {
    const backends = (spec?.rules ?? []).flatMap(({ backendRefs = [] }) => backendRefs);
    const isOurs = backends.some(
      ({ kind = 'Service', namespace = metadata.namespace, name }) =>
        kind === 'Service' && namespace === metadata.namespace && name === service,
    );
    if (!isOurs) {
      return [];
    }
    return (spec?.parentRefs ?? []).flatMap((parent) => {
      const { kind = 'Gateway', namespace = metadata.namespace, name, sectionName, port } = parent;
      if (kind !== 'Gateway') {
        return [];
      }
      const gateway = gateways.find((one) => one.metadata.namespace === namespace && one.metadata.name === name);
      const listeners = (gateway?.spec?.listeners ?? []).filter(
        (one) =>
          (sectionName === undefined ? one.protocol === 'TLS' : one.name === sectionName) &&
          (port === undefined || one.port === port),
      );
      // One that ends TLS itself shows agents a certificate that is not the principal's.
      const [listener] = listeners.filter(({ tls }) => tls?.mode !== 'Terminate');
      if (listeners.length > 0 && listener === undefined) {
        return [];
      }
      const own = listener?.hostname ?? gateway?.status?.addresses?.[0]?.value ?? '';
      const addresses = spec?.hostnames?.length ? spec.hostnames : [own];
      return addresses.map((address) => ({ address, port: String(port ?? listener?.port ?? 443) }));
    });
  });
}

function ofRoutes(routes: readonly Route[], service: string): PrincipalEndpoint[] {
  return byName(routes).flatMap(({ spec, status }) => {
    const { kind = 'Service', name } = spec?.to ?? {};
    if (kind !== 'Service' || name !== service || spec?.tls?.termination !== 'passthrough') {
      return [];
    }
    const admitted = (status?.ingress ?? []).flatMap(({ host }) => host ?? []);
    return (admitted.length > 0 ? admitted : [spec.host ?? '']).map((address) => ({ address, port: '443' }));
  });
}

function ofIngresses(ingresses: readonly Ingress[], service: string): PrincipalEndpoint[] {
  return byName(ingresses).flatMap(({ spec, status }) => {
    const own = (status?.loadBalancer?.ingress ?? []).map(({ hostname, ip }) => hostname || ip || '');
    const rules = (spec?.rules ?? []).filter(({ http }) =>
      http?.paths?.some(({ backend }) => backend?.service?.name === service),
    );
    const hosts = rules.flatMap(({ host }) => (host ? [host] : own));
    if (spec?.defaultBackend?.service?.name === service) {
      hosts.push(...own);
    }
    return hosts.map((address) => ({ address, port: '443' }));
  });
}

/** All nodes, ready ones first. Empty unless the Service is a NodePort. */
function ofNodes(nodes: readonly KubeNode[], service: Service): Candidate[] {
  if (service.spec?.type !== 'NodePort') {
    return [];
  }
  const withNodePort = (service.spec.ports ?? []).filter(({ nodePort }) => nodePort);
  const port = (withNodePort.find(isServing) ?? withNodePort[0])?.nodePort;
  if (port === undefined) {
    return [];
  }
  return [...byName(nodes)]
    .sort((a, b) => Number(isReady(b)) - Number(isReady(a)))
    .map((node) => ({ address: internalAddress(node) ?? '', port: String(port), isAway: !isReady(node) }));
}

/** Sorted by namespace and name, so that the result does not depend on the order of arrival. */
function byName<T extends { metadata: { namespace?: string; name: string } }>(objects: readonly T[]): T[] {
  const key = ({ metadata: { namespace = '', name } }: T) => `${namespace}/${name}`;
  return [...objects].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function isServing({ name, port }: ServicePort): boolean {
  return name === 'https' || port === 443 || port === 8443;
}

/** A node that is cordoned takes no new pods. Its ports work. */
function isReady({ status }: KubeNode): boolean {
  const conditions = (status?.conditions ?? []) as { type: string; status: string }[];
  return conditions.some((one) => one.type === 'Ready' && one.status === 'True');
}

function internalAddress(node: KubeNode): string | undefined {
  const addresses = (node.status?.addresses ?? []) as { type?: string; address?: string }[];
  return addresses.find(({ type }) => type === 'InternalIP')?.address;
}
