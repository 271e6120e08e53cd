import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, expect, test } from 'vitest';
import { applyPublishedArgoCd } from '../../e2e/hub/index.ts';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { toolPath } from '../../e2e/tools/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  ApiError,
  type ConfigMap,
  configMaps,
  deployments,
  endpointSlices,
  events,
  type KubeClient,
  services,
  statefulSets,
} from '../../lib/kube/index.ts';
import { gitOpsClusters, keys } from '../hub/index.ts';
import { useHub } from '../testing/hub.ts';

// The hub has an Argo CD of its own, as its project publishes it, beside our principal.

const proxy = 'argocd-agent-redis-proxy:6379';
const checksum = 'checksum/argocd-cmd-params-cm';
let kubeconfig = '';
const hub = useHub(async (options) => {
  const cluster = await borrowCluster(options);
  kubeconfig = cluster.kubeconfig;
  return cluster;
});

const key = () => ({ namespace: hub.ns, name: 'argocd-cmd-params-cm' });
const params = () => hub.client.get(configMaps, key());
const data = async () => (await params())?.data;
const change = (values: Record<string, string | null>) => hub.client.mergePatch(configMaps, key(), { data: values });
const consent = () => ({ configuredNamespaces: [hub.ns] });
const condition = (status: string, message?: RegExp) =>
  hub.fixture.conditionIs([hub.ns, 'fleet'], 'HubArgoCDCompatible', status, message);
/** An application controller of a version that is not known would be reported. */
const scaleControllerDown = () =>
  hub.client.mergePatch(
    statefulSets,
    { namespace: hub.ns, name: 'argocd-application-controller' },
    { spec: { replicas: 0 } },
  );
const workloads = async () => [
  ...(await hub.client.list(deployments, { namespace: hub.ns })),
  ...(await hub.client.list(statefulSets, { namespace: hub.ns })),
];
/** Names of the workloads whose pods were replaced since their templates were made, and not put back since. */
const restarted = async (annotation = checksum) =>
  (await workloads())
    .filter(({ spec }) => spec?.template?.metadata?.annotations?.[annotation])
    .map(({ metadata }) => metadata.name)
    .sort();
/** Names of the workloads that Argo CD's project lets read a parameter from the ConfigMap. */
const readersOf = async (...parameters: string[]) =>
  (await workloads())
    .filter((one) => parameters.some((parameter) => JSON.stringify(one.spec).includes(`"key":"${parameter}"`)))
    .map(({ metadata }) => metadata.name)
    .sort();
const generations = async () =>
  Object.fromEntries((await workloads()).map(({ metadata }) => [metadata.name, metadata.generation]));

async function shell(command: string): Promise<void> {
  const path = `${dirname(await toolPath('kubectl'))}:${process.env.PATH}`;
  const env = { PATH: path, KUBECONFIG: kubeconfig, KUBECACHEDIR: join(dirname(kubeconfig), 'kubectl') };
  await promisify(execFile)('/bin/sh', ['-c', command], { env });
}

/** The command at the end of a condition's message. */
function commandIn(message: string): string {
  const [, command] = /[rR]un: (kubectl .*)$/.exec(message) ?? [];
  expect(command, message).toBeDefined();
  return command ?? '';
}

beforeEach(async () => {
  // Versions are not the matter here.
  await applyPublishedArgoCd(hub.client, hub.ns, 'quay.io/argoproj/argocd:latest');
  await scaleControllerDown();
  const spec = { ports: [{ port: 6379 }] };
  await hub.fixture.put(services, { metadata: { namespace: hub.ns, name: 'argocd-agent-redis-proxy' }, spec });
});

test('without consent nothing is changed, and the command in the condition sets everything', async () => {
  const before = [await params(), await generations()];
  await hub.enroll();
  const { message, reason } = await condition('False', /no resource trees .* hubArgoCD\.configure to true, or run: /);
  expect(reason).toBe('HubArgoCDNotConfigured');
  await hub.idle();
  expect([await params(), await generations()]).toEqual(before);
  await shell(commandIn(message));
  await condition('True', /is set up for live access$/);
  expect(await data()).toEqual({ 'redis.server': proxy });
  expect(await restarted('kubectl.kubernetes.io/restartedAt')).toEqual(await readersOf('redis.server'));
  await change({ 'redis.server': null });
  await condition('False', /no resource trees/);
  const recorded = await hub.client.list(events, { namespace: hub.ns });
  expect(recorded.filter(({ reason }) => reason === 'HubArgoCDCompatibleFailed')).toHaveLength(1);
});

test('with consent it is set, restarted once, repaired, and given back when consent ends', async () => {
  await change({ 'redis.server': 'argocd-redis:6379', 'server.insecure': 'true' });
  const before = await generations();
  await hub.enroll(consent());
  await condition('True', /set up for live access/);
  await hub.idle();
  expect(await data()).toEqual({ 'redis.server': proxy, 'server.insecure': 'true' });
  const readers = await readersOf('redis.server');
  expect(readers).toContain('argocd-server');
  expect(await restarted()).toEqual(readers);
  const once = Object.fromEntries(
    Object.entries(before).map(([name, generation = 0]) => [name, generation + (readers.includes(name) ? 1 : 0)]),
  );
  expect(await generations()).toEqual(once);

  for (const drift of [null, 'argocd-redis:6379']) {
    await change({ 'redis.server': drift });
    await until('the repair', async () => (await data())?.['redis.server'] === proxy);
  }
  await hub.client.delete(configMaps, key());
  await until('the ConfigMap', async () => (await data())?.['redis.server'] === proxy);
  await hub.client.delete(configMaps, key());
  await until('the ConfigMap', params);
  await change({ 'server.insecure': 'true' });
  await hub.idle();
  expect(await generations()).toEqual(once);

  await hub.restart();
  await until('what was there', async () => JSON.stringify(await data()) === '{"server.insecure":"true"}');
  await until('no mark', async () => (await restarted()).length === 0);
  expect((await params())?.metadata.annotations?.[keys.configuredParams]).toBeUndefined();
  await condition('False', /hubArgoCD\.configure/);
});

test('with consent, Argo CD is not sent to a principal that is not there yet, and stays with one that is away', async () => {
  const spec = { ports: [{ name: 'https', port: 443 }] };
  await hub.fixture.put(services, { metadata: { namespace: hub.ns, name: 'argocd-agent-principal' }, spec });
  const serve = (ready: boolean) =>
    hub.fixture.put(endpointSlices, {
      metadata: {
        namespace: hub.ns,
        name: 'argocd-agent-principal-1',
        labels: { 'kubernetes.io/service-name': 'argocd-agent-principal' },
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready } }],
      ports: [],
    });
  await serve(false);
  await hub.fixture.placement(hub.ns, 'placement', []);
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement');
  hub.start(consent());
  expect((await condition('False', /sets it when the principal is ready$/)).reason).toBe('InProgress');
  await hub.idle();
  expect(await data()).toBeUndefined();
  await serve(true);
  await condition('True', /set up for live access/);
  await serve(false);
  await change({ 'redis.server': null });
  await until('the repair', async () => (await data())?.['redis.server'] === proxy);
});

test.each([
  ['deleted', () => hub.client.delete(gitOpsClusters, { namespace: hub.ns, name: 'fleet' })],
  [
    'retained',
    () =>
      hub.client.mergePatch(
        gitOpsClusters,
        { namespace: hub.ns, name: 'fleet' },
        { metadata: { annotations: { [keys.retain]: 'true' } } },
      ),
  ],
])('when the last GitOpsCluster is %s, everything is given back before its finalizer goes', async (_, leave) => {
  await change({ 'redis.server': 'argocd-redis:6379' });
  await hub.fixture.placement(hub.ns, 'placement', []);
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement');
  hub.start(consent());
  await condition('True', /set up for live access/);
  await leave();
  await until('the finalizer to go', async () => {
    const left = await hub.client.get(gitOpsClusters, { namespace: hub.ns, name: 'fleet' });
    return (left?.metadata.finalizers ?? []).length === 0;
  });
  expect(await data()).toEqual({ 'redis.server': 'argocd-redis:6379' });
  expect(await restarted()).toEqual([]);
});

test("a value of the user's stays until the principal forwards to that Redis", async () => {
  const mine = 'argocd-redis-ha-haproxy:6379';
  await change({ 'redis.server': mine });
  await hub.enroll(consent());
  const { message } = await condition('False', /"argocd-redis-ha-haproxy:6379", it must be .* does not replace/);
  expect(message).toContain('principal.redis.server.address');
  expect(commandIn(message)).toMatch(/^kubectl -n \S+ patch configmap .* && kubectl -n \S+ rollout restart /);
  await hub.idle();
  expect(await data()).toEqual({ 'redis.server': mine });
  expect(await restarted()).toEqual([]);
  await hub.fixture.put(configMaps, {
    metadata: { namespace: hub.ns, name: 'argocd-agent-params' },
    data: { 'principal.redis.server.address': mine },
  });
  await condition('True', /set up for live access/);
  expect(await data()).toEqual({ 'redis.server': proxy });
  // Now the user decides otherwise: that stays, too, and is not given back.
  await change({ 'redis.server': 'other:6379' });
  await condition('False', /"other:6379", it must be/);
  await until('no mark', async () => (await restarted()).length === 0);
  await hub.restart();
  await condition('False', /"other:6379"/);
  await hub.idle();
  expect(await data()).toEqual({ 'redis.server': 'other:6379' });
});

test('Applications in the namespaces of clusters need one more parameter, which more programs read', async () => {
  await change({ 'application.namespaces': 'team-*' });
  await hub.enroll(consent(), { destinationBasedMapping: false });
  const { message } = await condition('False', /"team-\*", it must be "\*"\. The controller does not replace/);
  expect(message).toContain(`It leaves out [${hub.a} ${hub.b}]`);
  await until('the other parameter', async () => (await data())?.['redis.server'] === proxy);
  expect(await restarted()).toEqual(await readersOf('redis.server'));
  await shell(commandIn(message));
  await condition('True');
  await change({ 'application.namespaces': null });
  await until('all namespaces', async () => (await data())?.['application.namespaces'] === '*');
  const readers = await readersOf('redis.server', 'application.namespaces');
  expect(readers).toContain('argocd-notifications-controller');
  await until('the restart', async () => JSON.stringify(await restarted()) === JSON.stringify(readers));
});

test('parameters that somebody else keeps are left alone', async () => {
  const owners: Pick<ConfigMap['metadata'], 'annotations' | 'ownerReferences'>[] = [
    { ownerReferences: [{ apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', name: 'gitops', uid: 'u' }] },
    { annotations: { 'meta.helm.sh/release-name': 'cd', 'meta.helm.sh/release-namespace': 'argocd' } },
  ];
  const before = await generations();
  await hub.client.mergePatch(configMaps, key(), { metadata: owners[0] });
  await hub.enroll(consent());
  await condition('False', /^the UI .* ArgoCD \S+\/gitops of argocd-operator would put back .*"remote":"argocd-agent/);
  await hub.client.mergePatch(configMaps, key(), { metadata: { ...owners[1], ownerReferences: null } });
  await condition('False', /Helm release argocd\/cd would put back .* 'configs\.params\.redis\\\.server=/);
  await hub.idle();
  expect(await data()).toBeUndefined();
  expect(await generations()).toEqual(before);
  await change({ 'redis.server': proxy });
  await condition('True');
});

test('a ConfigMap that is absent is created by the command, or with consent, and goes again', async () => {
  await hub.client.delete(configMaps, key());
  await hub.enroll();
  const { message } = await condition('False', /is not set/);
  await shell(commandIn(message));
  await condition('True');
  await hub.client.delete(configMaps, key());
  await condition('False', /is not set/);
  await hub.stop();
  hub.start(consent());
  await condition('True');
  expect(await data()).toEqual({ 'redis.server': proxy });
  await hub.restart();
  await until('the ConfigMap to go', async () => (await params()) === undefined);
  await condition('False', /is not set/);
});

test('a restart that is refused is said with the commands, and holds no GitOpsCluster up', async () => {
  const refusing = (client: KubeClient): KubeClient =>
    new Proxy(client, {
      get: (target, property) => {
        const value = Reflect.get(target, property, target);
        if (typeof value !== 'function') {
          return value;
        }
        return (...args: unknown[]) => {
          const { plural } = (args[0] ?? {}) as { plural?: string };
          if (property === 'mergePatch' && (plural === 'deployments' || plural === 'statefulsets')) {
            throw new ApiError({ status: 403, message: `${plural} are forbidden` });
          }
          return value.apply(target, args);
        };
      },
    });
  await hub.fixture.placement(hub.ns, 'placement', []);
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement');
  hub.start({ ...consent(), client: refusing(hub.client) });
  const { message } = await condition('False', /may not restart programs .* run: /);
  await shell(commandIn(message));
  await condition('True');
  expect(await restarted()).toEqual(await readersOf('redis.server'));
  await hub.client.delete(gitOpsClusters, { namespace: hub.ns, name: 'fleet' });
  await until('it is gone', async () => !(await hub.client.get(gitOpsClusters, { namespace: hub.ns, name: 'fleet' })));
  expect((await data()) ?? {}).toEqual({});
  const left = await until('the Event', async () =>
    (await hub.client.list(events, { namespace: hub.ns })).find(({ reason }) => reason === 'HubArgoCDNotRestarted'),
  );
  await shell(commandIn(left.note ?? ''));
  expect(await restarted()).toEqual([]);
});
