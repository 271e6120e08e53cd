import { type KubeClient, secrets } from '../../lib/kube/index.ts';
import { issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';

/** Argo CD's namespace on both clusters. */
export const namespace = 'argocd';

/** Writes an Opaque Secret into Argo CD's namespace, replacing one of that name. */
export async function put(
  client: KubeClient,
  name: string,
  data: Readonly<Record<string, string>>,
  extra: { type?: string; labels?: Record<string, string> } = {},
): Promise<void> {
  await client.apply(
    secrets,
    {
      metadata: { name, namespace, ...(extra.labels ? { labels: extra.labels } : {}) },
      ...(extra.type ? { type: extra.type } : {}),
      data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    },
    { fieldManager: 'test', force: true },
  );
}

/** Writes a TLS Secret into Argo CD's namespace. */
export async function putTls(client: KubeClient, name: string, material: KeyCertificate): Promise<void> {
  const data = { 'tls.crt': material.certificate, 'tls.key': material.key };
  await put(client, name, data, { type: 'kubernetes.io/tls' });
}

/** The client certificate of an agent, and the CA, in the Secrets where it looks for them. */
export async function giveAgentCredentials(
  client: KubeClient,
  authority: KeyCertificate,
  name: string,
  options: { trust?: KeyCertificate; lifetimeMs?: number; now?: Date } = {},
): Promise<void> {
  const { trust = authority, ...life } = options;
  const certificate = await issueCertificate({ authority, commonName: name, usages: ['client'], ...life });
  await put(client, 'argocd-agent-ca', { 'ca.crt': trust.certificate });
  await putTls(client, 'argocd-agent-client-tls', certificate);
}

/** The cluster Secret that maps an agent. */
export async function mapAgent(client: KubeClient, name: string): Promise<void> {
  const labels = { 'argocd.argoproj.io/secret-type': 'cluster', 'argocd-agent.argoproj-labs.io/agent-name': name };
  const server = `https://argocd-agent-resource-proxy:9090?agentName=${name}`;
  await put(client, `cluster-${name}`, { name, server, config: '{}' }, { labels });
}
