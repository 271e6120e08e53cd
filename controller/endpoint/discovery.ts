import { hostPort } from '../../lib/base/index.ts';
import type { Service } from '../../lib/kube/index.ts';
import { loopbackHosts, serviceHosts } from '../../lib/pki/index.ts';
import { endpointCandidates, type PrincipalEndpoint, type ServiceExposure, servingPort } from './candidates.ts';

/** Names that the principal's Service may have, in order of preference: argocd-operator's and OpenShift GitOps'. */
export const principalServices = ['argocd-agent-principal', 'openshift-gitops-agent-principal'] as const;

/**
 * Finds the principal's endpoint: the address and port that the user set, completed by the best candidate. The present address
 * stays as long as it is a candidate, unless its node is away: each change makes all agents connect anew.
 * @param present the address that agents have; undefined: none yet
 * @returns the endpoint, or the problem as a message for the user
 */
export function discoverEndpoint(
  configured: PrincipalEndpoint,
  exposure: ServiceExposure,
  namespace: string,
  present?: string,
): PrincipalEndpoint | { problem: string } {
  if (configured.address && configured.port) {
    return configured;
  }
  const { service } = exposure;
  if (service === undefined) {
    return {
      problem: `Server discovery failed: there is no Service ${principalServices.join(' or ')} in namespace ${namespace}, and spec.argoCDAgentAddon.principalServerAddress and principalServerPort are not both set`,
    };
  }
  const candidates = endpointCandidates(exposure);
  const best = candidates.find(({ address, isAway }) => address === present && isAway !== true) ?? candidates[0];
  if (best) {
    return { address: configured.address || best.address, port: configured.port || best.port };
  }
  const name = `service ${namespace}/${service.metadata.name}`;
  if (service.spec?.type === 'NodePort') {
    const reason = exposure.nodes.length > 0 ? 'no node has an InternalIP, or it has no node port' : 'no node is known';
    if (!configured.address) {
      return { problem: `Server discovery failed: ${name} is a NodePort and ${reason}` };
    }
  }
  if (configured.address) {
    return { address: configured.address, port: String(servingPort(service)) };
  }
  return {
    problem: `Server discovery failed: no external endpoint found for ${name} (type ${service.spec?.type ?? 'ClusterIP'}); wait for its load balancer, lead a TLSRoute, Route or Ingress to it, or set spec.argoCDAgentAddon.principalServerAddress and principalServerPort`,
  };
}

/**
 * Address at which Argo CD on the hub reaches the principal's resource proxy: as in argocd-agent, unless argocd-operator has
 * deployed the principal. It names the Service of the proxy after the principal's.
 */
export function resourceProxyAddress(principal: Service | undefined): string {
  const isOfOperator = principal?.metadata.ownerReferences?.some(({ kind }) => kind === 'ArgoCD');
  return `${isOfOperator ? `${principal?.metadata.name}-resource-proxy` : 'argocd-agent-resource-proxy'}:9090`;
}

/** `address:port`, with brackets around an IPv6 address. */
export function endpointText({ address, port }: PrincipalEndpoint): string {
  return hostPort(address, Number(port));
}

/** All names in the principal's certificate: every candidate, the Service, loopback, and the given endpoints. */
export function principalHosts(exposure: ServiceExposure, namespace: string, endpoints: readonly string[]): string[] {
  const hosts = [
    ...endpointCandidates(exposure).map(({ address }) => address),
    ...serviceHosts(exposure.service?.metadata.name ?? principalServices[0], namespace),
    ...loopbackHosts,
    ...endpoints,
  ];
  return [...new Set(hosts.filter((host) => host !== ''))];
}
