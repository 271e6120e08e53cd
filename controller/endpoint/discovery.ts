import { isIP } from 'node:net';
import { endpointCandidates, type PrincipalEndpoint, type ServiceExposure, servingPort } from './candidates.ts';

/** Names that the principal's Service may have, in order of preference: argocd-operator's and OpenShift GitOps'. */
export const principalServices = ['argocd-agent-principal', 'openshift-gitops-agent-principal'] as const;

/**
 * Finds the principal's endpoint: what the user wrote, and for what is left empty the best way that there is.
 * @returns the endpoint, or why there is none
 */
export function discoverEndpoint(
  written: PrincipalEndpoint,
  exposure: ServiceExposure,
  namespace: string,
): PrincipalEndpoint | { problem: string } {
  if (written.address && written.port) {
    return written;
  }
  const { service } = exposure;
  if (service === undefined) {
    return {
      problem: `Server discovery failed: there is no Service ${principalServices.join(' or ')} in namespace ${namespace}, and spec.argoCDAgentAddon.principalServerAddress and principalServerPort are not both set`,
    };
  }
  const [best] = endpointCandidates(exposure);
  if (best) {
    return { address: written.address || best.address, port: written.port || best.port };
  }
  const who = `service ${namespace}/${service.metadata.name}`;
  if (service.spec?.type === 'NodePort') {
    const lack = exposure.nodes.length > 0 ? 'no node has an InternalIP, or it has no node port' : 'no node is known';
    if (!written.address) {
      return { problem: `Server discovery failed: ${who} is a NodePort and ${lack}` };
    }
  }
  if (written.address) {
    return { address: written.address, port: String(servingPort(service)) };
  }
  return {
    problem: `Server discovery failed: no external endpoint found for ${who} (type ${service.spec?.type ?? 'ClusterIP'}); wait for its load balancer, lead a TLSRoute, Route or Ingress to it, or set spec.argoCDAgentAddon.principalServerAddress and principalServerPort`,
  };
}

/** `address:port`, with brackets around an IPv6 address. */
export function endpointText({ address, port }: PrincipalEndpoint): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/** All names under which agents and clients on the hub may reach the principal: every way, not only the best. */
export function principalHosts(exposure: ServiceExposure, namespace: string, endpoints: readonly string[]): string[] {
  const hosts = [
    ...endpointCandidates(exposure).map(({ address }) => address),
    ...serviceHosts(exposure.service?.metadata.name ?? principalServices[0], namespace),
    ...loopback,
    ...endpoints,
  ];
  return [...new Set(hosts.filter((host) => host !== ''))];
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
