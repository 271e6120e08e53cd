import { isIP } from 'node:net';
import type { KubeNode, Service, ServicePort } from '../lib/kube/index.ts';

/** Where agents find the principal. */
export interface Endpoint {
  readonly address: string;
  readonly port: string;
}

/** Names that the principal's Service may have, in order of preference: argocd-operator's and OpenShift GitOps'. */
export const principalServices = ['argocd-agent-principal', 'openshift-gitops-agent-principal'] as const;

/**
 * Finds the principal's endpoint: what the user wrote, and for what is left empty the Service: its load balancer first,
 * then its node port on the first node with an internal address.
 * @returns the endpoint, or why there is none
 */
export function discoverEndpoint(
  written: Endpoint,
  service: Service | undefined,
  nodes: readonly KubeNode[],
  namespace: string,
): Endpoint | { problem: string } {
  if (written.address && written.port) return written;
  if (service === undefined) {
    return {
      problem: `Server discovery failed: there is no Service ${principalServices.join(' or ')} in namespace ${namespace}, and spec.argoCDAgentAddon.principalServerAddress and principalServerPort are not both set`,
    };
  }
  const who = `service ${namespace}/${service.metadata.name}`;
  const ports = service.spec?.ports ?? [];
  const [ingress] = (service.status?.loadBalancer?.ingress ?? []).filter(({ hostname, ip }) => hostname || ip);
  if (ingress) {
    const port = ports.find(isServing)?.port ?? 443;
    return { address: written.address || ingress.hostname || ingress.ip || '', port: written.port || String(port) };
  }
  if (service.spec?.type === 'NodePort') {
    const address = written.address || nodes.map(internalAddress).find(Boolean);
    const withNodePort = ports.filter(({ nodePort }) => nodePort);
    const nodePort = (withNodePort.find(isServing) ?? withNodePort[0])?.nodePort;
    if (!address) return { problem: `Server discovery failed: ${who} is a NodePort and no node has an InternalIP` };
    if (!nodePort) return { problem: `Server discovery failed: ${who} has no node port` };
    return { address, port: written.port || String(nodePort) };
  }
  if (written.address) return { address: written.address, port: String(ports.find(isServing)?.port ?? 443) };
  return {
    problem: `Server discovery failed: no external endpoint found for ${who} (type ${service.spec?.type ?? 'ClusterIP'}); wait for its load balancer, or set spec.argoCDAgentAddon.principalServerAddress and principalServerPort`,
  };
}

/** `address:port`, with brackets around an IPv6 address. */
export function endpointText({ address, port }: Endpoint): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/** All names under which agents and clients on the hub may reach the principal. */
export function principalHosts(
  service: Service | undefined,
  nodes: readonly KubeNode[],
  namespace: string,
  endpoints: readonly string[],
): string[] {
  const ingress = (service?.status?.loadBalancer?.ingress ?? []).flatMap(({ hostname, ip }) => [hostname, ip]);
  const nodeAddresses = service?.spec?.type === 'NodePort' ? nodes.map(internalAddress) : [];
  const hosts = [
    ...ingress,
    ...nodeAddresses,
    ...serviceHosts(service?.metadata.name ?? principalServices[0], namespace),
    ...loopback,
    ...endpoints,
  ];
  return [...new Set(hosts.filter((host) => host !== undefined && host !== ''))] as string[];
}

/** All names under which Argo CD on the hub may reach the resource proxy. */
export function resourceProxyHosts(namespace: string, principalService: string): string[] {
  const names = ['argocd-agent-resource-proxy', principalService, `${principalService}-resource-proxy`];
  return [...names.flatMap((name) => serviceHosts(name, namespace)), ...loopback];
}

const loopback = ['localhost', '127.0.0.1', '::1'];

function serviceHosts(name: string, namespace: string): string[] {
  const full = `${name}.${namespace}.svc`;
  return [name, `${name}.${namespace}`, full, `${full}.cluster.local`];
}

function isServing({ name, port }: ServicePort): boolean {
  return name === 'https' || port === 443 || port === 8443;
}

function internalAddress(node: KubeNode): string | undefined {
  const addresses = (node.status?.addresses ?? []) as { type?: string; address?: string }[];
  return addresses.find(({ type }) => type === 'InternalIP')?.address;
}
