import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import {
  ApiError,
  configMaps,
  isForbidden,
  isGone,
  KubeClient,
  namespaces,
  serviceAccounts,
} from '../../lib/kube/index.ts';
import { type Cluster, isProcessAlive, startCluster, startTestbed } from './index.ts';

const pidsOf = (cluster: Cluster) => [cluster.etcd.pid, cluster.apiServer.pid, cluster.controllerManager.pid];

describe('a cluster', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    const begin = performance.now();
    cluster = await startCluster({ name: 'test' });
    console.log(`cluster up in ${Math.round(performance.now() - begin)} ms`);
  });
  afterAll(() => cluster.stop());

  it('serves its administrator', async () => {
    const names = (await cluster.client.list(namespaces)).map((namespace) => namespace.metadata.name);
    expect(names).toContain('default');
    const version = JSON.parse(await (await cluster.client.request('/version')).body.text());
    expect(version.gitVersion).toMatch(/^v1\.36\.\d+$/);
  });

  it('refuses a service account without rights', async () => {
    const account = { namespace: 'default', name: 'nobody' };
    await cluster.client.create(serviceAccounts, { metadata: account });
    const client = KubeClient.fromKubeconfig(await cluster.kubeconfigFor({ serviceAccount: account }));
    const refusal = await client.list(configMaps, { namespace: 'default' }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ApiError);
    expect(isForbidden(refusal)).toBe(true);
    expect((refusal as ApiError).message).toContain('system:serviceaccount:default:nobody');
    await client.close();
  });

  it('knows users and groups by their certificates', async () => {
    const client = KubeClient.fromKubeconfig(await cluster.kubeconfigFor({ user: 'jane', groups: ['staff'] }));
    const review = await client.request('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      method: 'POST',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    });
    const { username, groups } = JSON.parse(await review.body.text()).status.userInfo;
    expect(username).toBe('jane');
    expect(groups).toEqual(expect.arrayContaining(['staff', 'system:authenticated']));
    await client.close();
  });

  it('runs controllers: a new namespace gets its account and trust bundle, and goes again', async () => {
    await cluster.client.create(namespaces, { metadata: { name: 'short' } });
    const key = { namespace: 'short', name: 'kube-root-ca.crt' };
    await until(async () => expect((await cluster.client.get(configMaps, key))?.data?.['ca.crt']).toBe(cluster.ca));
    await cluster.client.delete(namespaces, { name: 'short' });
    await until(async () => expect(await cluster.client.get(namespaces, { name: 'short' })).toBeUndefined());
  });

  it('keeps its data when etcd and the API server are killed', async () => {
    const key = { namespace: 'default', name: 'kept' };
    const written = await cluster.client.create(configMaps, { metadata: key, data: { a: '1' } });
    for (const component of [cluster.etcd, cluster.apiServer, cluster.controllerManager]) {
      const before = component.pid;
      await component.kill();
      expect(isProcessAlive(before)).toBe(false);
      expect(component.running).toBe(false);
      const begin = performance.now();
      await component.restart();
      console.log(`${component.name} back in ${Math.round(performance.now() - begin)} ms`);
      expect(component.pid).not.toBe(before);
    }
    await until(async () =>
      expect((await cluster.client.get(configMaps, key))?.metadata.uid).toBe(written.metadata.uid),
    );
    const changed = await cluster.client.mergePatch(configMaps, key, { data: { a: '2' } });
    expect(changed.data).toEqual({ a: '2' });
  });

  it('forgets history on demand', async () => {
    const key = { namespace: 'default', name: 'kept' };
    const old = (await cluster.client.get(configMaps, key))?.metadata.resourceVersion;
    for (const value of ['3', '4', '5']) {
      await cluster.client.mergePatch(configMaps, key, { data: { a: value } });
    }
    await cluster.compactHistory();
    await cluster.apiServer.restart();
    const path = `/api/v1/configmaps?resourceVersion=${old}&resourceVersionMatch=Exact`;
    const refusal = await cluster.client.request(path).catch((error: unknown) => error);
    expect(isGone(refusal)).toBe(true);
  });
});

describe('a testbed', () => {
  it('stands beside another one, apart from it, and leaves nothing', async () => {
    const [one, other] = await Promise.all([startTestbed({ clusters: 0 }), startTestbed({ clusters: 1 })]);
    const clusters = [one.hub, other.hub, ...other.managed];
    expect(new Set(clusters.map((cluster) => cluster.server)).size).toBe(3);

    await one.hub.client.create(configMaps, { metadata: { namespace: 'default', name: 'mine' } });
    expect(await other.hub.client.get(configMaps, { namespace: 'default', name: 'mine' })).toBeUndefined();
    const stranger = KubeClient.fromKubeconfig(await withServer(one.hub, other.hub.server));
    await expect(stranger.list(namespaces)).rejects.toThrow(/certificate|signature/);
    await stranger.close();

    await one.stop();
    expect(await other.hub.client.list(namespaces)).not.toEqual([]);
    const added = await other.addCluster();
    expect(added.name).toBe('cluster2');
    await other.stop();
    expect([...clusters, added].flatMap(pidsOf).filter(isProcessAlive)).toEqual([]);
    expect([one.dir, other.dir].filter(existsSync)).toEqual([]);
  });

  it('leaves no process when the one that runs it is killed', async () => {
    const program = `
      import { startCluster } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)};
      const cluster = await startCluster({ name: 'crash' });
      console.log(JSON.stringify([cluster.etcd.pid, cluster.apiServer.pid, cluster.controllerManager.pid]));
    `;
    const runner = spawn(process.execPath, ['--input-type=module', '-e', program], {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const line = await new Promise<string>((resolve) =>
      createInterface({ input: runner.stdout }).once('line', resolve),
    );
    const pids = JSON.parse(line) as number[];
    expect(pids.filter(isProcessAlive)).toEqual(pids);
    runner.kill('SIGKILL');
    await until(() => expect(pids.filter(isProcessAlive)).toEqual([]));
  });
});

async function withServer(cluster: Cluster, server: string): Promise<string> {
  const path = await cluster.kubeconfigFor({ user: 'admin', groups: ['system:masters'] });
  await writeFile(path, (await readFile(path, 'utf8')).replaceAll(cluster.server, server));
  return path;
}
