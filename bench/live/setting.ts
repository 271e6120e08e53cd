import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deployWeb, startProxiedPair } from '../../e2e/live/index.ts';
import { type KubeletPod, kubeletPods, startNode } from '../../e2e/node/index.ts';
import type { Pair } from '../../e2e/pair/index.ts';
import { kubeconfigText } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { configMaps, KubeClient, type KubeObject } from '../../lib/kube/index.ts';
import { issueCertificate } from '../../lib/pki/index.ts';
import { inParallel } from '../in-parallel.ts';
import { otherPrograms } from '../other.ts';
import { type Usage, usageOf } from '../process-meter.ts';

/** The namespace that the Application deploys into. */
export const shop = 'shop';
/** The pod with the long log. */
export const talker = 'talker';

/** One of the ways to the same API server. */
export interface ApiServerRoute {
  readonly name: 'direct' | 'proxied' | 'copied';
  readonly client: KubeClient;
}

/** A hub and a cluster with principal and agent, and what is in it. */
export interface Setting {
  readonly pair: Pair;
  /** In turns, so that the machine's noise falls on both alike. */
  readonly ways: readonly [direct: ApiServerRoute, proxied: ApiServerRoute, copied: ApiServerRoute];
  /** What the processes between client and API server have used so far; `copiers` are the two that only copy. */
  usage(): Promise<{ readonly principal: Usage; readonly agent: Usage; readonly copiers: readonly Usage[] }>;
  stop(): Promise<void>;
}

const tracking = { 'argocd.argoproj.io/tracking-id': `web:/ConfigMap:${shop}/x` };

/** A ConfigMap of the size that objects of Kubernetes mostly have. */
export function configMap(name: string): KubeObject & { data: Record<string, string> } {
  const labels = { 'app.kubernetes.io/name': 'web', 'app.kubernetes.io/component': 'shelf' };
  const metadata = { name, namespace: shop, labels, annotations: tracking };
  const data = Object.fromEntries(
    Array.from({ length: 12 }, (_, n) => [`key-${n}`, `${name} "${n}" ${'text '.repeat(16)}`]),
  );
  return { metadata, data };
}

/** Starts everything, with so many objects and a log of so many bytes; the programs are processes of their own. */
export async function startSetting(options: { objects: number; logBytes: number }): Promise<Setting> {
  const { pair, port, credential } = await startProxiedPair({ originals: { agent: otherPrograms().agent } });
  try {
    const { client, dir } = pair.managed;
    await deployWeb(pair.hub.client, pair.name, client, undefined);
    const names = Array.from({ length: options.objects }, (_, index) => `object-${String(index).padStart(5, '0')}`);
    await inParallel(names, 16, (name) => client.create(configMaps, configMap(name)));
    const node = await startNode({ cluster: pair.managed, dir });
    await client.create(kubeletPods, talkingPod(options.logBytes));
    const hasTalked = async () => {
      const pod = await client.get(kubeletPods, { name: talker, namespace: shop });
      return pod?.status?.phase === 'Succeeded' || undefined;
    };
    await until('the log is written', hasTalked, { timeoutMs: 300_000 });

    const cluster = { name: 'proxy', server: `https://127.0.0.1:${port}`, ca: pair.authority.certificate };
    const kubeconfig = join(dir, 'proxy.kubeconfig');
    await writeFile(kubeconfig, kubeconfigText(cluster, credential), { mode: 0o600 });
    const way = (name: ApiServerRoute['name'], file: string): ApiServerRoute => ({
      name,
      client: KubeClient.load({ kubeconfig: file, maxConnections: 512 }),
    });
    const near = await startHop(pair, pair.managed.kubeconfig, 'near');
    const far = await startHop(pair, near.kubeconfig, 'far');
    const ways = [
      way('direct', pair.managed.kubeconfig),
      way('proxied', kubeconfig),
      way('copied', far.kubeconfig),
    ] as const;
    const usageOfProgram = ({ pid }: { readonly pid?: number | undefined }) => {
      if (pid === undefined) {
        throw new Error('a program has ended');
      }
      return usageOf(pid);
    };
    return {
      pair,
      ways,
      async usage() {
        const [principal, agent, ...copiers] = await Promise.all(
          [pair.principal, pair.agent, near.process, far.process].map(usageOfProgram),
        );
        if (principal === undefined || agent === undefined) {
          throw new Error('a program has ended');
        }
        return { principal, agent, copiers };
      },
      async stop() {
        await Promise.all(ways.map(({ client }) => client.close()));
        for (const hop of [near, far]) {
          hop.process.kill();
        }
        await node.stop();
        await pair.stop();
      },
    };
  } catch (error) {
    await pair.stop();
    throw error;
  }
}

interface Hop {
  readonly process: ChildProcess;
  /** Leads to it. */
  readonly kubeconfig: string;
}

/** Starts a process that copies what the server of a kubeconfig answers. */
async function startHop({ authority, managed }: Pair, kubeconfig: string, name: string): Promise<Hop> {
  const { certificate, key } = await issueCertificate({
    authority,
    commonName: name,
    usages: ['server', 'client'],
    hosts: ['127.0.0.1'],
  });
  const material = join(managed.dir, `${name}.pem`);
  await writeFile(material, `${certificate}${key}`, { mode: 0o600 });
  const script = new URL('hop.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, kubeconfig, material], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  const file = join(managed.dir, `${name}.kubeconfig`);
  const server = `https://127.0.0.1:${Number(port.toString())}`;
  await writeFile(file, kubeconfigText({ name, server, ca: authority.certificate }, { certificate, key }), {
    mode: 0o600,
  });
  return { process: child, kubeconfig: file };
}

function talkingPod(bytes: number): KubeletPod {
  const script = `yes 'a line of a log that says what a request was and how long it took, as they mostly do' | head -c ${bytes}`;
  const container = { name: 'main', image: 'busybox', command: ['sh', '-c', script] };
  const annotations = { 'argocd.argoproj.io/tracking-id': `web:/Pod:${shop}/${talker}` };
  return {
    metadata: { name: talker, namespace: shop, annotations },
    spec: { restartPolicy: 'Never', containers: [container] },
  } as KubeletPod;
}
