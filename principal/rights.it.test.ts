import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  application,
  namespace,
  type Pair,
  type Program,
  pairApplications,
  pairAppProjects,
  put,
  startPair,
} from '../e2e/pair/index.ts';
import type { SharedCluster } from '../e2e/testbed/index.ts';
import { until } from '../lib/base/testing.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  type KubeObject,
  type ResourceType,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
} from '../lib/kube/index.ts';

const all = ['create', 'get', 'list', 'watch', 'update', 'patch', 'delete'];
const argo = (...resources: string[]) => ({ apiGroups: ['argoproj.io'], resources, verbs: all });
const core = (resources: string[], verbs: string[]) => ({ apiGroups: [''], resources, verbs });
const common = [core(['secrets', 'configmaps'], all), core(['events'], ['create', 'list'])];
const readNamespaces = core(['namespaces'], ['create', 'get', 'list', 'watch']);

/** The rules of the install manifests of argocd-agent, which know of no Leases and of no events.k8s.io. */
const originals = {
  'argocd-agent-principal': {
    inNamespace: common,
    everywhere: [argo('applications', 'appprojects', 'applicationsets'), readNamespaces],
  },
  'argocd-agent-agent': {
    inNamespace: [argo('applications', 'appprojects', 'applicationsets'), ...common],
    everywhere: [readNamespaces, argo('applications')],
  },
};

let pair: Pair;
let principal: Program;
let agent: Program;
const logs = () => ({ details: () => [principal, agent].map(({ output }) => output.slice(-3_000)).join('\n---\n') });

/** A kubeconfig of a service account with those rights and no others. */
async function kubeconfigFor(cluster: SharedCluster, name: keyof typeof originals): Promise<string> {
  const { client } = cluster;
  const make = <T extends KubeObject>(type: ResourceType<T>, object: object) =>
    client.create(type, { metadata: type.namespaced ? { name, namespace } : { name }, ...object } as T);
  const { inNamespace, everywhere } = originals[name];
  const subjects = [{ kind: 'ServiceAccount', name, namespace }];
  const roleRef = (kind: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name });
  await client.create(serviceAccounts, { metadata: { name, namespace } });
  await make(roles, { rules: inNamespace });
  await make(clusterRoles, { rules: everywhere });
  await make(roleBindings, { subjects, roleRef: roleRef('Role') });
  await make(clusterRoleBindings, { subjects, roleRef: roleRef('ClusterRole') });
  return cluster.kubeconfigFor({ serviceAccount: { name, namespace } });
}

beforeAll(async () => {
  pair = await startPair({ idle: true });
  const [hub, managed] = await Promise.all([
    kubeconfigFor(pair.hub, 'argocd-agent-principal'),
    kubeconfigFor(pair.managed, 'argocd-agent-agent'),
  ]);
  const other = await pair.newPrincipal({ kubeconfig: hub });
  principal = other.program;
  agent = await pair.otherAgent({ kubeconfig: managed, server: other.port });
  principal.start();
  agent.start();
  await agent.says(/Connected to the principal/);
});
afterAll(async () => {
  await pair?.stop();
});

test("with the rights of argocd-agent's own manifests everything is synchronised; missing rights are logged", async () => {
  const { hub, managed } = pair;
  await principal.says(/cannot be recorded in Leases.*leases\.coordination\.k8s\.io/);
  await hub.client.create(pairAppProjects, {
    metadata: { name: 'store', namespace },
    spec: { sourceRepos: ['*'], sourceNamespaces: ['*'], destinations: [{ name: '*', namespace: '*', server: '*' }] },
  });
  const repository = { url: 'https://example.com/store.git', project: 'store' };
  await put(hub.client, 'repo-store', repository, { labels: { 'argocd.argoproj.io/secret-type': 'repository' } });
  await hub.client.create(configMaps, { metadata: { name: 'argocd-gpg-keys-cm', namespace }, data: { A: 'key' } });
  await hub.client.create(
    pairApplications,
    application({ name: 'till', namespace: pair.name, spec: { project: 'store' } }),
  );
  const arrives = <T extends KubeObject>(type: ResourceType<T>, name: string) =>
    until(`${type.kind} ${name}`, () => managed.client.get(type, { name, namespace }), logs());
  await arrives(pairAppProjects, 'store');
  await arrives(secrets, 'repo-store');
  await arrives(configMaps, 'argocd-gpg-keys-cm');
  await arrives(pairApplications, 'till');
  const status = { health: { status: 'Healthy' } };
  await managed.client.mergePatch(pairApplications, { name: 'till', namespace }, { status });
  await until(
    'the status',
    async () => (await hub.client.get(pairApplications, { name: 'till', namespace: pair.name }))?.status?.health,
    logs(),
  );
  expect(principal.output).not.toMatch(/\[FATAL\]/);
});

test('the mode is still pinned while the principal runs', async () => {
  await agent.stop();
  const port = Number(/agents.*port=(\d+)/.exec(principal.output)?.[1]);
  const impostor = await pair.otherAgent({ server: port, mode: 'autonomous' });
  impostor.start();
  await impostor.says(/this agent's mode is pinned to managed/);
  await impostor.stop();
});
