import { createContext, Script } from 'node:vm';
import { expect, describe as suite, test } from 'vitest';
import { maxTurnMs, StepMeter } from '../../e2e/random/meters.ts';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import type { AddOnDeploymentConfig, ResourceRequirements } from '../hub/index.ts';
import { input, operator } from '../testing/render-input.ts';
import { type AddOnConfig, noConfig, parseAddOnConfig } from './addon-config.ts';
import { decorate, mirrored, unmatchedContainers } from './decorate.ts';
import { allManifests, type RenderInput, renderWorks } from './works.ts';

const templates = new Templates();
type Workload = KubeObject & { spec: { template: { spec: PodSpec } } };
const adc = (spec: object): AddOnDeploymentConfig => ({ metadata: { namespace: 'c1', name: 'config' }, spec });
const read = (spec: object, annotations: Record<string, string> = {}) => {
  const parsed = parseAddOnConfig(adc(spec), { metadata: { name: 'c1', annotations } });
  if (parsed.problem !== undefined) {
    throw new Error(parsed.problem);
  }
  return parsed.value;
};
const objectsOf = (config: AddOnConfig, from: RenderInput = input) =>
  allManifests(renderWorks(templates, { ...from, config }));
const workloadsOf = (config: AddOnConfig, from?: RenderInput) =>
  objectsOf(config, from).filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet') as Workload[];
const envOf = (pod: PodSpec | undefined) =>
  Object.fromEntries((pod?.containers[0]?.env ?? []).map(({ name, value }) => [name, value]));

suite('an AddOnDeploymentConfig', () => {
  test('applies placement, mirrors, proxies and resources', () => {
    const config = read({
      nodePlacement: { nodeSelector: { role: 'infra' }, tolerations: [{ key: 'infra', operator: 'Exists' }] },
      registries: [{ source: 'quay.io/argoproj', mirror: 'mirror.local/argo' }],
      resourceRequirements: [
        { containerID: '*:*:*', resources: { requests: { cpu: '1m' } } },
        { containerID: 'deployments:argocd-agent-agent:*', resources: { limits: { memory: '1Gi' } } },
      ],
    });
    for (const { metadata, spec } of workloadsOf(config)) {
      const pod = spec.template.spec;
      expect(pod.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux', role: 'infra' });
      expect(pod.tolerations).toEqual([{ key: 'infra', operator: 'Exists' }]);
      const [container] = pod.containers;
      const desired =
        metadata.name === 'argocd-agent-agent' ? { limits: { memory: '1Gi' } } : { requests: { cpu: '1m' } };
      expect(container?.resources).toEqual(desired);
      if (container?.image?.includes('argocd:')) {
        expect(container.image).toBe('mirror.local/argo/argocd:v3.2.6');
      }
    }
    expect(decorate(objectsOf(noConfig), noConfig)).toEqual(objectsOf(noConfig));
  });

  test("reaches argocd-operator's pod too", () => {
    const config = read({ nodePlacement: { nodeSelector: { role: 'infra' } }, registries: [{ mirror: 'all.local' }] });
    const [deployment] = workloadsOf(config, { ...input, argoCD: undefined, operator });
    const pod = deployment?.spec.template.spec;
    expect(pod?.nodeSelector).toMatchObject({ role: 'infra' });
    expect(pod?.containers[0]?.image).toBe('all.local/argocd-operator:v0.18.0');
  });

  test('sends traffic that leaves the cluster through the proxy, and nothing else', () => {
    const config = read({ proxyConfig: { httpsProxy: 'http://proxy:3128', noProxy: '10.0.0.0/8, .corp' } });
    for (const { spec } of workloadsOf(config)) {
      const env = envOf(spec.template.spec);
      expect(env.HTTPS_PROXY).toBe('http://proxy:3128');
      expect(env.https_proxy).toBe('http://proxy:3128');
      expect(env).not.toHaveProperty('HTTP_PROXY');
      expect(env.NO_PROXY).toBe(
        '10.0.0.0/8,.corp,localhost,127.0.0.1,.svc,.cluster.local,$(KUBERNETES_SERVICE_HOST),argocd-redis,argocd-repo-server',
      );
      expect(env.no_proxy).toBe(env.NO_PROXY);
    }
    expect(envOf(workloadsOf(read({ proxyConfig: { noProxy: '.corp' } }))[0]?.spec.template.spec)).not.toHaveProperty(
      'NO_PROXY',
    );
  });

  test("delivers the proxy's certificates to every pod", () => {
    const pem = '-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n';
    const config = read({ proxyConfig: { httpsProxy: 'https://p:1', caBundle: Buffer.from(pem).toString('base64') } });
    for (const { spec } of workloadsOf(config)) {
      const pod = spec.template.spec;
      expect(pod.volumes).toContainEqual({
        name: 'proxy-ca-bundle',
        configMap: { name: 'argocd-agent-addon-proxy-ca' },
      });
      expect(pod.containers[0]?.volumeMounts).toContainEqual({
        name: 'proxy-ca-bundle',
        mountPath: '/managed/proxy-ca',
        readOnly: true,
      });
      expect(envOf(pod)).toMatchObject({ CA_BUNDLE_FILE_PATH: '/managed/proxy-ca/ca-bundle.crt' });
    }
    for (const { part, spec } of renderWorks(templates, { ...input, config })) {
      const maps = spec.workload.manifests.filter(({ metadata }) => metadata.name === 'argocd-agent-addon-proxy-ca');
      const desired = { kind: 'ConfigMap', metadata: { namespace: 'argocd' }, data: { 'ca-bundle.crt': pem } };
      expect(maps).toMatchObject(part === 'crds' ? [] : [desired]);
    }
  });

  test('of several matching registries the last one counts', () => {
    const registries = [
      { source: '', mirror: 'all.local' },
      { source: 'quay.io/', mirror: 'q.local/' },
      { source: 'quay.io/a', mirror: 'a.local/x' },
    ];
    expect(mirrored('quay.io/a/b:1', registries)).toBe('a.local/x/b:1');
    expect(mirrored('quay.io/a/b:1', registries.toReversed())).toBe('all.local/b:1');
    expect(mirrored('quay.io/ab/c:1', registries)).toBe('q.local/ab/c:1');
    expect(mirrored('quay.io/a@sha256:0', registries)).toBe('a.local/x@sha256:0');
    expect(mirrored('docker.io/library/redis:8', registries)).toBe('all.local/redis:8');
    expect(mirrored('quay.io/a/b:1', [])).toBe('quay.io/a/b:1');
  });

  test('registries of the configuration replace those of the ManagedCluster', () => {
    const annotations = {
      'open-cluster-management.io/image-registries': JSON.stringify({
        registries: [{ source: 'quay.io', mirror: 'cluster.local' }],
      }),
    };
    expect(read({}, annotations).registries).toEqual([{ source: 'quay.io', mirror: 'cluster.local' }]);
    expect(read({ registries: [{ mirror: 'own.local' }] }, annotations).registries).toEqual([
      { source: '', mirror: 'own.local' },
    ]);
  });

  test("reads argocd-pull-integration's variables, and ignores others", () => {
    const variables = (values: Record<string, string>) =>
      read({ customizedVariables: Object.entries(values).map(([name, value]) => ({ name, value })) });
    expect(variables({ ARGOCD_NAMESPACE: 'gitops', ARGOCD_OPERATOR_NAMESPACE: 'ops', OTHER: 'x' })).toMatchObject({
      agentNamespace: 'gitops',
      operatorNamespace: 'ops',
      installsOperator: true,
    });
    expect(variables({ ARGOCD_NAMESPACE: '' })).toMatchObject({ agentNamespace: undefined });
    expect(variables({ ARGOCD_OPERATOR_INSTALL: 'false' }).installsOperator).toBe(false);
    expect(variables({}).metricsNamespaces).toBeUndefined();
    expect(variables({ METRICS_NAMESPACES: 'observability, prometheus' }).metricsNamespaces).toEqual([
      'observability',
      'prometheus',
    ]);
  });

  test('the install namespace counts unless it is the default of the CRD', () => {
    expect(read({ agentInstallNamespace: 'open-cluster-management-agent-addon' }).agentNamespace).toBeUndefined();
    expect(read({ agentInstallNamespace: '' }).agentNamespace).toBeUndefined();
    expect(read({ agentInstallNamespace: 'gitops' }).agentNamespace).toBe('gitops');
    const both = {
      agentInstallNamespace: 'gitops',
      customizedVariables: [{ name: 'ARGOCD_NAMESPACE', value: 'own' }],
    };
    expect(read(both).agentNamespace).toBe('own');
  });

  test('containers are selected by kind, workload and container, with globs; the last match counts', () => {
    const requirement = (containerID: string, cpu: string) => ({ containerID, resources: { requests: { cpu } } });
    const config = read({
      resourceRequirements: [
        requirement('statefulsets:*:*', '1'),
        requirement('*:argocd-r*:*', '2'),
        requirement('deployments:argocd-redis:redis', '3'),
        requirement('deployments:redis:*', '4'),
        requirement('daemonsets:*:*', '5'),
      ],
    });
    const cpu = Object.fromEntries(
      workloadsOf(config).map(({ metadata, spec }) => [
        metadata.name,
        (spec.template.spec.containers[0]?.resources as ResourceRequirements | undefined)?.requests?.cpu,
      ]),
    );
    expect(cpu).toMatchObject({
      'argocd-application-controller': '1',
      'argocd-repo-server': '2',
      'argocd-redis': '3',
      'argocd-agent-agent': '50m',
    });
    expect(unmatchedContainers(objectsOf(config), config)).toEqual(['deployments:redis:*', 'daemonsets:*:*']);
  });

  test('nobody stops the controller with a glob for containers', () => {
    const name = 'a'.repeat(253);
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'argocd' },
      spec: { template: { spec: { containers: [{ name: 'a', image: 'b' }] } } },
    };
    const requirements = [`${'*'.repeat(40)}b`, `${'*a'.repeat(120)}*b`, `${'a*'.repeat(120)}b`];
    const resourceRequirements = requirements.map((names) => ({
      containerID: `deployments:${names}:*`,
      resources: {},
    }));
    const config = read({ resourceRequirements });
    let unmatched: string[] = [];
    const work = () => {
      decorate([deployment], config);
      unmatched = unmatchedContainers([deployment], config);
    };
    // A search that backtracks takes years. The script ends it, so that the test fails.
    new Script('work()').runInContext(createContext({ work }), { timeout: 60_000 });
    expect(unmatched).toEqual(resourceRequirements.map(({ containerID }) => containerID));
  });
});

test.each([
  [{ agentInstallNamespace: 'Not a name' }, "spec.agentInstallNamespace must be a namespace's name"],
  [
    { customizedVariables: [{ name: 'ARGOCD_NAMESPACE', value: 'Bad!' }] },
    'spec.customizedVariables[ARGOCD_NAMESPACE] must be a namespace\'s name, not "Bad!"',
  ],
  [
    { customizedVariables: [{ name: 'METRICS_NAMESPACES', value: 'good,Bad!' }] },
    'spec.customizedVariables[METRICS_NAMESPACES] must be names of namespaces, not "Bad!"',
  ],
  [
    { customizedVariables: [{ name: 'ARGOCD_OPERATOR_INSTALL', value: 'no' }] },
    'spec.customizedVariables[ARGOCD_OPERATOR_INSTALL] must be true or false, not "no"',
  ],
  [
    { agentInstallNamespace: 'kube-system' },
    'spec.agentInstallNamespace is "kube-system"; it must not be a namespace of Kubernetes, OCM or',
  ],
  [
    { agentInstallNamespace: 'kube-system', customizedVariables: [{ name: 'ARGOCD_NAMESPACE', value: 'kube-public' }] },
    'spec.customizedVariables[ARGOCD_NAMESPACE] is "kube-public"; it must not be a namespace of Kubernetes, OCM or',
  ],
  [
    { customizedVariables: [{ name: 'ARGOCD_OPERATOR_NAMESPACE', value: 'kube-public' }] },
    'spec.customizedVariables[ARGOCD_OPERATOR_NAMESPACE] is "kube-public"; it must not be a namespace of Kubernetes',
  ],
  [{ registries: [{ source: 'quay.io' }] }, 'spec.registries.0.mirror'],
  [{ proxyConfig: { httpProxy: 'no proxy' } }, 'spec.proxyConfig.httpProxy must be an address like'],
  [{ proxyConfig: { caBundle: 'eA==' } }, 'spec.proxyConfig.caBundle must be certificates in PEM, encoded in base64'],
  [
    { nodePlacement: { tolerations: [{ effect: 'Never' }] } },
    'spec.nodePlacement.tolerations.0.effect must be NoSchedule, PreferNoSchedule or NoExecute',
  ],
  [
    { resourceRequirements: [{ containerID: 'deployment:a:b', resources: {} }] },
    'spec.resourceRequirements.0.containerID must be kind:workload:container such as deployments:argocd-repo-server:*, not "deployment:a:b"',
  ],
  [
    { resourceRequirements: [{ containerID: `deployments:${'*'.repeat(12)}!:*`, resources: {} }] },
    'spec.resourceRequirements.0.containerID must be kind:workload:container such as',
  ],
  [
    { resourceRequirements: [{ containerID: `deployments:${'a'.repeat(400)}:*`, resources: {} }] },
    'spec.resourceRequirements.0.containerID must have at most 330 characters',
  ],
  [
    { resourceRequirements: Array.from({ length: 101 }, () => ({ containerID: '*:*:*', resources: {} })) },
    'spec.resourceRequirements must have at most 100 entries',
  ],
  [
    { resourceRequirements: [{ containerID: '*:*:*', resources: { limits: { memory: '1 GB' } } }] },
    'spec.resourceRequirements.0.resources.limits.memory must be a quantity like 100m or 256Mi, not "1 GB"',
  ],
])('a value that makes no sense is named: %j', (spec, message) => {
  const { problem } = parseAddOnConfig(adc(spec));
  expect(problem).toContain('AddOnDeploymentConfig c1/config: ');
  expect(problem).toContain(message);
});

test.each([
  [{ registries: Array(300_000).fill({}) }, 'spec.registries must have at most 1000 entries, not 300000'],
  [{ customizedVariables: Array(300_000).fill({}) }, 'spec.customizedVariables must have at most 1000 entries, not'],
  [
    { nodePlacement: { tolerations: Array(300_000).fill({ effect: 'x' }) } },
    'spec.nodePlacement.tolerations must have at most 1000 entries, not 300000',
  ],
  [
    { nodePlacement: { nodeSelector: Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`k${at}`, 'v'])) } },
    'spec.nodePlacement.nodeSelector must have at most 1000 entries, not 2000',
  ],
  [{ registries: Array(100).fill({}) }, '; and 95 more'],
  [{ agentInstallNamespace: 'X'.repeat(1_000_000) }, "spec.agentInstallNamespace must be a namespace's name"],
  [{ proxyConfig: { httpProxy: '\u0000'.repeat(100_000) } }, 'spec.proxyConfig.httpProxy must be an address like'],
  [
    { customizedVariables: [{ name: 'ARGOCD_NAMESPACE', value: 'X'.repeat(1_000_000) }] },
    'spec.customizedVariables[ARGOCD_NAMESPACE] must be a namespace',
  ],
])('a huge value is named, and the message fits into a condition', async (spec, message) => {
  const { value, ms } = await new StepMeter().measure(() => parseAddOnConfig(adc(spec)));
  const { problem = '' } = value;
  expect(problem).toContain(message);
  expect(problem.length).toBeLessThan(4_096);
  expect(ms).toBeLessThan(maxTurnMs);
});

test('of tolerations and resources the fields that Kubernetes knows are taken, whatever else they hold', () => {
  const deep = JSON.parse(`${'['.repeat(9_000)}${']'.repeat(9_000)}`);
  const toleration = { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 };
  const resources = { limits: { cpu: '1' }, claims: [{ name: 'gpu' }] };
  const { value } = parseAddOnConfig(
    adc({
      nodePlacement: { tolerations: [{ ...toleration, unknown: deep }] },
      resourceRequirements: [{ containerID: '*:*:*', resources: { ...resources, unknown: deep } }],
    }),
  );
  expect(value?.tolerations).toEqual([toleration]);
  expect(value?.containers).toEqual([{ containerID: '*:*:*', resources }]);
});

test('a ManagedCluster’s registries that cannot be parsed are reported', () => {
  const cluster = (text: string) => ({
    metadata: { name: 'c1', annotations: { 'open-cluster-management.io/image-registries': text } },
  });
  expect(parseAddOnConfig(undefined, cluster('{')).problem).toMatch(
    /^ManagedCluster c1: annotation open-cluster-management.io\/image-registries is no JSON/,
  );
  expect(parseAddOnConfig(undefined, cluster('{"registries":[{}]}')).problem).toContain('registries.0.mirror');
});

test('a workload of a user without a pod has no containers, and stops nothing', () => {
  const objects = [{}, { spec: {} }, { spec: { template: {} } }].map((rest) => ({
    kind: 'Deployment',
    metadata: { name: 'own' },
    ...rest,
  }));
  const config = { ...noConfig, containers: [{ containerID: 'deployments:own:*', resources: {} }] };
  expect(unmatchedContainers(objects, config)).toEqual(['deployments:own:*']);
});
