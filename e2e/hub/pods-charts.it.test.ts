import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { addonChart, agentChart, helm, hubArgoCdChart, principalChart, pullChart, withoutHub } from './helm.ts';
import type { PodOf } from './pod-security.ts';
import { idRefusals, podsIn, rootPods } from './scc.ts';

type Values = Readonly<Record<string, unknown>>;

/** The charts with all programs that they can have. */
const charts: readonly (readonly [string, string, Values])[] = [
  ['argocd-agent-addon', addonChart, { 'hubArgoCD.install': 'true', 'hubArgoCD.applicationController.enabled': true }],
  ['argocd-hub', hubArgoCdChart, { 'applicationController.enabled': true }],
  ['argocd-agent-agent', agentChart, {}],
  ['argocd-agent-principal', principalChart, {}],
  ['argocd-pull-integration', pullChart, {}],
];
const openShift = ['--api-versions', 'security.openshift.io/v1'];

async function render(chart: string, values: Values = {}, flags: readonly string[] = []): Promise<KubeObject[]> {
  const sets = Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
  const all = [...withoutHub(chart), ...sets, ...flags];
  const text = await helm(['template', 'release', chart, '--namespace', 'argocd', ...all]);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object): object is KubeObject => object !== null);
}

const podsOf = async (...args: Parameters<typeof render>): Promise<PodOf[]> => podsIn('', await render(...args));
const named = (objects: readonly KubeObject[], kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name) as
    | (KubeObject & { spec?: { template?: { spec?: PodSpec }; [field: string]: unknown } })
    | undefined;

describe.each(charts)('the pods of the chart %s', (name, chart, all) => {
  it('name no ids but for Redis, whose image has no user, and none of them may be root', async () => {
    const pods = await podsOf(chart, all);
    expect(pods.length).toBeGreaterThan(0);
    expect(rootPods(pods)).toEqual([]);
    const hasRedis = pods.some(({ of }) => of.endsWith('argocd-redis'));
    expect(idRefusals(pods)).toEqual(hasRedis ? ['Deployment argocd-redis: runAsUser 999'] : []);
  });

  it('are admitted by OpenShift', async () => {
    // The clusters are others than the hub: what they get is for the values to say.
    const values = name === 'argocd-pull-integration' ? { ...all, 'argocd.redisRunAsUser': '' } : all;
    const pods = await podsOf(chart, values, openShift);
    expect(idRefusals(pods)).toEqual([]);
    expect(rootPods(pods)).toEqual([]);
  });

  it('have the pull Secrets of the release', async () => {
    const secrets = [{ name: 'registry' }];
    const delivered = name === 'argocd-pull-integration' ? { 'argocd.imagePullSecrets': secrets } : {};
    for (const { of, spec } of await podsOf(chart, { ...all, ...delivered, imagePullSecrets: secrets })) {
      expect(spec.imagePullSecrets, of).toEqual(secrets);
    }
  });

  it('have the security contexts of the values, false among them', async () => {
    const values = {
      'podSecurityContext.fsGroup': 7,
      'securityContext.readOnlyRootFilesystem': false,
    };
    const prefixes = { 'argocd-agent-addon': ['', 'hubArgoCD.'], 'argocd-pull-integration': ['', 'argocd.'] }[name];
    const everywhere = (prefixes ?? ['']).flatMap((prefix) =>
      Object.entries(values).map(([key, value]) => [`${prefix}${key}`, value]),
    );
    for (const { of, spec } of await podsOf(chart, { ...all, ...Object.fromEntries(everywhere) })) {
      expect(spec.securityContext, of).toMatchObject({ fsGroup: 7 });
      for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
        expect(container.securityContext, of).toMatchObject({ readOnlyRootFilesystem: false, runAsNonRoot: true });
      }
    }
  });
});

it('the hub’s Argo CD keeps pull Secrets of its own', async () => {
  const values = {
    'hubArgoCD.install': 'true',
    imagePullSecrets: [{ name: 'registry' }],
    'hubArgoCD.imagePullSecrets': [{ name: 'own' }],
  };
  const objects = await render(addonChart, values);
  const secretsOf = (deployment: string) =>
    named(objects, 'Deployment', deployment)?.spec?.template?.spec?.imagePullSecrets;
  expect(secretsOf('argocd-server')).toEqual([{ name: 'own' }]);
  expect(secretsOf('argocd-agent-principal')).toEqual([{ name: 'registry' }]);
});

it('Redis has the user id of the values', async () => {
  const userOf = async (values: Values, flags?: readonly string[]) => {
    const pods = await podsOf(hubArgoCdChart, values, flags);
    const redis = pods.find(({ of }) => of === 'Deployment argocd-redis');
    return (redis?.spec.securityContext as { runAsUser?: number } | undefined)?.runAsUser;
  };
  expect(await userOf({ 'redis.runAsUser': 1234 }, openShift)).toBe(1234);
  expect(await userOf({ 'redis.runAsUser': '' })).toBeUndefined();
  expect(await userOf({ 'podSecurityContext.runAsUser': 77 })).toBe(77);
});

/** Programs with variables of the user: chart, value, workload, container. */
const programs = [
  [addonChart, 'controller.env', 'argocd-agent-addon-controller'],
  [addonChart, 'principal.env', 'argocd-agent-principal'],
  [agentChart, 'env', 'release-agent-helm'],
  [principalChart, 'principal.env', 'release-argocd-agent-principal'],
  [pullChart, 'env', 'argocd-pull-integration'],
] as const;

describe.each(programs)('the variables of %s, %s', (chart, value, deployment) => {
  const envOf = async (values: Values) =>
    named(await render(chart, values), 'Deployment', deployment)?.spec?.template?.spec?.containers[0]?.env ?? [];

  it('of the user take the place of those of the chart with the same name, and follow the others in their own order', async () => {
    const before = await envOf({});
    expect(before.length).toBeGreaterThan(1);
    const own = { name: 'OWN', value: 'x' };
    for (const name of [before[0]?.name, before.at(-1)?.name]) {
      const mine = { name, value: 'mine' };
      // Two of the user with one name: the last one counts, as for a kubelet.
      const after = await envOf({ [value]: [own, { name, value: 'first' }, mine] });
      // A variable may use those that stand before it.
      expect(after).toEqual([...before.filter((one) => one.name !== name), own, mine]);
    }
  });
});

describe('the pods of hooks', () => {
  it.each([addonChart, agentChart, principalChart, pullChart])(
    'of %s have the resources of the values',
    async (chart) => {
      const limits = { cpu: '1', memory: '1Gi' };
      const hooks = (await render(chart, { 'hookResources.limits': limits })).filter(
        ({ kind, metadata }) => ['Job', 'Pod'].includes(kind ?? '') && metadata.annotations?.['helm.sh/hook'],
      );
      expect(hooks.length).toBe(chart === addonChart ? 3 : 1);
      for (const { of, spec } of podsIn('', hooks)) {
        for (const container of spec.containers) {
          expect(container.resources, of).toEqual({ limits, requests: { cpu: '10m', memory: '64Mi' } });
        }
      }
    },
  );
});

describe('the Placement of the release', () => {
  const missing = ['unreachable', 'unavailable'].map((one) => ({
    key: `cluster.open-cluster-management.io/${one}`,
    operator: 'Exists',
  }));
  const own = { key: 'example.com/maintenance', operator: 'Exists' };
  it.each([
    ['no list', undefined, missing],
    ['an empty list', [], missing],
    ['a toleration of the user', [own], [own, ...missing]],
    ['one of the two', [missing[1]], [missing[1], missing[0]]],
    ['both', [...missing, own], [...missing, own]],
    ['one that covers all', [{ operator: 'Exists' }], [{ operator: 'Exists' }]],
  ])('with %s has all that the controller would add', async (_, tolerations, all) => {
    const spec = { numberOfClusters: 3, ...(tolerations && { tolerations }) };
    const objects = await render(addonChart, { 'gitOpsCluster.placement.spec': spec });
    expect(named(objects, 'Placement', 'placement')?.spec).toEqual({ numberOfClusters: 3, tolerations: all });
  });
});

it('Argo CD applies after the controller, and removes before it, what needs the controller to come and go', async () => {
  const objects = await render(addonChart, { 'gitOpsCluster.annotations': { own: 'x' } });
  const later = objects.filter(({ metadata }) => metadata.annotations?.['argocd.argoproj.io/sync-wave'] === '1');
  expect(later.map(({ kind }) => kind).sort()).toEqual([
    'Deployment',
    'GitOpsCluster',
    'ManagedClusterSetBinding',
    'Placement',
  ]);
  // It is ready when the controller has made its certificates: Argo CD would wait for it for ever.
  expect(later.find(({ kind }) => kind === 'Deployment')?.metadata.name).toBe('argocd-agent-principal');
  expect(named(objects, 'GitOpsCluster', 'gitops-cluster')?.metadata.annotations).toMatchObject({ own: 'x' });
});

it.each([
  [addonChart, 'principalServiceType', 'principal.service'],
  [principalChart, 'service.type', 'service'],
] as const)('%s refuses what a load balancer has for a Service without one', async (chart, type, service) => {
  for (const [field, value] of Object.entries({
    loadBalancerClass: 'internal',
    loadBalancerSourceRanges: ['10.0.0.0/8'],
  })) {
    const values = { [`${service}.${field}`]: value };
    await expect(render(chart, { ...values, [type]: 'ClusterIP' })).rejects.toThrow(
      `are for a Service of type LoadBalancer, and ${type} is ClusterIP: leave them out`,
    );
    const services = (await render(chart, { ...values, [type]: 'LoadBalancer' })).filter(
      ({ kind }) => kind === 'Service',
    );
    expect(services.map(({ spec }: KubeObject & { spec?: object }) => spec)).toContainEqual(
      expect.objectContaining({ [field]: value }),
    );
  }
});

describe('values that people leave empty', () => {
  const isNull = ['gitOpsCluster.annotations', 'hubArgoCD.podSecurityContext'];
  it.each(isNull)('%s: the chart renders', async (value) => {
    expect(await render(addonChart, { [value]: null })).not.toEqual([]);
  });

  it('no user id of Redis', async () => {
    const redis = named(await render(addonChart, { 'hubArgoCD.redis.runAsUser': null }), 'Deployment', 'argocd-redis');
    expect(redis?.spec?.template?.spec?.securityContext).not.toHaveProperty('runAsUser');
  });

  it('the security contexts of the clusters of the basic model', async () => {
    const text = JSON.stringify(
      await render(pullChart, { 'argocd.podSecurityContext': null, 'argocd.securityContext': null }),
    );
    expect(text).toContain('runAsNonRoot');
    const without = JSON.stringify(await render(pullChart, { 'argocd.podSecurityContext': { runAsUser: null } }));
    expect(without).not.toContain('runAsUser');
  });

  it.each([addonChart, pullChart])('%s: the values of an older chart alone are refused', async (chart) => {
    await expect(render(chart, { hookResources: null })).rejects.toThrow(/--reset-then-reuse-values/);
  });
});
