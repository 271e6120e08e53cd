import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import {
  clusterRoleBindings,
  type KubeObject,
  namespaces,
  pods,
  resourceType,
  serviceAccounts,
} from '../../lib/kube/index.ts';
import { issueCertificate } from '../../lib/pki/index.ts';
import { ArgoCdApi, applyDeliveredArgoCd } from '../argocd/index.ts';
import { fleetApplications, fleetAppProjects } from '../fleet/index.ts';
import { type GitServer, startGitServer } from '../git/index.ts';
import { installCrds, publishedCrds } from '../hub/index.ts';
import { type Node, startNode } from '../node/index.ts';
import {
  argoCdProgram,
  freePort,
  namespace,
  type Pair,
  type Program,
  put,
  putArgoCdSettings,
  startPair,
} from '../pair/index.ts';
import { type Redis, startRedis } from '../redis/index.ts';
import { requestsOf } from '../rights/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';

// The actions that Argo CD's API server has for a Rollout of Argo Rollouts, on the cluster of an agent: Argo CD's own
// server on the hub, the Argo CD that the add-on delivers on the cluster, and Argo Rollouts' published CRD. Its controller does
// not run: the test plays it, and looks at what it would have seen.

interface Rollout extends KubeObject {
  spec: { restartAt?: string; [field: string]: unknown };
  status?: { abort?: boolean; promoteFull?: boolean; phase?: string; [field: string]: unknown };
}
const rollouts = resourceType<Rollout>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'Rollout',
  plural: 'rollouts',
  namespaced: true,
});
const rollout = { namespace: 'shop', name: 'shop' };
const agentAccount = { namespace, name: 'the-agent' };
const now = '2026-01-01T00:00:00Z';
const patience = { timeoutMs: 240_000 };

let pair: Pair<Cluster>;
let node: Node;
let git: GitServer;
let folder: string;
let redis: Redis;
let agent: Program;
let server: Program;
let api: ArgoCdApi;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rollouts-'));
  git = await startGitServer(join(folder, 'git'));
  await git.commit('shop', { 'rollout.yaml': manifest }, 'A rollout');
  redis = await startRedis();
  const [resources, cache, port] = await Promise.all([freePort(), freePort(), freePort()]);
  const setup = { resourceProxy: resources, redisProxy: cache, redis: redis.port };
  pair = await startPair({ idle: true, principal: setup }, () => startCluster({ audit: true }));
  const { hub, managed, principal, name } = pair;
  principal.start();
  await Promise.all([
    managed.client.create(namespaces, { metadata: { name: rollout.namespace } }),
    publishedCrds('argo-rollouts').then((crds) => installCrds(managed.client, crds)),
  ]);
  node = await startNode({ cluster: managed, dir: join(folder, 'node') });
  await applyDeliveredArgoCd(managed.client, namespace);
  await managed.client.create(serviceAccounts, { metadata: agentAccount });
  await managed.client.create(clusterRoleBindings, {
    metadata: { name: agentAccount.name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', ...agentAccount }],
  } as never);
  const kubeconfig = await managed.kubeconfigFor({ serviceAccount: agentAccount });
  const args = [`--redis-addr=${await redisOfCluster()}`];
  agent = await pair.otherAgent({ kubeconfig, args }, managed, { REDIS_PASSWORD: 'secret' });
  agent.start();
  await hub.client.create(fleetAppProjects, {
    metadata: { namespace, name: 'default' },
    spec: {
      sourceRepos: ['*'],
      sourceNamespaces: ['*'],
      destinations: [{ namespace: '*', server: '*', name: '*' }],
      clusterResourceWhitelist: [{ group: '*', kind: '*' }],
    },
  });
  await registerCluster(resources);
  const address = { host: '127.0.0.1', port };
  server = await argoCdProgram('argocd-server', hub, [
    `--application-namespaces=${name}`,
    '--address=127.0.0.1',
    `--port=${port}`,
    '--metrics-address=127.0.0.1',
    `--metrics-port=${await freePort()}`,
    '--disable-auth',
    '--staticassets=/nonexistent',
    `--redis=127.0.0.1:${cache}`,
  ]);
  await putArgoCdSettings(hub);
  server.start();
  api = new ArgoCdApi(address, '');
  await hub.client.create(fleetApplications, {
    metadata: { namespace: name, name: 'shop' },
    spec: {
      project: 'default',
      source: { repoURL: git.url('shop'), path: '.', targetRevision: 'main' },
      destination: { name, namespace: rollout.namespace },
      syncPolicy: { automated: {} },
    },
  });
  const { metadata } = await until('a Rollout', () => managed.client.get(rollouts, rollout), patience);
  // A release in the middle of its steps.
  const status = {
    ...{ observedGeneration: String(metadata.generation), phase: 'Paused', currentStepIndex: 1 },
    ...{ currentPodHash: 'bbbb', stableRS: 'aaaa', pauseConditions: [{ reason: 'CanaryPauseStep', startTime: now }] },
  };
  await managed.client.mergePatch(rollouts, rollout, { status }, { subresource: 'status' });
}, 600_000);
afterAll(async () => {
  api?.close();
  await server?.stop('SIGKILL');
  await node?.stop();
  await pair?.stop();
  await redis?.stop();
  await git?.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() =>
  onTestFailed(async () => {
    const found = await pair.managed.client.get(rollouts, rollout);
    const outputs = [server, agent, pair.principal].map((program) => program?.output.slice(-3_000));
    console.error(JSON.stringify(found, null, 1), ...outputs);
  }),
);

const manifest = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: { name: shop }
spec:
  replicas: 1
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
    spec: { containers: [{ name: web, image: "nginx:1.27" }] }
  strategy:
    canary:
      steps: [{ setWeight: 50 }, { pause: {} }]
`;

/** Where this machine reaches the Redis of the cluster's Argo CD. */
function redisOfCluster(): Promise<string> {
  return until(
    'Redis of the cluster',
    async () => {
      const all = await pair.managed.client.list(pods, { namespace });
      const pod = all.find(({ metadata }) => metadata.name.startsWith('argocd-redis'));
      const endpoint = pod && node.podEndpoint(namespace, pod.metadata.name, 6379);
      return endpoint && `${endpoint.host}:${endpoint.port}`;
    },
    patience,
  );
}

/** The cluster Secret with which Argo CD's server reaches the agent's cluster: the resource proxy, and a certificate. */
async function registerCluster(port: number): Promise<void> {
  const { authority, name, hub } = pair;
  const { certificate, key } = await issueCertificate({ authority, commonName: name, usages: ['client'] });
  const encode = (text: string) => Buffer.from(text).toString('base64');
  const tlsClientConfig = {
    caData: encode(authority.certificate),
    certData: encode(certificate),
    keyData: encode(key),
  };
  const data = {
    name,
    server: `https://127.0.0.1:${port}?agentName=${name}`,
    config: JSON.stringify({ tlsClientConfig }),
  };
  await put(hub.client, `cluster-${name}`, data, {
    labels: { 'argocd.argoproj.io/secret-type': 'cluster', 'argocd-agent.argoproj-labs.io/agent-name': name },
  });
}

const query = () =>
  new URLSearchParams({
    ...{ appNamespace: pair.name, namespace: rollout.namespace, resourceName: rollout.name },
    ...{ group: 'argoproj.io', version: 'v1alpha1', kind: 'Rollout' },
  });
const actionsPath = () => `/api/v1/applications/shop/resource/actions?${query()}`;
const live = async () => (await pair.managed.client.get(rollouts, rollout)) as Rollout;
/** An attempt fails while Argo CD's server does not know the Application's tree yet. */
const run = (action: string) => until(`${action} is taken`, () => api.call('POST', actionsPath(), action), patience);

test('Argo CD lists the actions of a Rollout, by its state on the cluster', async () => {
  const { actions } = await until(
    'the actions',
    () => api.get<{ actions: { name: string; disabled?: boolean }[] }>(actionsPath()),
    patience,
  );
  const enabled = actions.filter(({ disabled }) => disabled !== true).map(({ name }) => name);
  expect(enabled.sort()).toEqual(['abort', 'pause', 'promote-full', 'restart', 'resume', 'skip-current-step']);
});

test('restart, abort and promote-full change the Rollout, by patches of the object and of its status', async () => {
  await run('restart');
  expect(Date.parse((await live()).spec.restartAt ?? '')).toBeGreaterThan(Date.now() - 60_000);
  await run('abort');
  expect((await live()).status).toMatchObject({ abort: true, phase: 'Paused' });
  await run('retry');
  expect((await live()).status?.abort ?? false).toBe(false);
  await run('promote-full');
  expect((await live()).status).toMatchObject({ promoteFull: true, currentStepIndex: 1 });
  // What the API server of the cluster got from the agent.
  const asked = (await requestsOf(pair.managed.auditLog, `system:serviceaccount:${namespace}:${agentAccount.name}`))
    .filter(({ resource, verb }) => resource.startsWith('rollouts') && !['get', 'list', 'watch'].includes(verb))
    .map(({ verb, resource, namespace: where, name, allowed }) => `${verb} ${resource} ${where}/${name} ${allowed}`);
  expect(asked.sort()).toEqual(['patch rollouts shop/shop true', 'patch rollouts/status shop/shop true']);
});
