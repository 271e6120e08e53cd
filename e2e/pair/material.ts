import { type KubeClient, namespaces, secrets } from '../../lib/kube/index.ts';
import { issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { argoCdCrds, installCrds } from '../hub/index.ts';

/** Argo CD's namespace on both clusters. */
export const namespace = 'argocd';

/** Gives a cluster Argo CD's CRDs and namespace. */
export async function prepareCluster(client: KubeClient): Promise<void> {
  await client.create(namespaces, { metadata: { name: namespace } });
  await installCrds(client, await argoCdCrds());
}

/** What a principal reads from Secrets of its hub. */
export interface HubMaterial {
  readonly authority: KeyCertificate;
  /** The key that it signs tokens with, PEM. */
  readonly jwtKey: string;
  /** Its certificate is good for a client, too: it follows another principal. */
  readonly isPaired?: boolean;
  /** Authorities that it trusts, PEM. Default: the one authority. */
  readonly trust?: string | undefined;
}

/** Writes it, with certificates for the loopback addresses; replaces what is there. */
export async function giveHubMaterial(client: KubeClient, material: HubMaterial): Promise<void> {
  const { authority, jwtKey, isPaired = false, trust } = material;
  const [server, proxy] = await Promise.all([
    issueCertificate({
      authority,
      commonName: 'argocd-agent-principal',
      hosts: ['127.0.0.1', '::1', 'localhost'],
      usages: isPaired ? ['server', 'client'] : ['server'],
    }),
    issueCertificate({
      authority,
      commonName: 'argocd-agent-resource-proxy',
      hosts: ['127.0.0.1'],
      usages: ['server'],
    }),
  ]);
  await Promise.all([
    trust === undefined
      ? putTls(client, 'argocd-agent-ca', authority)
      : put(
          client,
          'argocd-agent-ca',
          { 'ca.crt': trust, 'tls.crt': authority.certificate, 'tls.key': authority.key },
          { type: 'kubernetes.io/tls' },
        ),
    putTls(client, 'argocd-agent-principal-tls', server),
    putTls(client, 'argocd-agent-resource-proxy-tls', proxy),
    put(client, 'argocd-agent-jwt', { 'jwt.key': jwtKey }),
  ]);
}

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

/** Lets a hub know an agent: the namespace of its Applications, and the cluster Secret that maps it. */
export async function admitAgent(client: KubeClient, name: string): Promise<void> {
  await Promise.all([client.create(namespaces, { metadata: { name } }), mapAgent(client, name)]);
}

/** The cluster Secret that maps an agent. */
export async function mapAgent(client: KubeClient, name: string): Promise<void> {
  const labels = { 'argocd.argoproj.io/secret-type': 'cluster', 'argocd-agent.argoproj-labs.io/agent-name': name };
  const server = `https://argocd-agent-resource-proxy:9090?agentName=${name}`;
  await put(client, `cluster-${name}`, { name, server, config: '{}' }, { labels });
}
