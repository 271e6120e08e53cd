import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { until } from '../../lib/base/testing.ts';
import { deployments, type KubeObject, namespaces, resourceType } from '../../lib/kube/index.ts';
import { installCrds, readCrds } from '../hub/index.ts';
import { freePort, Program } from '../pair/index.ts';
import type { SharedCluster } from '../testbed/index.ts';

const { VELERO_BIN: executable = '', VELERO_STORE_BIN: store = '', VELERO_SOURCE: source = '' } = process.env;

const namespace = 'velero';
type Phased = KubeObject & { spec?: object; status?: { phase?: string } };
const kind = (kind: string, plural: string) =>
  resourceType<Phased>({ group: 'velero.io', version: 'v1', kind, plural, namespaced: true });
const locations = kind('BackupStorageLocation', 'backupstoragelocations');
const backups = kind('Backup', 'backups');
const restores = kind('Restore', 'restores');

/** Velero for one cluster: its server, and its command as an operator uses it. */
export interface Velero {
  /** Backs up these namespaces. @throws Error with the reason unless it is complete */
  backUp(name: string, included: readonly string[]): Promise<void>;
  /** Restores one namespace of a backup, which may be another cluster's with the same store. @throws Error as above */
  restore(backup: string, included: string): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts Velero's own server for a cluster, with its CRDs.
 * @param folder where the object store keeps its files; clusters with the same folder have the same backups
 */
export async function startVelero({ client, kubeconfig }: SharedCluster, folder: string): Promise<Velero> {
  await installCrds(client, await readCrds(join(source, 'config/crd/v1/bases')));
  await installCrds(client, await readCrds(join(source, 'config/crd/v2alpha1/bases')));
  await client.create(namespaces, { metadata: { name: namespace } });
  // The server looks its own Deployment up.
  const labels = { component: 'velero' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'velero', image: 'velero/velero' }] } };
  await client.create(deployments, {
    metadata: { namespace, name: 'velero' },
    spec: { replicas: 0, selector: { matchLabels: labels }, template },
  } as never);
  const plugins = join(folder, `plugins-${await freePort()}`);
  await mkdir(plugins, { recursive: true });
  await symlink(store, join(plugins, 'store'));
  await client.create(locations, {
    metadata: { namespace, name: 'default' },
    spec: {
      provider: 'example.io/object-store-plugin',
      objectStorage: { bucket: 'fleet' },
      default: true,
      backupSyncPeriod: '1s',
    },
  });
  const where = [`--kubeconfig=${kubeconfig}`, `--namespace=${namespace}`];
  const environment = { ARK_FILE_OBJECT_STORE_ROOT: join(folder, 'objects') };
  const [metrics, profiler] = [await freePort(), await freePort()];
  const server = new Program(
    [
      'server',
      ...where,
      `--plugin-dir=${plugins}`,
      `--metrics-address=127.0.0.1:${metrics}`,
      `--profiler-address=127.0.0.1:${profiler}`,
    ],
    environment,
    executable,
  );
  server.start();
  const logs = { details: () => server.output.slice(-6_000) };
  const command = (...args: string[]) => promisify(execFile)(executable, [...where, ...args]);
  const isComplete = async (type: typeof backups, name: string) => {
    const { status } = (await client.get(type, { namespace, name })) ?? {};
    if (status?.phase !== 'Completed') {
      const kind = type.kind.toLowerCase();
      const results = join(folder, `objects/fleet/${type.plural}/${name}/${kind}-${name}-results.gz`);
      const why = await readFile(results).then((packed) => gunzipSync(packed).toString(), logs.details);
      throw new Error(`${kind} ${name}: ${JSON.stringify(status)}\n${why}`);
    }
  };
  const isAvailable = async () => {
    const found = await client.get(locations, { namespace, name: 'default' });
    return found?.status?.phase === 'Available';
  };
  await until('the store to be available', isAvailable, logs);
  return {
    async backUp(name, included) {
      const only = `--include-namespaces=${included.join(',')}`;
      await command('backup', 'create', name, only, '--snapshot-volumes=false', '--wait');
      await isComplete(backups, name);
    },
    async restore(backup, included) {
      await until('Velero to know the backup', () => client.get(backups, { namespace, name: backup }), logs);
      const name = `${backup}-${included}`;
      await command(
        ...['restore', 'create', name, `--from-backup=${backup}`, `--include-namespaces=${included}`, '--wait'],
      );
      await isComplete(restores, name);
    },
    async stop() {
      await server.stop('SIGKILL');
    },
  };
}
