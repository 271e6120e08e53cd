import { wellKnown } from '../../lib/base/index.ts';
import { kubeClient } from '../../lib/bridge/index.ts';
import { KubeClient, type Secret, secrets } from '../../lib/kube/index.ts';
import { decodeSecret, FatalError } from '../../lib/ops/index.ts';
import { inspectCertificate, secretText } from '../../lib/pki/index.ts';

/** A cluster as the hub's Argo CD has it. */
export interface KnownCluster {
  readonly name: string;
  readonly server: string;
  readonly secret: Secret;
  /** The agent behind it; empty for a cluster that is reached directly. */
  readonly agent: string;
}

/** The clusters in the cluster Secrets of a namespace. */
export async function hubClusters(hub: KubeClient, namespace: string, signal: AbortSignal): Promise<KnownCluster[]> {
  const labelSelector = `${wellKnown.secretTypeLabel}=cluster`;
  return (await hub.list(secrets, { namespace, labelSelector, signal })).map((secret) => {
    const { name = '', server = '' } = decodeSecret(secret);
    const url = server.replace(/\/+$/, '');
    return { name: name || url, server: url, secret, agent: secret.metadata.labels?.[wellKnown.agentNameLabel] ?? '' };
  });
}

/**
 * The directly reached cluster of a name or URL.
 * @throws FatalError that names the clusters there are
 */
export function directCluster(clusters: readonly KnownCluster[], nameOrUrl: string): KnownCluster {
  const wanted = nameOrUrl.replace(/\/+$/, '');
  const matching = clusters.filter(({ name, server }) => name === wanted || server === wanted);
  const direct = matching.filter(({ agent }) => agent === '');
  const [found] = direct;
  if (direct.length > 1) {
    throw new FatalError(`the hub's Argo CD has several clusters called ${wanted}: give the URL of one as --cluster`);
  }
  if (found !== undefined) {
    return found;
  }
  const names = clusters.filter(({ agent }) => agent === '').map(({ name }) => name);
  const known =
    names.length === 0 ? 'it reaches no cluster directly' : `it reaches these directly: ${names.join(', ')}`;
  const [other] = matching;
  throw new FatalError(
    other === undefined
      ? `the hub's Argo CD has no cluster ${wanted}; ${known}`
      : `cluster ${wanted} is that of agent ${other.agent} (Secret ${other.secret.metadata.name}), so nothing has to be moved; ${known}`,
  );
}

/**
 * A client for a cluster: a context of the user's kubeconfig, or the credentials in the hub's cluster Secret.
 * @throws FatalError when Argo CD gets the credentials from another program
 */
export function clusterClient(
  { secret, server }: KnownCluster,
  flags: { readonly kubeconfig: string; readonly 'cluster-kubeconfig': string; readonly 'cluster-kubecontext': string },
): KubeClient {
  const { 'cluster-kubeconfig': kubeconfig, 'cluster-kubecontext': kubecontext } = flags;
  if (kubecontext !== '') {
    return kubeClient({ kubeconfig: kubeconfig || flags.kubeconfig, kubecontext });
  }
  const config = JSON.parse(decodeSecret(secret).config || '{}') as Record<string, unknown>;
  const what = `Secret ${secret.metadata.namespace}/${secret.metadata.name}`;
  if (config.execProviderConfig !== undefined || config.awsAuthConfig !== undefined) {
    throw new FatalError(`${what} has no credentials but the name of a program: give --cluster-kubecontext`);
  }
  const tls = (config.tlsClientConfig ?? {}) as Record<string, unknown>;
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
  return KubeClient.fromContext(
    {
      cluster: {
        server,
        'certificate-authority-data': text(tls.caData),
        'insecure-skip-tls-verify': tls.insecure === true,
        'tls-server-name': text(tls.serverName),
        'proxy-url': text(config.proxyUrl),
      },
      user: {
        token: text(config.bearerToken),
        username: text(config.username),
        password: text(config.password),
        'client-certificate-data': text(tls.certData),
        'client-key-data': text(tls.keyData),
      },
      namespace: undefined,
    },
    { userAgent: 'argocd-agent' },
  );
}

/** The agent of a cluster, by its client certificate; undefined when there is none that can be read. */
export async function agentOnCluster(
  cluster: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const secret = await cluster.get(secrets, { namespace, name: 'argocd-agent-client-tls' }, signal);
  const certificate = secretText(secret?.data, 'tls.crt');
  return certificate ? inspectCertificate(certificate).commonName || undefined : undefined;
}
