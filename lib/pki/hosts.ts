import { principalObjects } from '../base/index.ts';

/** Names by which programs of the same machine reach a server. */
export const loopbackHosts = ['localhost', '127.0.0.1', '::1'] as const;

/** All names of a Service of the cluster, for a server's certificate. */
export function serviceHosts(name: string, namespace: string): string[] {
  const full = `${name}.${namespace}.svc`;
  return [name, `${name}.${namespace}`, full, `${full}.cluster.local`];
}

/**
 * The names in the principal's certificate for its fleet page, which shows that certificate: those of the Services that serve it. The page
 * is the port of that name.
 * @param services Services of the principal
 */
export function fleetPageHosts(
  services: readonly { metadata: { name: string }; spec?: { ports?: readonly { name?: string }[] } }[],
  namespace: string,
): string[] {
  const pages = services.filter(({ spec }) => spec?.ports?.some(({ name }) => name === principalObjects.fleetPagePort));
  const names = pages.map(({ metadata }) => metadata.name).sort();
  return names.flatMap((name) => serviceHosts(name, namespace));
}

/** All names in the resource proxy's certificate, as Argo CD on the hub may use them. */
export function resourceProxyHosts(namespace: string, principalService: string): string[] {
  const names = ['argocd-agent-resource-proxy', principalService, `${principalService}-resource-proxy`];
  return [...names.flatMap((name) => serviceHosts(name, namespace)), ...loopbackHosts];
}
