/** Names by which programs of the same machine reach a server. */
export const loopbackHosts = ['localhost', '127.0.0.1', '::1'] as const;

/** All names of a Service of the cluster, for a server's certificate. */
export function serviceHosts(name: string, namespace: string): string[] {
  const full = `${name}.${namespace}.svc`;
  return [name, `${name}.${namespace}`, full, `${full}.cluster.local`];
}

/** All names in the resource proxy's certificate, as Argo CD on the hub may use them. */
export function resourceProxyHosts(namespace: string, principalService: string): string[] {
  const names = ['argocd-agent-resource-proxy', principalService, `${principalService}-resource-proxy`];
  return [...names.flatMap((name) => serviceHosts(name, namespace)), ...loopbackHosts];
}
