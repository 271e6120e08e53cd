import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { helm, pullChart } from './helm.ts';

interface Rendered extends KubeObject {
  spec?: {
    replicas?: number;
    template?: { spec?: PodSpec };
    agentSpec?: { workload: { manifests: Rendered[] } };
    [field: string]: unknown;
  };
  rules?: { apiGroups?: string[]; resources?: string[]; verbs: string[] }[];
  data?: Record<string, string>;
}

async function render(values: Record<string, unknown> = {}): Promise<Rendered[]> {
  const sets = Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
  const text = await helm(['template', 'argocd-pull-integration', pullChart, '--namespace', 'argocd', ...sets]);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object): object is Rendered => object !== null);
}

function named(objects: Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (!found) {
    throw new Error(`no ${kind} ${name} was rendered`);
  }
  return found;
}

const manifestsOf = (objects: Rendered[]) =>
  named(objects, 'AddOnTemplate', 'argocd').spec?.agentSpec?.workload.manifests ?? [];

describe('the chart of the basic pull model', () => {
  it('passes helm lint', async () => {
    expect(await helm(['lint', pullChart, '--strict'])).toContain('0 chart(s) failed');
  });

  it('has the names of the original', async () => {
    const objects = await render();
    const container = named(objects, 'Deployment', 'argocd-pull-integration').spec?.template?.spec?.containers[0];
    expect(container?.args).toEqual(
      expect.arrayContaining(['--mode=basic', '--health-probe-bind-address=:8081', '--leader-elect']),
    );
    for (const [kind, name] of [
      ['ServiceAccount', 'argocd-pull-integration'],
      ['ClusterRole', 'argocd-pull-integration'],
      ['ClusterRoleBinding', 'argocd-pull-integration-manager-rolebinding'],
      ['Placement', 'app-placement'],
      ['ManagedClusterSetBinding', 'global'],
      ['ConfigMap', 'ocm-placement-generator'],
      ['Role', 'ocm-placement-consumer'],
      ['RoleBinding', 'ocm-placement-consumer:argocd'],
    ] as const) {
      const { metadata } = named(objects, kind, name);
      if (!kind.startsWith('Cluster')) {
        expect(metadata.namespace, name).toBe('argocd');
      }
    }
    expect(named(objects, 'ClusterManagementAddOn', 'argocd')).toMatchObject({
      metadata: { annotations: { 'addon.open-cluster-management.io/lifecycle': 'addon-manager' } },
      spec: {
        supportedConfigs: [
          {
            group: 'addon.open-cluster-management.io',
            resource: 'addontemplates',
            defaultConfig: { name: 'argocd' },
          },
        ],
      },
    });
    const names = manifestsOf(objects).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(names).toEqual(
      expect.arrayContaining([
        'CustomResourceDefinition applications.argoproj.io',
        'StatefulSet argocd-application-controller',
        'Deployment argocd-repo-server',
        'Role argocd-work-role',
        'RoleBinding argocd-work-role-binding',
        'AppProject default',
      ]),
    );
  });

  it('has no empty specification: server-side apply makes null of one whose last field was taken away', async () => {
    const specOf = async (values: object) => named(await render({ ...values }), 'Placement', 'app-placement').spec;
    expect(await specOf({})).toEqual({ predicates: [] });
    expect(await specOf({ 'placement.spec': { numberOfClusters: 3 } })).toEqual({
      predicates: [],
      numberOfClusters: 3,
    });
    expect(await specOf({ 'placement.spec': { predicates: [{}] } })).toEqual({ predicates: [{}] });
  });

  it('8.3 L: has probes, room for memory, no fixed key, and any namespace', async () => {
    const objects = await render({ argoCDNamespace: 'gitops' });
    const deployment = named(objects, 'Deployment', 'argocd-pull-integration');
    expect(deployment.metadata.namespace).toBe('gitops');
    expect(deployment.spec?.template?.spec?.containers[0]).toMatchObject({
      readinessProbe: { httpGet: { path: '/readyz' } },
      livenessProbe: { httpGet: { path: '/healthz' } },
      resources: { limits: { memory: '512Mi' } },
    });
    const keyOf = (all: Rendered[]) =>
      manifestsOf(all).find(({ metadata }) => metadata.name === 'argocd-secret')?.data?.['server.secretkey'];
    expect(keyOf(objects)).toBeUndefined();
    const given = await render({ 'argocd.serverSecretKey': 'mine', 'argocd.defaultProject': null });
    expect(Buffer.from(keyOf(given) ?? '', 'base64').toString()).toBe('mine');
    expect(manifestsOf(given).some(({ kind }) => kind === 'AppProject')).toBe(false);
  });

  it('leaves keys and passwords to the clusters unless they are given', async () => {
    const secretsOf = (all: Rendered[]) =>
      Object.fromEntries(
        manifestsOf(all).flatMap(({ kind, metadata, data }) => (kind === 'Secret' ? [[metadata.name, data]] : [])),
      );
    const open = await render();
    // OCM would take away what the cluster writes into a Secret that is delivered.
    expect(secretsOf(open)).toEqual({});
    const redis = manifestsOf(open).find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'argocd-redis',
    )?.spec?.template?.spec;
    expect(redis?.initContainers).toMatchObject([{ command: ['argocd', 'admin', 'redis-initial-password'] }]);
    expect(redis?.containers[0]?.volumeMounts).toEqual([{ name: 'tmp', mountPath: '/data' }]);
    const controller = manifestsOf(open).find(({ kind }) => kind === 'StatefulSet')?.spec?.template?.spec;
    expect(controller?.initContainers?.map(({ name }) => name)).toContain('server-key');
    const given = await render({ 'argocd.serverSecretKey': 'key', 'argocd.redisPassword': 'word' });
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    expect(secretsOf(given)).toEqual({
      'argocd-secret': { 'server.secretkey': base64('key') },
      'argocd-redis': { auth: base64('word') },
    });
  });

  it('takes the values of the original, and says which is wrong', async () => {
    const objects = await render({
      image: 'registry.example/pull',
      tag: 'v1',
      replicas: 2,
      'argocd.image.repository': 'registry.example/argocd',
      'argocd.image.tag': 'v3.2.5',
    });
    const deployment = named(objects, 'Deployment', 'argocd-pull-integration').spec;
    expect(deployment?.template?.spec?.containers[0]?.image).toBe('registry.example/pull:v1');
    expect(named(objects, 'PodDisruptionBudget', 'argocd-pull-integration').spec).toMatchObject({ minAvailable: 1 });
    const controller = manifestsOf(objects).find(({ kind }) => kind === 'StatefulSet')?.spec?.template?.spec;
    expect(controller?.containers[0]?.image).toBe('registry.example/argocd:v3.2.5');
    expect(manifestsOf(objects).some((one) => /ARGOCD_IMAGE|REDIS_IMAGE|PULL_POLICY/.test(JSON.stringify(one)))).toBe(
      false,
    );
    await expect(render({ replicas: 0 })).rejects.toThrow("at '/replicas': minimum: got 0, want 1");
    await expect(render({ 'argocd.imgae': {} })).rejects.toThrow("additional properties 'imgae' not allowed");
  });

  it('gives no rights with a wildcard on the hub, and those on Secrets in Argo CD’s namespace only', async () => {
    for (const object of (await render()).filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')) {
      for (const rule of object.rules ?? []) {
        const all = [...(rule.apiGroups ?? []), ...(rule.resources ?? []), ...rule.verbs];
        expect(all, `${object.kind} ${object.metadata.name}`).not.toContain('*');
        if (object.kind === 'ClusterRole') {
          expect(rule.resources).not.toContain('secrets');
        }
      }
    }
  });
});
