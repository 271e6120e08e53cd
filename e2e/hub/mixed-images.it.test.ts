import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { addonChart, agentChart, helm, principalChart, pullChart, withoutHub } from './helm.ts';

// The charts with images and values of argocd-agent and argocd-pull-integration.

interface Rendered extends KubeObject {
  spec?: { template?: { spec?: PodSpec }; selector?: { matchLabels?: object }; [field: string]: unknown };
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[] }[];
}

async function render(chart: string, ...args: string[]): Promise<Rendered[]> {
  const text = await helm(['template', 'edge', chart, ...withoutHub(chart), ...args]);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object): object is Rendered => object !== null);
}

const set = (values: Record<string, unknown>) =>
  Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);

const verbsOf = (objects: Rendered[], resource: string) =>
  objects
    .flatMap(({ rules = [] }) => rules.filter(({ resources }) => resources.includes(resource)))
    .map(({ verbs }) => verbs);

const containerOf = (objects: Rendered[], name: string) =>
  objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name)?.spec?.template?.spec
    ?.containers[0];

const original = { 'image.repository': 'registry.example/argocd-agent', 'image.tag': 'v0.9.0' };

describe("the agent's chart", () => {
  it("gives argocd-agent's image the rights that it needs and a probe that it answers", async () => {
    const objects = await render(agentChart, ...set(original));
    const all = ['get', 'list', 'watch', 'create', 'patch', 'update', 'delete'];
    expect([verbsOf(objects, 'secrets'), verbsOf(objects, 'configmaps')]).toEqual([[all], [all]]);
    expect(verbsOf(objects, 'namespaces')).toEqual([['get', 'list', 'watch', 'create']]);
    expect(containerOf(objects, 'edge-agent-helm')).toMatchObject({ livenessProbe: { httpGet: { path: '/healthz' } } });
    // Its image has no program for it.
    expect(objects.some(({ kind }) => kind === 'Pod')).toBe(false);
  });

  it('gives our image no more than it needs', async () => {
    const objects = await render(agentChart);
    expect(verbsOf(objects, 'secrets')).toEqual([['get', 'list', 'watch', 'create', 'patch', 'delete']]);
    expect(verbsOf(objects, 'configmaps')).toEqual([['get', 'list', 'watch', 'create', 'patch']]);
    expect(verbsOf(objects, 'namespaces')).toEqual([]);
    expect(containerOf(objects, 'edge-agent-helm')).toMatchObject({ livenessProbe: { httpGet: { path: '/livez' } } });
  });

  it("asks for the tag of argocd-agent's image: the chart's version is another program's", async () => {
    await expect(render(agentChart, ...set({ 'image.repository': original['image.repository'] }))).rejects.toThrow(
      'set image.tag to the version of argocd-agent',
    );
  });

  it("takes the values of argocd-agent's chart", async () => {
    const endpoint = {
      interval: '15s',
      scrapeTimeout: '5s',
      relabelings: [{ action: 'labeldrop', regex: 'pod' }],
      metricRelabelings: [{ action: 'drop', regex: 'x' }],
      honorLabels: true,
      scheme: 'http',
      tlsConfig: { insecureSkipVerify: true },
    };
    const objects = await render(
      agentChart,
      ...set({
        nameOverride: 'edge',
        'redisTLS.enabled': 'true',
        'updateStrategy.rollingUpdate': { maxSurge: '25%' },
        'probes.liveness.httpGet': { path: '/healthz', port: 'healthz' },
        serviceMonitor: {
          enabled: true,
          additionalLabels: { release: 'prometheus' },
          annotations: { note: 'x' },
          namespace: 'monitoring',
          ...endpoint,
        },
      }),
    );
    const deployment = objects.find(({ kind }) => kind === 'Deployment');
    expect(deployment?.metadata.name).toBe('edge-agent-helm');
    expect(deployment?.spec).toMatchObject({
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%' } },
      selector: { matchLabels: { 'app.kubernetes.io/name': 'edge' } },
    });
    expect(containerOf(objects, 'edge-agent-helm')).toMatchObject({ livenessProbe: { httpGet: { path: '/healthz' } } });
    const monitor = objects.find(({ kind }) => kind === 'ServiceMonitor');
    expect(monitor).toMatchObject({
      metadata: { namespace: 'monitoring', labels: { release: 'prometheus' }, annotations: { note: 'x' } },
      spec: {
        namespaceSelector: { matchNames: ['default'] },
        endpoints: [
          {
            port: 'metrics',
            path: '/metrics',
            ...endpoint,
          },
        ],
      },
    });
  });
});

it("the principal's chart takes the network policy of argocd-agent's chart, which names a namespace", async () => {
  const metrics = { enabled: true, namespaceSelector: 'monitoring' };
  const extraRules = [{ from: [{ ipBlock: { cidr: '192.0.2.0/24' } }] }];
  const ingress = { grpc: { enabled: true }, redisProxy: { enabled: false }, metrics, extraRules };
  const objects = await render(principalChart, ...set({ 'networkPolicy.ingress': ingress }));
  const policy = objects.find(({ kind }) => kind === 'NetworkPolicy');
  expect(policy?.spec?.ingress).toEqual([
    { ports: [{ port: 'principal' }] },
    { from: [{ podSelector: {} }], ports: [{ port: 9090 }] },
    {
      from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
      ports: [{ port: 'metrics' }, { port: 'healthz' }],
    },
    // The test of our own chart.
    {
      from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': 'argocd-agent-principal-test' } } }],
      ports: [{ port: 'healthz' }],
    },
    ...extraRules,
  ]);
});

describe("the hub's chart", () => {
  const goAgent = 'quay.io/argoprojlabs/argocd-agent:v0.9.0';

  it("runs argocd-agent's image as principal with its rights, and cleans clusters up with our own", async () => {
    const objects = await render(addonChart, ...set({ 'argoCDAgent.image': goAgent }));
    const rules = objects
      .filter(({ metadata, rules }) => rules && metadata.name === 'argocd-agent-principal')
      .flatMap((one) => one.rules ?? []);
    const may = (resource: string) => rules.find(({ resources }) => resources.includes(resource))?.verbs.toSorted();
    const all = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
    expect([may('secrets'), may('configmaps'), may('applications')]).toEqual([all, all, all]);
    expect(may('namespaces')).toEqual(['create', 'get', 'list', 'watch']);
    expect(containerOf(objects, 'argocd-agent-principal')?.image).toBe(goAgent);
    const env = containerOf(objects, 'argocd-agent-addon-controller')?.env ?? [];
    const imageOf = (name: string) => env.find((one) => one.name === name)?.value;
    expect(imageOf('CONTROLLER_IMAGE')).toBe(goAgent);
    expect(imageOf('CLEANUP_IMAGE')).toMatch(/\/argocd-fleet:/);
  });

  it('makes the Service of the principal a NodePort when its type is empty, as argocd-pull-integration does', async () => {
    const objects = await render(addonChart, ...set({ principalServiceType: '' }));
    const service = objects.find(
      ({ kind, metadata }) => kind === 'Service' && metadata.name === 'argocd-agent-principal',
    );
    expect(service?.spec?.type).toBe('NodePort');
  });
});

it.each([addonChart, pullChart])("%s says that it cannot run argocd-pull-integration's image", async (chart) => {
  const image = 'quay.io/open-cluster-management/argocd-pull-integration';
  await expect(render(chart, ...set({ image, tag: 'latest' }))).rejects.toThrow('leave out image and tag');
});

it("the basic chart's Deployment has argocd-pull-integration's selector, which cannot be changed", async () => {
  const deployment = (await render(pullChart)).find(({ kind }) => kind === 'Deployment');
  expect(deployment?.spec?.selector?.matchLabels).toEqual({ app: 'argocd-pull-integration' });
});

// Source trees of the originals, where they are at hand.
const { ARGOCD_AGENT_SOURCE: agentSource, PULL_INTEGRATION_SOURCE: pullSource } = process.env;
const ours = set({ image: 'registry.example/argocd-fleet', tag: 'v1' });

it.each([agentChart, principalChart])(
  "%s takes argocd-agent's values file",
  { tags: 'argocd-agent-source' },
  async (chart) => {
    const values = join(agentSource ?? '', 'install/helm-repo', chart.split('/').at(-1) ?? '', 'values.yaml');
    const objects = await render(chart, '--values', values, ...set({ 'image.tag': 'v0.9.0' }));
    expect(objects.some(({ kind }) => kind === 'Deployment')).toBe(true);
  },
);

it.each([addonChart, pullChart])(
  "%s takes argocd-pull-integration's values file",
  { tags: 'pull-integration-source' },
  async (chart) => {
    const values = join(pullSource ?? '', 'charts', chart.split('/').at(-1) ?? '', 'values.yaml');
    expect(existsSync(values)).toBe(true);
    const objects = await render(chart, '--values', values, ...ours);
    expect(objects.some(({ kind }) => kind === 'Deployment')).toBe(true);
  },
);
