import { until } from '../../lib/base/testing.ts';
import { type KubeClient, namespaces } from '../../lib/kube/index.ts';
import { issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import type { KubeletPod } from '../node/index.ts';
import {
  application,
  freePort,
  namespace,
  type Pair,
  type PairOptions,
  pairApplications,
  startPair,
} from '../pair/index.ts';
import { ProxyClient } from './proxy-client.ts';

/** A hub, an agent's cluster, and the principal's resource proxy. */
export interface ProxiedPair {
  readonly pair: Pair;
  /** Of the resource proxy, on 127.0.0.1. */
  readonly port: number;
  /** The credential with which Argo CD reaches the agent's cluster. */
  readonly credential: KeyCertificate;
  /** A client of the resource proxy that has it. */
  readonly proxy: ProxyClient;
}

/** Starts them; resolves when the proxy serves. */
export async function startProxiedPair(options: PairOptions = {}): Promise<ProxiedPair> {
  const port = await freePort();
  const pair = await startPair({ ...options, principal: { resourceProxy: port, ...options.principal } });
  await pair.principal.says(/resource proxy serves/);
  const credential = await issueCertificate({ authority: pair.authority, commonName: pair.name, usages: ['client'] });
  return { pair, port, credential, proxy: new ProxyClient(port, pair.authority, credential) };
}

/**
 * Gives an agent the Application `web`, which deploys into the namespace `shop` of its cluster; resolves when the cluster has
 * both, and when the agent knows of them: `proxy` shows what it serves.
 */
export async function deployWeb(
  hub: KubeClient,
  agent: string,
  cluster: KubeClient,
  proxy: ProxyClient | undefined,
): Promise<void> {
  await cluster.create(namespaces, { metadata: { name: 'shop' } });
  const spec = { destination: { name: 'in-cluster', namespace: 'shop' } };
  await hub.create(pairApplications, application({ name: 'web', namespace: agent, spec }));
  const patient = { timeoutMs: 120_000 };
  await until('the Application is there', () => cluster.get(pairApplications, { name: 'web', namespace }), patient);
  if (proxy === undefined) {
    return;
  }
  const isServed = async () => (await proxy.send('GET', '/api/v1/namespaces/shop')).status === 200;
  await until('the agent serves what belongs to it', isServed, patient);
}

/** A pod of the namespace `shop` whose container `main` runs a shell script. */
export function shopPod(name: string, script: string, annotations: Record<string, string>): KubeletPod {
  const container = { name: 'main', image: 'busybox', command: ['sh', '-c', script] };
  return {
    metadata: { name, namespace: 'shop', annotations },
    spec: { terminationGracePeriodSeconds: 1, containers: [container] },
  } as KubeletPod;
}
