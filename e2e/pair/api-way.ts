import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Network, startNetwork } from '../network/index.ts';
import type { SharedCluster } from '../testbed/index.ts';

/** A way to a cluster's API server that can be broken, and a kubeconfig that leads through it. */
export async function startApiWay(
  cluster: Pick<SharedCluster, 'dir' | 'kubeconfig' | 'server'>,
): Promise<{ way: Network; kubeconfig: string }> {
  const text = await readFile(cluster.kubeconfig, 'utf8');
  const { host, hostname, port } = new URL(cluster.server);
  const way = await startNetwork(() => ({ host: hostname, port: Number(port) }));
  const kubeconfig = join(cluster.dir, `kubeconfig-${way.port}`);
  await writeFile(kubeconfig, text.replaceAll(host, `${hostname}:${way.port}`), { mode: 0o600 });
  return { way, kubeconfig };
}
