import { wellKnown } from '../../lib/base/index.ts';
import { configMaps, isNotFound, type Secret, secrets } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { shownApplications } from '../../lib/way/index.ts';
import { names } from '../authority.ts';
import type { Side } from '../ctl-command.ts';
import { openShiftRoutes } from '../kinds.ts';
import {
  type Checklist,
  checkRedisPolicy,
  checkSigningKey,
  checkValidity,
  existingPair,
  leafOfSecret,
  listIfServed,
  operatorInstance,
  textAt,
} from './checks.ts';
import { checkComponents } from './components.ts';

/** Names of the principal's Secrets, as the ArgoCD of argocd-operator may change them. */
export async function principalSecretNames(side: Side, list: Checklist, signal: AbortSignal) {
  const instance = await operatorInstance(side, signal).catch(async (error: unknown) => {
    await list.check('Reading principal secret names from ArgoCD CR', () => {
      throw error;
    });
    return undefined;
  });
  const name = (fallback: string, ...path: string[]) =>
    textAt(instance, 'argoCDAgent', 'principal', ...path) ?? fallback;
  return {
    authority: name(names.authority, 'tls', 'rootCASecretName'),
    tls: name(names.principalTls, 'tls', 'secretName'),
    proxy: name(names.resourceProxyTls, 'resourceProxy', 'tls', 'secretName'),
    jwt: name(names.jwt, 'jwt', 'secretName'),
  };
}

/** The checks of a hub, in the order and with the names of the original. */
export async function checkPrincipalSide(side: Side, list: Checklist, signal: AbortSignal): Promise<void> {
  const { namespace, client } = side;
  const own = await principalSecretNames(side, list, signal);
  const at = (name: string) => `(${namespace}/${name})`;
  await list.check('Verifying Argo CD is running in cluster-scoped mode', () => checkScope(side, signal));
  await list.check(
    `Verifying principal public CA certificate exists and is valid ${at(own.authority)}`,
    async () => void (await existingPair(side, own.authority, signal)),
  );
  await list.check(`Verifying principal gRPC TLS certificate exists and is valid ${at(own.tls)}`, () =>
    checkValidity(side, own.tls, signal),
  );
  await list.check(`Verifying resource proxy TLS certificate exists and is valid ${at(own.proxy)}`, () =>
    checkValidity(side, own.proxy, signal),
  );
  await list.check(`Verifying JWT signing key exists and is parseable ${at(own.jwt)}`, () =>
    checkSigningKey(side, own.jwt, signal),
  );
  await checkRoutes(side, own.tls, list, signal);
  await list.check(
    `Verifying no Application CRs defined within the principal's Argo CD namespace: ${namespace}`,
    async () => {
      if ((await client.listPage(shownApplications, { namespace, limit: 1, signal })).items.length > 0) {
        throw new Error(`applications exist in principal namespace ${namespace}`);
      }
    },
  );
  const managed = async () => {
    const labelSelector = `${wellKnown.secretTypeLabel}=cluster`;
    const found = await client.list(secrets, { namespace, labelSelector, signal });
    return found.filter(({ metadata }) => metadata.annotations?.['managed-by'] === 'argocd-agent');
  };
  await list.check('Verifying agent cluster secrets contain correct query parameter on server url', async () =>
    checkServers(namespace, await managed()),
  );
  await list.check(
    "Verifying agent cluster secrets contain the skip-reconcile annotation and that it's set to true",
    async () => {
      const without = (await managed())
        .filter(({ metadata }) => metadata.annotations?.[wellKnown.skipReconcileAnnotation] !== 'true')
        .map(({ metadata }) => metadata.name);
      if (without.length > 0) {
        throw new Error(
          `the following agent cluster secrets in ${namespace} are missing the skip-reconcile annotation or it is not set to true: ${without.join(', ')}`,
        );
      }
    },
  );
  await list.check('Verifying Argo CD network policy allows for ingress from principal', () =>
    checkRedisPolicy(side, 'argocd-agent-principal', signal),
  );
  await list.check('Verifying deployed Argo CD components on principal', () =>
    checkComponents(
      side,
      {
        present: ['repo-server', 'redis', 'dex-server', 'server'],
        absent: ['application-controller', 'applicationset-controller'],
      },
      signal,
    ),
  );
}

/** Argo CD must see all namespaces: Applications of agents are in namespaces of their own. */
async function checkScope(side: Side, signal: AbortSignal): Promise<void> {
  const { client, namespace } = side;
  const instance = await operatorInstance(side, signal);
  const listed = instance?.spec?.applicationNamespaces;
  let isLimited = Array.isArray(listed) && listed.length > 0;
  if (!isLimited) {
    const settings = await client.get(configMaps, { namespace, name: 'argocd-cm' }, signal);
    if (settings === undefined && instance === undefined) {
      throw new Error(`neither ArgoCD CR nor argocd-cm ConfigMap found in namespace ${namespace}`);
    }
    isLimited = (settings?.data?.['application.namespaces'] ?? '').trim() !== '';
  }
  if (isLimited) {
    throw new Error(
      'argo CD configured for namespaced mode (applicationNamespaces is set), must be configured for cluster-scoped mode',
    );
  }
  await client.listPage(shownApplications, { limit: 1, signal });
}

/** On OpenShift, the principal's certificate must be for the host of a Route. */
async function checkRoutes(side: Side, tlsSecret: string, list: Checklist, signal: AbortSignal): Promise<void> {
  let hosts: string[];
  try {
    const routes = await listIfServed(side, openShiftRoutes, { namespace: side.namespace, signal });
    hosts = routes.map((route) => textAt(route, 'host') ?? '');
  } catch (error) {
    if (!isNotFound(error)) {
      await list.check('Checking for OpenShift Routes in namespace', () => {
        throw error;
      });
    }
    return;
  }
  if (hosts.length > 0) {
    await list.check('Verifying principal TLS secret ips/dns match Route host (OpenShift)', async () => {
      const certificate = await leafOfSecret(side, tlsSecret, signal);
      if (!hosts.some((host) => host !== '' && certificate.checkHost(host) !== undefined)) {
        throw new Error('no OpenShift Route host in namespace matches TLS IPS/DNS');
      }
    });
  }
}

function checkServers(namespace: string, managed: readonly Secret[]): void {
  const servers = managed.map((secret) => ({ name: secret.metadata.name, server: decodeSecret(secret).server ?? '' }));
  const plain = servers.filter(({ server }) => !server.startsWith('https://')).map(({ name }) => name);
  const nameless = servers
    .filter(({ server }) => !URL.parse(server)?.searchParams.get('agentName')?.trim())
    .map(({ name }) => name);
  const problems = [
    ...(plain.length > 0
      ? [`the following agent cluster secrets in ${namespace} are not https: ${plain.join(', ')}`]
      : []),
    ...(nameless.length > 0
      ? [`the following agent cluster secrets in ${namespace} are missing the agentName param: ${nameless.join(', ')}`]
      : []),
  ];
  if (problems.length > 0) {
    throw new Error(problems.join('\n'));
  }
}
