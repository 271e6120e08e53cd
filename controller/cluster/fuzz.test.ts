import { expect, test } from 'vitest';
import { spoilt } from '../../e2e/hostile/index.ts';
import { Random } from '../../e2e/random/index.ts';
import { maxGrownBytes, maxTurnMs, StepMeter } from '../../e2e/random/meters.ts';
import { effort } from '../../lib/base/testing.ts';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import {
  type AddOnDeploymentConfig,
  addOnName,
  deliverableCrd,
  type GitOpsCluster,
  isSystemNamespace,
  type ManagedCluster,
  type ManagedClusterAddOn,
  operatorKinds,
} from '../hub/index.ts';
import { type RenderedWork, Renderings } from '../render/index.ts';
import { parseGitOpsCluster, releaseOf } from '../spec/index.ts';
import { hubCrd } from '../testing/render-input.ts';
import { type ConfigScope, configOf } from './cluster-config.ts';
import { configured } from './config-status.ts';
import { renderCluster } from './render-cluster.ts';

// Users of the hub write GitOpsClusters, AddOnDeploymentConfigs and annotations of every form: right ones, spoilt ones, and
// huge ones. SEED=<number> repeats a run.

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const count = effort(300, 10_000);
/** Bytes of the manifests of a work: OCM's admission refuses more. */
const workLimit = 500 * 1024;
/** Characters of a condition's message: the CRDs refuse more. */
const messageLimit = 32 * 1024;

const clusters = ['c1', 'c2'];
/** The first line is valid names that YAML may take for something else. */
const namespaces = [
  ...['123', '1e3', '0x1f', 'true', 'null', 'yes'],
  ...['argocd', 'team', '', 'kube-system', 'Not_Valid', '{{q x}}', 'a"\n---\nkind: Secret', '__proto__'],
];
const words = [
  ...namespaces,
  ...[
    'managed',
    'autonomous',
    'Install',
    'Existing',
    'Operator',
    'CSR',
    'Generated',
    'Full',
    'None',
    'All',
    '10%',
    '5m',
  ],
  ...['spec', 'metadata', 'name', 'namespace', 'kind', 'toString', 'constructor', 'manifests', 'argoCDAgent', 'agent'],
  ...['443', '0', '-1', 'principal.example.com', '::1', '*', 'deployments:*:*', 'http://proxy:3128', '100m', 'Exists'],
];

function gitOpsClusterOf(random: Random): GitOpsCluster {
  const argoCd = (index: number) => ({
    apiVersion: 'argoproj.io/v1beta1',
    kind: 'ArgoCD',
    metadata: { name: `argocd-${index}`, namespace: 'team' },
    spec: random.pick([{}, { argoCDAgent: { agent: { client: { principalServerPort: '1' } } } }, { extraConfig: {} }]),
  });
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'mine', namespace: 'team' },
    data: { a: 'b' },
  };
  const rollout = {
    maxConcurrency: random.pick([1, '10%']),
    maxFailures: 0,
    minSuccessTime: '5m',
    progressDeadline: 'None',
    mandatoryDecisionGroups: [{ groupName: 'first', groupIndex: 0 }],
  };
  const argoCD = random.pick(['Install', 'Existing', 'Operator', '']) || undefined;
  return {
    metadata: { namespace: 'argocd', name: 'fleet', uid: 'u', annotations: {} },
    spec: {
      placementRef: { kind: 'Placement', name: 'all' },
      argoCDAgentAddon: {
        mode: random.pick(['managed', 'autonomous', '']),
        agentNamespace: random.pick(['argocd', 'team', '', '123', 'true', '1e3']),
        operatorNamespace: random.pick(['operators', '', 'null', '0x1f']),
        principalServerAddress: random.pick(['principal.example.com', '10.0.0.1', '[2001:db8::1]', '']),
        principalServerPort: random.pick(['443', '']),
        clientCertificate: random.pick(['Generated', 'CSR']),
        liveAccess: random.pick(['Full', 'None', 'view']),
        destinationBasedMapping: random.chance(0.5),
        rolloutStrategy: { type: random.pick(['All', 'Progressive']), all: rollout, progressive: rollout },
        clusterLabels: { labels: ['env', 'topology.kubernetes.io/*'], claims: [random.pick(['*', 'id.k8s.io'])] },
        ...(argoCD === undefined ? {} : { argoCD }),
        ...(random.chance(0.3) && (argoCD === undefined || argoCD === 'Operator')
          ? { argoCDCRManifestWork: { manifests: [argoCd(0), configMap, argoCd(1)] } }
          : {}),
      },
    },
  };
}

function configObjectOf(cluster: string, random: Random): AddOnDeploymentConfig {
  return {
    metadata: { namespace: 'settings', name: cluster },
    spec: {
      agentInstallNamespace: random.pick(['open-cluster-management-agent-addon', 'team', '']),
      customizedVariables: [
        { name: 'ARGOCD_NAMESPACE', value: random.pick(['argocd', 'team', '']) },
        { name: 'ARGOCD_OPERATOR_NAMESPACE', value: '' },
        { name: 'ARGOCD_OPERATOR_INSTALL', value: random.pick(['true', 'false', '']) },
        { name: 'of-another-add-on', value: 'x' },
      ],
      nodePlacement: {
        nodeSelector: { zone: `zone-of-${cluster}` },
        tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }],
      },
      registries: [{ source: 'quay.io/argoproj', mirror: `mirror-of-${cluster}/argoproj` }],
      proxyConfig: {
        httpProxy: `http://proxy-of-${cluster}:3128`,
        httpsProxy: '',
        noProxy: '10.0.0.0/8, .example.com',
        caBundle: Buffer.from('-----BEGIN CERTIFICATE-----\n').toString('base64'),
      },
      resourceRequirements: [
        {
          containerID: random.pick(['deployments:argocd-*:*', '*:*:*', 'statefulsets:x:y']),
          resources: { requests: { cpu: '100m' }, limits: { memory: '256Mi' } },
        },
      ],
    },
  };
}

/** What an API server stores of a large object: 1.5 MiB. */
const giants: readonly unknown[] = [
  'x'.repeat(1_500_000),
  Array.from({ length: 300_000 }, () => ({})),
  Array.from({ length: 4_000 }, () => null),
  Array.from({ length: 100_000 }, () => 'text'),
  Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`key-${index}`, 'value'])),
  JSON.parse(`${'['.repeat(9_000)}${']'.repeat(9_000)}`),
  JSON.parse(`${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`),
  `${'*'.repeat(1_000)}!`,
  `${'a-'.repeat(500_000)}!`,
  `${'1'.repeat(1_000)}h`,
];

/** A value as JSON; undefined when it contains itself. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** The object as an API server could have it, spoilt in up to four places. */
function hostile<T extends KubeObject & { spec?: unknown }>(object: T, random: Random): T {
  let spec: unknown = object.spec;
  for (let times = random.chance(0.5) ? 0 : random.integer(1, 4); times > 0; times--) {
    spec = spoilt(spec, words, random);
  }
  const copy = JSON.parse(jsonOf({ ...object, spec }) ?? jsonOf({ metadata: object.metadata }) ?? '') as T;
  if (random.chance(0.05)) {
    insert(copy.spec, random.pick(giants), random);
  }
  return copy;
}

/** Puts a value in a random place. */
function insert(into: unknown, value: unknown, random: Random): void {
  let place = into;
  while (typeof place === 'object' && place !== null) {
    const inner = random.pick([...Object.keys(place), 'spec']);
    const next = (place as Record<string, unknown>)[inner];
    if (typeof next !== 'object' || next === null || random.chance(0.4)) {
      (place as Record<string, unknown>)[inner] = value;
      return;
    }
    place = next;
  }
}

/** Many ArgoCDs in one payload. */
function manyArgoCds(random: Random): object {
  const one = (index: number) => ({
    apiVersion: 'argoproj.io/v1beta1',
    kind: 'ArgoCD',
    metadata: { name: `a${index}`, namespace: 'team' },
    spec: { argoCDAgent: { agent: {} } },
  });
  return { manifests: Array.from({ length: random.pick([1, 100, 101, 4_096, 5_000]) }, (_, index) => one(index)) };
}

interface Hub {
  readonly gitOpsCluster: GitOpsCluster;
  readonly config: AddOnDeploymentConfig;
  readonly managed: ManagedCluster;
  readonly addOn: ManagedClusterAddOn;
}

function hubOf(cluster: string, random: Random): Hub {
  const gitOpsCluster = hostile(gitOpsClusterOf(random), random);
  if (random.chance(0.02)) {
    const spec = gitOpsCluster.spec as { argoCDAgentAddon?: unknown } | undefined;
    if (typeof spec === 'object' && spec !== null) {
      spec.argoCDAgentAddon = { argoCDCRManifestWork: manyArgoCds(random) };
    }
  }
  const reference = { group: 'addon.open-cluster-management.io', resource: 'addondeploymentconfigs' };
  const registries = { registries: [{ source: '', mirror: `annotated-by-${cluster}` }] };
  const annotation = jsonOf(random.chance(0.7) ? registries : spoilt(registries, words, random)) ?? '[1';
  return {
    gitOpsCluster,
    config: hostile(configObjectOf(cluster, random), random),
    managed: {
      metadata: {
        name: cluster,
        annotations: random.chance(0.3) ? { 'open-cluster-management.io/image-registries': annotation } : {},
      },
    } as ManagedCluster,
    addOn: {
      metadata: { namespace: cluster, name: addOnName },
      spec: { configs: [{ ...reference, namespace: 'settings', name: random.chance(0.97) ? cluster : 'missing' }] },
    } as ManagedClusterAddOn,
  };
}

const templates = new Templates();
const renderings = new Renderings();
const crdOf = new Map<string, CustomResourceDefinition>(
  operatorKinds.map((name) => [name, deliverableCrd(hubCrd(name))]),
);
const delivery = { agentImage: 'agent:1', pullPolicy: 'IfNotPresent', argoCdImage: undefined, redisImage: undefined };

interface Outcome {
  readonly problems: readonly string[];
  readonly works: readonly RenderedWork[];
  /** Whether the manifests are all of this project, none of the user. */
  readonly isOwn: boolean;
}

/** Reads the objects and renders the works of the cluster, as its reconcile does. */
function outcomeOf(cluster: string, { gitOpsCluster, config, managed, addOn }: Hub): Outcome {
  const scope = {
    cluster,
    caches: {
      addOns: { get: () => addOn },
      addOnRegistrations: { list: () => [] },
      configs: { get: ({ name }: { name: string }) => (name === cluster ? config : undefined) },
      managedClusters: { get: () => managed },
    },
  } as unknown as ConfigScope;
  const spec = parseGitOpsCluster(gitOpsCluster);
  const problems = [
    spec.placement.problem,
    spec.server.problem,
    spec.addOn.problem,
    spec.addOn.value?.payload?.problem,
  ];
  const done = (works: readonly RenderedWork[]) => {
    const condition = configured(scope, works.map(({ spec: content }) => ({ spec: content })) as never);
    const known = problems.filter((problem) => problem !== undefined);
    return {
      problems: condition.status === 'False' ? [...known, condition.message] : known,
      works,
      isOwn: spec.addOn.value?.payload === undefined,
    };
  };
  if (spec.addOn.value === undefined || spec.server.value === undefined) {
    return done([]);
  }
  const { address, port } = spec.server.value;
  const caches = { crd: (name: string) => crdOf.get(name), hubImage: () => undefined, principalImage: () => undefined };
  const foundation = {
    key: 'argocd/fleet',
    addOn: spec.addOn.value,
    endpoint: { address: address || 'discovered.example.com', port: port || '443' },
    authorities: 'PEM of the authorities',
  };
  const secretOf = (what: string) => `${what}-of-${cluster}`;
  const delivered = {
    clientCertificate:
      foundation.addOn.clientCertificate === 'CSR'
        ? undefined
        : { certificate: secretOf('certificate'), key: secretOf('key') },
    authority: undefined,
    redisPassword: secretOf('password'),
    serverSecretKey: secretOf('server-key'),
  };
  try {
    const settings = configOf(scope);
    const release = releaseOf({ caches, delivery } as never, 'argocd', foundation.addOn);
    const input = [foundation, settings, release.version, delivered];
    return done(
      renderings.of(cluster, input, () =>
        renderCluster({ cluster, templates, foundation, delivery, config: settings, release }, delivered),
      ),
    );
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) {
      throw error;
    }
    problems.push(error.message);
    return done([]);
  }
}

const fields = [
  /^GitOpsCluster argocd\/fleet: spec\.(placementRef|argoCDAgentAddon)\S* ./,
  /^AddOnDeploymentConfig settings\/\S+: spec(\.\S+)? ./,
  /^AddOnDeploymentConfig settings\/missing, named by ManagedClusterAddOn c\d\/argocd-agent-addon, does not exist$/,
  /^ManagedCluster c\d: annotation open-cluster-management\.io\/image-registries(: | )\S/,
  /^Invalid ArgoCDCRManifestWork: GitOpsCluster argocd\/fleet: spec\.argoCDAgentAddon\.argoCDCRManifestWork\S* ./,
  // A manifest that OCM would refuse.
  /^\S+ \S+ has \d+ bytes; a ManifestWork takes at most 512000 /,
];

/** What every manifest of this project is, whatever the users wrote. */
const ownKinds = new Set([
  ...['Namespace', 'ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding', 'ConfigMap', 'Secret'],
  ...['Deployment', 'StatefulSet', 'Service', 'NetworkPolicy', 'CustomResourceDefinition', 'AppProject', 'ArgoCD'],
]);

/** A manifest as text, with the values of Secrets. */
function textOf(manifest: KubeObject): string {
  const { data = {} } = manifest as { data?: Record<string, string> };
  const values = manifest.kind === 'Secret' ? Object.values(data) : [];
  return [JSON.stringify(manifest), ...values.map((value) => Buffer.from(value, 'base64').toString())].join('\n');
}

test(
  `${count} GitOpsClusters and AddOnDeploymentConfigs: works of this cluster alone, or an error that names object and field (SEED=${seed})`,
  async () => {
    console.log(`SEED=${seed}`);
    // Templates are compiled with the first cluster of each kind.
    for (let at = 0; at < 40; at++) {
      outcomeOf('c1', hubOf('c1', new Random(at)));
    }
    const meter = new StepMeter();
    let [rendered, refused, secrets] = [0, 0, 0];
    for (let at = 0; at < count; at++) {
      const what = `SEED=${seed}, object ${at}`;
      const random = new Random(seed + at);
      const cluster = random.pick(clusters);
      const other = cluster === 'c1' ? 'c2' : 'c1';
      const hub = hubOf(cluster, random);
      const { value, ms } = await meter.measure(() => outcomeOf(cluster, hub));
      expect(ms, what).toBeLessThan(maxTurnMs);
      const { problems, works, isOwn } = value;
      for (const problem of problems) {
        expect(
          fields.some((form) => form.test(problem)),
          `${what}: ${problem}`,
        ).toBe(true);
        expect(problem.length, what).toBeLessThan(messageLimit);
      }
      refused += problems.length > 0 ? 1 : 0;
      rendered += works.length > 0 ? 1 : 0;
      expect(works.length > 0 || problems.length > 0, what).toBe(true);
      for (const { spec } of works) {
        const { manifests } = spec.workload;
        expect(
          manifests.reduce((bytes, one) => bytes + Buffer.byteLength(JSON.stringify(one)), 0),
          what,
        ).toBeLessThan(workLimit + 1);
        const text = manifests.map(textOf).join('\n');
        secrets += text.includes(`password-of-${cluster}`) ? 1 : 0;
        expect(text.includes(`-of-${other}`) || text.includes(`annotated-by-${other}`), what).toBe(false);
        for (const { apiVersion, kind, metadata } of manifests) {
          expect(apiVersion && kind && metadata.name, what).toBeTruthy();
          expect([typeof metadata.name, typeof (metadata.namespace ?? '')], what).toEqual(['string', 'string']);
          if (isOwn) {
            expect(ownKinds, what).toContain(kind);
            expect(isSystemNamespace(metadata.namespace ?? ''), what).toBe(false);
          }
        }
      }
    }
    console.log(`${rendered} rendered, ${refused} refused; ${meter}`);
    expect(meter.grownBytes).toBeLessThan(maxGrownBytes);
    expect(Math.min(rendered, refused)).toBeGreaterThan(count / 5);
    // The texts that are looked for are there.
    expect(secrets).toBeGreaterThan(0);
  },
  effort(150_000, 3_600_000),
);
