import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, events } from '../../lib/kube/index.ts';
import {
  type AgentCluster,
  type ArgoObject,
  application,
  namespace,
  type Pair,
  type Program,
  pairApplications,
  prepareCluster,
  startPair,
  uidsOf,
} from '../pair/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { startVelero, type Velero } from './velero.ts';

// A hub is lost for good, and Velero brings its objects to a new one, on which a principal runs at the same address. VELERO_BIN=<file>
// and VELERO_SOURCE=<folder> are Velero and its CRDs; VELERO_STORE_BIN=<file> is a plugin whose object store is a folder.

const names = ['web', 'shop', 'api'];
let folder: string;
let pair: Pair<Cluster>;
let edge: AgentCluster<Cluster>;
let newHub: Cluster;
let newPrincipal: Program | undefined;
const running: Velero[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'velero-'));
  pair = await startPair({}, () => startCluster());
  [edge, newHub] = await Promise.all([pair.addAgent({ name: 'edge', mode: 'autonomous' }), startCluster()]);
  await prepareCluster(newHub.client);
}, 600_000);
afterAll(async () => {
  await Promise.all(running.map((velero) => velero.stop()));
  await Promise.all([pair?.stop(), newHub?.stop()]);
  if (folder !== undefined) {
    await rm(folder, { recursive: true });
  }
});

const logs = {
  details: () => [newPrincipal, pair.principal, pair.agent].map((one) => one?.output.slice(-3_000)).join('\n---\n'),
};
const copies = () => pair.managed.client.list(pairApplications, { namespace });
const identity = { namespace, name: 'argocd-agent-principal-identity' };

async function velero(cluster: Cluster): Promise<Velero> {
  const started = await startVelero(cluster, folder);
  running.push(started);
  return started;
}

describe("Velero's own server", { tags: 'velero' }, () => {
  test('a hub is lost for good: with what Velero has kept, another one takes its clusters over', async () => {
    const finalizers = ['resources-finalizer.argocd.argoproj.io'];
    const create = (name: string) =>
      pair.hub.client.create(pairApplications, application({ name, namespace: pair.name, metadata: { finalizers } }));
    for (const name of names) {
      await create(name);
    }
    await edge.cluster.client.create(pairApplications, application({ name: 'own', namespace }));
    const mirror = { namespace: edge.name, name: 'own' };
    await until('all copies are made', async () => (await copies()).length === names.length, logs);
    await until('the mirror is made', () => pair.hub.client.get(pairApplications, mirror), logs);

    await (await velero(pair.hub)).backUp('hub', [namespace, pair.name, 'edge']);
    await create('late');
    await until('the copy of what is not in the backup', async () => (await copies()).length > names.length, logs);
    const before = uidsOf(await copies());
    const formerUid = (await pair.hub.client.get(configMaps, identity))?.data?.['principal-uid'];
    await pair.principal.stop('SIGKILL');
    await pair.hub.stop();

    const restoring = await velero(newHub);
    await restoring.restore('hub', namespace);
    const here = { kubeconfig: newHub.kubeconfig, port: pair.principalPort };
    newPrincipal = (await pair.newPrincipal(here)).program;
    newPrincipal.start();
    await newPrincipal.says(/the hub was restored from a backup/);
    for (const name of [...names, 'late']) {
      await newPrincipal.says(new RegExp(`keeps an Application of another principal.*${pair.name}/${name}`));
    }
    expect(uidsOf(await copies())).toEqual(before);

    await restoring.restore('hub', pair.name);
    await restoring.restore('hub', 'edge');
    const uid = (await newHub.client.get(configMaps, identity))?.data?.['principal-uid'];
    expect(uid).not.toBe(formerUid);
    const isTakenOver = ({ metadata: { annotations, labels } }: ArgoObject) =>
      annotations?.['argocd.argoproj.io/principal-uid'] === uid && labels?.['velero.io/backup-name'] === 'hub';
    const takenOver = async () => (await copies()).filter(isTakenOver).map(({ metadata }) => metadata.name);
    await until('the copies are taken over', async () => (await takenOver()).length === names.length, logs);
    expect((await takenOver()).sort()).toEqual([...names].sort());
    expect(uidsOf(await copies())).toEqual(before);
    expect((await copies()).filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([]);
    await until(
      'an Event names the Application that was not in the backup',
      async () =>
        (await newHub.client.list(events, { namespace })).some(
          ({ reason, note }) => reason === 'ApplicationKept' && note?.includes(`${pair.name}/late`),
        ),
      logs,
    );

    await newHub.client.delete(pairApplications, { namespace: pair.name, name: 'web' });
    await until(
      'a deletion on the new hub reaches the cluster',
      async () => (await copies()).find(({ metadata }) => metadata.name === 'web')?.metadata.deletionTimestamp,
      logs,
    );
    const change = { spec: { source: { targetRevision: 'v2' } } };
    await edge.cluster.client.mergePatch(pairApplications, { namespace, name: 'own' }, change);
    await until(
      'a change of an autonomous agent reaches its mirror on the new hub',
      async () => {
        const source = (await newHub.client.get(pairApplications, mirror))?.spec.source;
        return (source as { targetRevision?: string } | undefined)?.targetRevision === 'v2';
      },
      logs,
    );
  }, 600_000);
});
