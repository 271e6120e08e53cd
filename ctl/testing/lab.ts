import { readFile, writeFile } from 'node:fs/promises';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { SharedCluster } from '../../e2e/testbed/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { argoAppProjects } from '../../lib/bridge/index.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  deployments,
  endpointSlices,
  type KubeObject,
  leases,
  namespaces,
  type ObjectKey,
  pods,
  type ResourceType,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
} from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { shownApplications } from '../../lib/way/index.ts';
import { type CtlRun, runCtl } from './run-ctl.ts';

/** A hub and the cluster of agent `east` in two namespaces of one API server, all of it healthy. */
export interface CtlLab {
  readonly kubeconfig: string;
  /** Runs the tool on both sides, contexts `hub` and `east`. */
  ctl(...args: string[]): Promise<CtlRun>;
  /** Changes an object, or deletes it; the returned function restores it. */
  alter<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    change: ((object: T) => void) | 'delete',
  ): Promise<() => Promise<void>>;
  /** Says of the agent's pod, which no kubelet runs, whether it is ready. Resolves when its Deployment says so, too. */
  agentPod(isReady: boolean): Promise<void>;
  /** `host:port` of a server with the principal's certificate. */
  readonly address: string;
  stop(): Promise<void>;
}

/** Namespace of the agent. */
export const labAgentNamespace = 'argocd-east';
const agentName = 'argocd-agent-agent';
const argoCd = { [wellKnown.partOfLabel]: 'argocd' };
const principalLabels = { 'app.kubernetes.io/name': 'argocd-agent-principal' };

/** A kubeconfig with the contexts `hub` and `east` of one API server. */
export async function twoContexts(cluster: SharedCluster): Promise<string> {
  const config = parse(await readFile(cluster.kubeconfig, 'utf8'));
  const [{ context }] = config.contexts;
  config.contexts = ['hub', 'east'].map((name) => ({ name, context }));
  config['current-context'] = 'hub';
  const path = join(cluster.dir, 'two-contexts');
  await writeFile(path, JSON.stringify(config));
  return path;
}

/** Makes a namespace unless it is there. */
export async function ensureNamespaces(cluster: SharedCluster, ...names: string[]): Promise<void> {
  for (const name of names) {
    if ((await cluster.client.get(namespaces, { name })) === undefined) {
      await cluster.client.create(namespaces, { metadata: { name } });
    }
  }
}

/** Makes the lab. */
export async function startLab(cluster: SharedCluster): Promise<CtlLab> {
  const { client } = cluster;
  const kubeconfig = await twoContexts(cluster);
  await ensureNamespaces(cluster, 'argocd', labAgentNamespace, 'east');
  const sides = ['--principal-context=hub', '--agent-context=east', `--agent-namespace=${labAgentNamespace}`];
  const hubOnly = ['--kubeconfig', kubeconfig, '--principal-context=hub'];
  const must = async (...args: string[]) => {
    const run = await runCtl([...args, '--kubeconfig', kubeconfig]);
    if (run.code !== 0) {
      throw new Error(`${args.join(' ')}: ${run.err}${run.out}`);
    }
  };
  const fast = ['--key-algorithm=ecdsa-p256', '--principal-context=hub'];
  await must('pki', 'init', ...fast);
  await must('pki', 'issue', 'principal', '--ip=127.0.0.1', '--dns=hub.example.com', ...fast);
  await must('pki', 'issue', 'resource-proxy', '--dns=argocd-agent-resource-proxy', ...fast);
  await must('jwt', 'create-key', '--principal-context=hub');
  await must('agent', 'create', 'east', ...fast);
  await must('pki', 'issue', 'agent', 'east', ...sides, '--key-algorithm=ecdsa-p256');
  const pair = decodeSecret(
    (await client.get(secrets, { namespace: 'argocd', name: 'argocd-agent-principal-tls' })) ?? { data: {} },
  );
  const server = createSecureServer({ cert: pair['tls.crt'] ?? '', key: pair['tls.key'] ?? '' });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port = (server.address() as AddressInfo).port;
  await makeObjects(cluster, port);
  await makeDelivered(cluster);
  await agentPod(cluster, true);
  return {
    kubeconfig,
    address: `127.0.0.1:${port}`,
    ctl: (...args) => {
      const own = args.some((arg) => arg.startsWith('--agent-context'))
        ? [...hubOnly, `--agent-namespace=${labAgentNamespace}`]
        : hubOnly;
      return runCtl([...args, ...own]);
    },
    alter: async (type, key, change) => {
      const before = await client.get(type, key);
      if (before === undefined) {
        throw new Error(`${type.kind} ${key.name} does not exist`);
      }
      if (change === 'delete') {
        await client.delete(type, key);
      } else {
        const next = structuredClone(before);
        change(next);
        await client.replace(type, next);
      }
      return async () => {
        const { uid: _, resourceVersion: __, creationTimestamp: ___, ...metadata } = before.metadata;
        await client.delete(type, key);
        await client.create(type, { ...before, metadata });
      };
    },
    agentPod: (isReady) => agentPod(cluster, isReady),
    stop: () => closed(server),
  };
}

async function makeObjects({ client }: SharedCluster, port: number): Promise<void> {
  const hub = { namespace: 'argocd' };
  const cluster = { namespace: labAgentNamespace };
  const workload = (name: string, labels: Record<string, string>, more: object = {}) => ({
    metadata: { name, labels },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name, image: `x/${name}:0.1.0` }], ...more },
      },
    },
  });
  for (const place of [hub, cluster]) {
    const redis = workload('argocd-redis', { ...argoCd, 'app.kubernetes.io/component': 'redis' });
    await client.create(deployments, { ...redis, metadata: { ...redis.metadata, ...place } });
    await service('argocd-redis', place.namespace, 6379, 'redis', {});
  }
  async function service(
    name: string,
    namespace: string,
    at: number,
    portName: string,
    labels: Record<string, string>,
  ) {
    await client.create(services, {
      metadata: { name, namespace, labels },
      spec: { ports: [{ name: portName, port: at }] },
    });
    await client.create(endpointSlices, {
      metadata: { name: `${name}-1`, namespace, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
      ports: [{ name: portName, port: at, protocol: 'TCP' }],
    });
  }
  await service('argocd-agent-principal', hub.namespace, 443, 'https', principalLabels);
  const account = { ...hub, name: 'argocd-agent-principal' };
  await client.create(serviceAccounts, { metadata: account });
  const core = { apiGroups: [''], resources: ['secrets', 'configmaps'], verbs: ['list', 'watch'] };
  const argo = {
    apiGroups: ['argoproj.io'],
    resources: ['applications', 'appprojects'],
    verbs: ['list', 'watch', 'patch'],
  };
  const subjects = [{ kind: 'ServiceAccount', ...account }];
  const apiGroup = 'rbac.authorization.k8s.io';
  await client.create(roles, { metadata: account, rules: [core, argo] });
  await client.create(roleBindings, {
    metadata: account,
    roleRef: { apiGroup, kind: 'Role', name: account.name },
    subjects,
  });
  const everywhere = { name: account.name };
  await client.create(clusterRoles, { metadata: everywhere, rules: [argo] });
  const roleRef = { apiGroup, kind: 'ClusterRole', name: account.name };
  await client.create(clusterRoleBindings, { metadata: everywhere, roleRef, subjects });
  const principal = workload('argocd-agent-principal', principalLabels, { serviceAccountName: account.name });
  await client.create(deployments, { ...principal, metadata: { ...principal.metadata, ...hub } });
  const params = { 'principal.destination-based-mapping': 'false' };
  await client.create(configMaps, { metadata: { ...hub, name: 'argocd-agent-params' }, data: params });
  await client.create(configMaps, {
    metadata: { ...cluster, name: 'argocd-agent-params' },
    data: { 'agent.server.address': '127.0.0.1', 'agent.server.port': String(port), 'agent.mode': 'managed' },
  });
  const agent = workload(agentName, {});
  await client.create(deployments, { ...agent, metadata: { ...agent.metadata, ...cluster } });
  await client.create(leases, {
    metadata: {
      ...hub,
      name: 'argocd-agent-east',
      labels: {
        [wellKnown.partOfLabel]: 'argocd-agent',
        'app.kubernetes.io/component': 'connection',
        [wellKnown.agentNameLabel]: 'east',
      },
      annotations: {
        'argocd-agent.argoproj-labs.io/connected': 'true',
        'argocd-agent.argoproj-labs.io/agent-version': 'argocd-agent-0.1.0',
        [wellKnown.agentModeAnnotation]: 'managed',
      },
    },
    spec: { holderIdentity: 'p', renewTime: '2026-01-01T00:00:00.000000Z', acquireTime: '2026-01-01T00:00:00.000000Z' },
  });
}

/** What the hub gives to the agent, and the agent has: a project, a repository with its credentials, an Application. */
async function makeDelivered({ client }: SharedCluster): Promise<void> {
  const name = 'shop';
  const url = 'https://git.example.com/shop.git';
  const destinations = [{ name: 'east', namespace: '*' }];
  const spec = { sourceNamespaces: ['east'], sourceRepos: ['*'], destinations };
  await client.create(argoAppProjects, { metadata: { namespace: 'argocd', name }, spec } as KubeObject);
  const text = { url, username: 'reader', password: 'open sesame', project: name };
  const data = Object.fromEntries(
    Object.entries(text).map(([field, value]) => [field, Buffer.from(value).toString('base64')]),
  );
  const labels = { [wellKnown.secretTypeLabel]: 'repository' };
  const repository = await client.create(secrets, {
    metadata: { namespace: 'argocd', name: 'repo-shop', labels },
    data,
  });
  const copied = (of: KubeObject) => ({ 'argocd.argoproj.io/source-uid': of.metadata.uid ?? '' });
  const place = { namespace: labAgentNamespace };
  const metadata = { ...place, name: 'repo-shop', labels, annotations: copied(repository) };
  await client.create(secrets, { metadata, data });
  const application = {
    spec: { project: name, source: { repoURL: url, path: '.' }, destination: { name: 'east', namespace: name } },
    status: { sync: { status: 'Synced' }, health: { status: 'Healthy' } },
  };
  const own = await client.create(shownApplications, { metadata: { namespace: 'east', name }, ...application });
  await client.create(shownApplications, { metadata: { ...place, name, annotations: copied(own) }, ...application });
}

async function agentPod({ client }: SharedCluster, isReady: boolean): Promise<void> {
  const namespace = labAgentNamespace;
  const pod = await until("the agent's pod", async () => {
    const all = await client.list(pods, { namespace });
    return all.find(({ metadata }) => metadata.labels?.app === agentName) ?? false;
  });
  const conditions = [
    { type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: new Date().toISOString() },
  ];
  const status = { phase: 'Running', conditions };
  await client.mergePatch(pods, { namespace, name: pod.metadata.name }, { status }, { subresource: 'status' });
  await until('the Deployment of the agent to know', async () => {
    const deployment = await client.get(deployments, { namespace, name: agentName });
    return (deployment?.status?.readyReplicas ?? 0) === Number(isReady);
  });
}

function closed(server: { close(done: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
