import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cluster } from './cluster.ts';

/**
 * Saves what the etcd of a cluster has now. The cluster is down meanwhile, as it is when the returned function gives it back what it
 * had then; a client that watches it is not told that versions went back.
 */
export async function saveStorage(cluster: Cluster): Promise<() => Promise<void>> {
  const data = join(cluster.dir, 'etcd');
  const saved = `${data}.saved`;
  await whileStopped(cluster, async () => {
    await rm(saved, { recursive: true, force: true });
    await cp(data, saved, { recursive: true });
  });
  return () =>
    whileStopped(cluster, async () => {
      await rm(data, { recursive: true });
      await cp(saved, data, { recursive: true });
    });
}

async function whileStopped({ apiServer, etcd }: Cluster, work: () => Promise<void>): Promise<void> {
  await apiServer.kill();
  await etcd.kill();
  await work();
  await etcd.restart();
  await apiServer.restart();
}
