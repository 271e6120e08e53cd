/** Who a kubeconfig speaks as: a client certificate or a bearer token. */
export type Credential = { certificate: string; key: string } | { token: string };

/**
 * A kubeconfig with one context, everything embedded. It is JSON, which is YAML. All is called as the cluster is, so that
 * `KUBECONFIG` may list files of several clusters.
 */
export function kubeconfigText(cluster: { name: string; server: string; ca: string }, credential: Credential): string {
  const user =
    'token' in credential
      ? { token: credential.token }
      : {
          'client-certificate-data': base64(credential.certificate),
          'client-key-data': base64(credential.key),
        };
  const { name, server, ca } = cluster;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');
