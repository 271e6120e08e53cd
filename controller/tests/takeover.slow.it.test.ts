import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { argoCdCrds, installCrds, ocmCrds, readCrds } from '../../e2e/hub/index.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { leases } from '../../lib/kube/index.ts';
import { manifestWorks } from '../hub/index.ts';
import { type ControllerProgram, startControllerProgram } from '../testing/controller-program.ts';
import { HubFixture } from '../testing/fixture.ts';

const root = join(import.meta.dirname, '../..');
/** Longer than the default: on a busy machine leaders must not lose the Lease, because nothing restarts them here. */
const leaseSeconds = 15;
const flags = [
  '--leader-elect',
  `--leader-election-lease-duration=${leaseSeconds}s`,
  '--leader-election-renew-deadline=12s',
];
const clusters = ['c1', 'c2', 'c3', 'c4'];
const parts = ['crds', 'argocd', 'agent'];

let hub: SharedCluster;
let fixture: HubFixture;
const replicas: ControllerProgram[] = [];

beforeAll(async () => {
  hub = await borrowCluster({ name: 'hub' });
  const own = await readCrds(join(root, 'charts/argocd-agent-addon/crds'));
  await installCrds(hub.client, [...own, ...(await ocmCrds('hub')), ...(await argoCdCrds())]);
  fixture = new HubFixture(hub.client);
  for (const namespace of ['argocd', 'release']) {
    await fixture.namespace(namespace);
  }
  for (const name of clusters) {
    await fixture.managedCluster(name);
  }
  await fixture.placement('argocd', 'placement', clusters);
});
afterAll(async () => {
  await Promise.all(replicas.map((one) => one.kill()));
  await hub?.stop();
});

async function replica(name: string): Promise<ControllerProgram> {
  const started = await startControllerProgram(hub, name, flags);
  replicas.push(started);
  return started;
}

const leaseKey = { namespace: 'release', name: '7310a56a.open-cluster-management.io' };

async function leads(name: string): Promise<void> {
  const isLeading = async () => (await hub.client.get(leases, leaseKey))?.spec?.holderIdentity?.startsWith(`${name}_`);
  await until(`${name} to lead`, isLeading);
}

const work = (cluster: string, part: string) =>
  hub.client.get(manifestWorks, { namespace: cluster, name: `argocd-agent-addon-${part}` });

async function enrolled(): Promise<void> {
  const all = async () =>
    (await Promise.all(clusters.flatMap((cluster) => parts.map((part) => work(cluster, part))))).every(Boolean);
  await until('all works', all);
}

async function repaired(cluster: string): Promise<void> {
  const before = await work(cluster, 'agent');
  await hub.client.delete(manifestWorks, { namespace: cluster, name: 'argocd-agent-addon-agent' });
  const isNew = async () => {
    const now = await work(cluster, 'agent');
    return now !== undefined && now.metadata.uid !== before?.metadata.uid;
  };
  await until('the work again', isNew);
}

test('the second replica takes over within seconds after a crash or a freeze, and at once after a shutdown', async () => {
  onTestFailed(async () => console.error((await Promise.all(replicas.map((one) => one.log()))).join('\n---\n')));
  const first = await replica('first');
  await leads('first');
  const second = await replica('second');
  await fixture.gitOpsCluster('argocd', 'fleet', 'placement');
  // In the middle of its work.
  await until('the first work', async () => (await work('c1', 'crds')) ?? (await work('c2', 'crds')));
  await first.kill();
  const crashedAt = performance.now();
  await leads('second');
  const afterCrash = performance.now() - crashedAt;
  await enrolled();

  const third = await replica('third');
  process.kill(second.pid, 'SIGSTOP');
  await leads('third');
  // Changes that the frozen replica would repair when it wakes up.
  await repaired('c1');
  process.kill(second.pid, 'SIGCONT');
  expect(await second.exited).toMatchObject({ code: 1 });
  expect(await second.log()).toContain('leadership lost');
  await repaired('c2');

  const fourth = await replica('fourth');
  await until('the fourth to wait', async () => (await fourth.log()).includes('leader=third_'));
  third.signal('SIGTERM');
  expect(await third.exited).toMatchObject({ code: 0 });
  // The former leader released the Lease, so the next one need not wait for its end.
  expect((await hub.client.get(leases, leaseKey))?.spec?.holderIdentity).not.toMatch(/^third_/);
  await leads('fourth');
  await repaired('c3');
  expect(afterCrash).toBeLessThan(leaseSeconds * 1000 + 20_000);
}, 600_000);
