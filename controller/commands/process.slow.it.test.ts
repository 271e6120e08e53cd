import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { leases, type Secret } from '../../lib/kube/index.ts';
import { type GitOpsCluster, gitOpsClusters, type ManifestWork, manifestWorks } from '../hub/index.ts';
import { type ControllerProgram, programNamespace, startControllerProgram } from '../testing/controller-program.ts';
import { HubFixture } from '../testing/fixture.ts';
import { installHubCrds, workNames } from '../testing/hub.ts';

const leaseName = '7310a56a.open-cluster-management.io';
/** On a busy machine the leader must not lose the Lease: it would exit, and nothing restarts it here. */
const patientLeader = [
  '--leader-elect',
  '--leader-election-lease-duration=120s',
  '--leader-election-renew-deadline=90s',
];

let hub: SharedCluster;
let fixture: HubFixture;
const processes: ControllerProgram[] = [];

/** What a sink of events gets. */
const received: IncomingHttpHeaders[] = [];
const sink = createServer((request, response) => {
  received.push(request.headers);
  request.resume();
  response.writeHead(204).end();
});

beforeAll(async () => {
  sink.listen(0, '127.0.0.1');
  await once(sink, 'listening');
  hub = await borrowCluster({ name: 'hub' });
  await installHubCrds(hub);
  fixture = new HubFixture(hub.client);
  for (const namespace of ['argocd', programNamespace]) {
    await fixture.namespace(namespace);
  }
  await fixture.managedCluster('c1');
  await fixture.placement('argocd', 'placement', ['c1']);
});
afterAll(async () => {
  await Promise.all(processes.map((one) => one.kill()));
  sink.closeAllConnections();
  sink.close();
  await hub?.stop();
});

async function program(
  name: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<ControllerProgram> {
  const started = await startControllerProgram(hub, name, args, { env });
  processes.push(started);
  return started;
}

const answers = (port: number, path: string) =>
  until(`${path} on ${port}`, async () => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return response.ok && (await response.text());
  });
const holder = async () =>
  (await hub.client.get(leases, { namespace: programNamespace, name: leaseName }))?.spec?.holderIdentity;

test('with argocd-pull-integration’s flags: one leads, another takes over, a signal ends it at once', async () => {
  await writeFile(join(hub.dir, 'token'), 'open sesame\n');
  const { port } = sink.address() as AddressInfo;
  const first = await program('first', ['--mode=controller', ...patientLeader], {
    EVENTS_SINK_URL: `http://127.0.0.1:${port}`,
    EVENTS_SINK_TOKEN_PATH: join(hub.dir, 'token'),
  });
  await until('the first to lead', async () => (await holder())?.startsWith('first'));
  const second = await program('second', ['--mode=controller', ...patientLeader]);
  await Promise.all([first, second].map(({ health }) => answers(health, '/readyz')));
  await fixture.gitOpsCluster('argocd', 'fleet', 'placement', { clientCertificate: 'Generated' });
  await fixture.conditionIs(['argocd', 'fleet'], 'Ready', 'True');
  // The metric counts completed reconciles, and the last one may still be running.
  await until('the cluster to be counted', async () =>
    /gitops_controller_reconciles_done\{queue="clusters"\} [1-9]/.test(await answers(first.metrics, '/metrics')),
  );
  await until('the conditions in the metrics, whose text is made once a second', async () =>
    /^gitops_controller_condition\{namespace="argocd",name="fleet",type="HubArgoCDCompatible",status="True"\} 1$/m.test(
      await answers(first.metrics, '/metrics'),
    ),
  );
  for (const name of workNames) {
    await fixture.reportWork('c1', name);
  }
  const enrolled = await until('the event of the enrolment', async () =>
    received.find((headers) => headers['ce-type']?.toString().endsWith('.cluster-enrolled')),
  );
  expect(enrolled).toMatchObject({
    'ce-source': `/argocd-agent/controller/${programNamespace}`,
    'ce-subject': 'clusters/c1',
    'ce-specversion': '1.0',
    authorization: 'Bearer open sesame',
  });
  await until('the event in the metrics', async () =>
    /^gitops_controller_fleet_events_total\{type="cluster-enrolled"\} 1$/m.test(
      await answers(first.metrics, '/metrics'),
    ),
  );
  first.signal('SIGTERM');
  expect(await first.exited).toMatchObject({ code: 0 });
  await until('the second to lead', async () => (await holder())?.startsWith('second'));
  await hub.client.delete(manifestWorks, { namespace: 'c1', name: 'argocd-agent-addon-agent' });
  await until('the work again', () =>
    hub.client.get(manifestWorks, { namespace: 'c1', name: 'argocd-agent-addon-agent' }),
  );
  expect(await second.log()).not.toMatch(/BEGIN|level=error/);
});

test('render shows the manifests of the works, without secret values', async () => {
  const render = await program('render', ['render', '--cluster=c1']);
  expect(await render.exited).toMatchObject({ code: 0 });
  const text = await render.log();
  const printed = parseAllDocuments(text).map((document) => document.toJS() as ManifestWork);
  for (const { metadata, spec } of printed) {
    const live = await hub.client.get(manifestWorks, { namespace: 'c1', name: metadata.name });
    const names = (work: ManifestWork['spec'] | undefined) =>
      work?.workload.manifests.map(({ kind, metadata: m }) => `${kind} ${m.name}`);
    expect(names(spec)).toEqual(names(live?.spec));
  }
  expect(printed).toHaveLength(3);
  const keyOf = (works: readonly ManifestWork[]) =>
    works
      .flatMap(({ spec }) => spec.workload.manifests as Secret[])
      .find(({ kind, metadata }) => kind === 'Secret' && metadata.name.endsWith('client-cert'))?.data?.['tls.key'];
  expect(keyOf(printed)).toBe(Buffer.from('(hidden)').toString('base64'));
  const open = await program('render-all', ['render', '--cluster=c1', '--show-secrets']);
  expect(await open.exited).toMatchObject({ code: 0 });
  const all = parseAllDocuments(await open.log()).map((document) => document.toJS() as ManifestWork);
  const live = await hub.client.get(manifestWorks, { namespace: 'c1', name: 'argocd-agent-addon-agent' });
  expect(keyOf(all)).toBe(keyOf(live ? [live] : []));

  const file = join(hub.dir, 'goc.yaml');
  const wished: GitOpsCluster = {
    apiVersion: 'apps.open-cluster-management.io/v1alpha1',
    kind: 'GitOpsCluster',
    metadata: { name: 'draft' },
    spec: {
      placementRef: { kind: 'Placement', name: 'x' },
      argoCDAgentAddon: { principalServerAddress: 'other', principalServerPort: '8443', agentNamespace: 'gitops' },
    },
  };
  await writeFile(file, JSON.stringify(wished));
  const draft = await program('draft', ['render', '--cluster=c1', '-f', file]);
  expect(await draft.exited).toMatchObject({ code: 0 });
  expect(await draft.log()).toMatch(/agent\.server\.address: other[\s\S]*agent\.namespace: gitops/);

  const unknown = await program('unknown', ['render', '--cluster=nope']);
  expect(await unknown.exited).toMatchObject({ code: 1 });
  expect(await unknown.log()).toMatch(/there is no ManagedCluster nope, which --cluster names\n$/);
  expect(await unknown.log()).not.toContain('ManifestWork');
});

test('uninstall leaves no GitOpsCluster behind without a controller', async () => {
  const uninstall = await program('uninstall-one', ['uninstall', '--namespace=argocd', '--name=another']);
  expect(await uninstall.exited).toMatchObject({ code: 1 });
  expect(await uninstall.log()).toContain('GitOpsCluster argocd/fleet would be left without a controller');
  const keep = await program('keep', ['uninstall', '--namespace=argocd', '--name=fleet', '--keep-clusters']);
  expect(await keep.exited).toMatchObject({ code: 0 });
  expect(await keep.log()).toContain('its clusters keep what they have');
  const key = { namespace: 'argocd', name: 'fleet' };
  expect((await hub.client.get(gitOpsClusters, key))?.metadata.finalizers ?? []).toEqual([]);
  const annotations = { 'apps.open-cluster-management.io/retain-clusters': null };
  await hub.client.mergePatch(gitOpsClusters, key, { metadata: { annotations } });
  await until('it to be held', async () => (await hub.client.get(gitOpsClusters, key))?.metadata.finalizers?.length);
});

test('uninstall as a hook leaves alone what kubectl has applied, which started the hook with the rest', async () => {
  const key = { namespace: 'argocd', name: 'fleet' };
  const { metadata, spec } = (await hub.client.get(gitOpsClusters, key)) ?? {};
  const applied = { metadata: { ...key, annotations: { from: 'a rendering' } }, spec } as never;
  await hub.client.apply(gitOpsClusters, applied, { fieldManager: 'kubectl', force: true });
  const args = ['uninstall', '--namespace=argocd', '--name=fleet', '--timeout=120s'];
  const hook = await program('hook', args, { UNINSTALL_HOOK: 'true' });
  expect(await hook.exited).toMatchObject({ code: 0 });
  expect(await hook.log()).toContain('GitOpsCluster argocd/fleet was applied by kubectl, which knows no hooks');
  const left = (await hub.client.get(gitOpsClusters, key))?.metadata;
  expect([left?.uid, left?.deletionTimestamp]).toEqual([metadata?.uid, undefined]);
});

test('uninstall waits until the controller has cleaned up', async () => {
  const uninstall = await program('uninstall', ['uninstall', '--namespace=argocd', '--name=fleet', '--timeout=120s']);
  await fixture.endCleanUp('c1');
  expect(await uninstall.exited).toMatchObject({ code: 0 });
  expect(await uninstall.log()).toContain('GitOpsCluster argocd/fleet is gone');
  expect(await hub.client.list(manifestWorks, { namespace: 'c1' })).toEqual([]);
});

test('a mistake on the command line is reported in one line', async () => {
  const bad = await program('bad', ['--mode=addon']);
  expect(await bad.exited).toMatchObject({ code: 1 });
  expect(await bad.log()).toMatch(/^Error: .*--mode.*"addon" is not supported by this version/);
  const none = await program('none', [], { CONTROLLER_IMAGE: '' });
  expect(await none.exited).toMatchObject({ code: 1 });
  expect(await none.log()).toMatch(/^Error: --agent-image \(or CONTROLLER_IMAGE\) must say which image/m);
});
