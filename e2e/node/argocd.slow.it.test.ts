import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { deployments, type KubeObject, type Pod, pods, resourceType, statefulSets } from '../../lib/kube/index.ts';
import { applyDeliveredArgoCd } from '../argocd/index.ts';
import { type GitServer, startGitServer } from '../git/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { loopbackAddress, type Node, startNode } from './index.ts';

interface Application extends KubeObject {
  spec: object;
  status?: { sync?: { status?: string }; health?: { status?: string }; conditions?: { message: string }[] };
}

const applications = resourceType<Application>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'Application',
  plural: 'applications',
  namespaced: true,
});
const projects = resourceType<KubeObject & { spec: object }>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'AppProject',
  plural: 'appprojects',
  namespaced: true,
});
const root = new URL('../..', import.meta.url).pathname;
const namespace = 'argocd';

let cluster: Cluster;
let node: Node;
let git: GitServer;

beforeAll(async () => {
  cluster = await startCluster({ name: 'argocd-test' });
  node = await startNode({ cluster, dir: cluster.dir });
  git = await startGitServer(join(cluster.dir, 'git'));
  await cluster.applyCrds(join(root, 'charts/argocd-agent-addon/charts/argocd-hub/files/crds'));
}, 600_000);

afterAll(async () => {
  await git?.stop();
  await node?.stop();
  await cluster?.stop();
});

it('runs the delivered Argo CD, which brings an Application from Git to Synced and Healthy', async () => {
  await applyDeliveredArgoCd(cluster.client, namespace);
  await cluster.client.create(projects, {
    metadata: { name: 'default', namespace },
    spec: {
      sourceRepos: ['*'],
      destinations: [{ namespace: '*', server: '*' }],
      clusterResourceWhitelist: [{ group: '*', kind: '*' }],
    },
  });
  await git.commit('guestbook', { 'deployment.yaml': guestbook }, 'A deployment');
  await cluster.client.create(applications, {
    metadata: { name: 'guestbook', namespace },
    spec: {
      project: 'default',
      source: { repoURL: git.url('guestbook'), path: '.', targetRevision: 'HEAD' },
      destination: { server: 'https://kubernetes.default.svc', namespace: 'default' },
      syncPolicy: { automated: {} },
    },
  });
  await until(
    async () => {
      const controller = await cluster.client.get(statefulSets, { namespace, name: 'argocd-application-controller' });
      expect(controller?.status?.readyReplicas, await whatRuns()).toBe(1);
      for (const name of ['argocd-repo-server', 'argocd-redis']) {
        const deployment = await cluster.client.get(deployments, { namespace, name });
        expect(deployment?.status?.availableReplicas, await whatRuns()).toBe(1);
      }
    },
    { timeoutMs: 240_000 },
  );
  await until(
    async () => {
      const app = await cluster.client.get(applications, { namespace, name: 'guestbook' });
      const { sync, health } = app?.status ?? {};
      expect([sync?.status, health?.status], JSON.stringify(app?.status?.conditions)).toEqual(['Synced', 'Healthy']);
    },
    { timeoutMs: 240_000 },
  );
  const all = await cluster.client.list(pods, {});
  const server = all.find(({ metadata }) => metadata.name.startsWith('argocd-repo-server'));
  // What its liveness probe asks: the repo server calls itself, on localhost.
  const { host, port } = { host: loopbackAddress(server?.status?.podIP ?? ''), port: 8084 };
  const healthz = await fetch(`http://${host}:${port}/healthz?full=true`);
  expect([healthz.status, await healthz.text()]).toEqual([200, expect.anything()]);
  // Only who may use the pod reaches it: a program that listens on all addresses of the machine has this one, too.
  const repositories = node.podEndpoint(namespace, server?.metadata.name ?? '', 8081);
  expect(await answers('127.0.0.1', repositories?.port ?? 0)).toBe(true);
  expect(await answers('127.255.255.254', repositories?.port ?? 0)).toBe(false);
  const restarts = all.map((pod) => [pod.metadata.name, pod.status?.containerStatuses?.[0]?.restartCount]);
  expect(restarts.filter(([, count]) => count !== 0)).toEqual([]);
}, 600_000);

async function answers(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function whatRuns(): Promise<string> {
  const all: Pod[] = await cluster.client.list(pods, { namespace });
  const lines = all.map(async ({ metadata, status }) => {
    return `${metadata.name} ${JSON.stringify(status?.containerStatuses)}\n${await node.log(namespace, metadata.name)}`;
  });
  return (await Promise.all(lines)).join('\n');
}

const guestbook = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: guestbook }
spec:
  replicas: 1
  selector: { matchLabels: { app: guestbook } }
  template:
    metadata: { labels: { app: guestbook } }
    spec: { containers: [{ name: web, image: "nginx:1.27", readinessProbe: { httpGet: { path: /, port: 80 } } }] }
`;
