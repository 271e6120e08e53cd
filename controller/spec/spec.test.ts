import { expect, test } from 'vitest';
import type { GitOpsCluster } from '../hub/index.ts';
import { defaultRolloutStrategy } from './delivery-settings.ts';
import { parseGitOpsCluster } from './spec.ts';

const goc = (addOn: object | undefined, placementRef: object | undefined = { kind: 'Placement', name: 'p' }) =>
  ({
    metadata: { namespace: 'argocd', name: 'fleet' },
    spec: { ...(placementRef ? { placementRef } : {}), ...(addOn ? { argoCDAgentAddon: addOn } : {}) },
  }) as GitOpsCluster;

test('defaults are those of argocd-pull-integration', () => {
  expect(parseGitOpsCluster(goc({}))).toEqual({
    placement: { value: 'p' },
    server: { value: { address: '', port: '' } },
    addOn: {
      value: {
        mode: 'managed',
        agentNamespace: undefined,
        operatorNamespace: undefined,
        argoCD: 'Install',
        clientCertificate: undefined,
        liveAccess: 'Full',
        destinationBasedMapping: true,
        syncsAgentImage: true,
        rolloutStrategy: undefined,
        clusterLabels: undefined,
        clusterSettings: undefined,
        payload: undefined,
      },
    },
  });
  expect(parseGitOpsCluster(goc({ argoCDCRManifestWork: { manifests: [] } })).addOn.value?.argoCD).toBe('Operator');
  expect(parseGitOpsCluster(goc({ mode: '' })).addOn.value?.mode).toBe('managed');
  expect(parseGitOpsCluster(goc(undefined)).addOn.value?.mode).toBe('managed');
});

test.each([
  ['managed', undefined, 'Full'],
  ['autonomous', undefined, 'view'],
  ['autonomous', '', 'view'],
  ['autonomous', 'Full', 'Full'],
  ['autonomous', 'None', 'None'],
])('live access of %s clusters with %o is %s', (mode, liveAccess, role) => {
  expect(parseGitOpsCluster(goc({ mode, liveAccess })).addOn.value?.liveAccess).toBe(role);
});

test('an ArgoCD of the user, which names the Secret of the agent, gets a delivered key unless a setting says otherwise', () => {
  const argoCDCRManifestWork = { manifests: [] };
  const settingOf = (addOn: object) => parseGitOpsCluster(goc(addOn)).addOn.value?.clientCertificate;
  expect(settingOf({ argoCDCRManifestWork })).toBe('Generated');
  expect(settingOf({ argoCDCRManifestWork, clientCertificate: 'CSR' })).toBe('CSR');
  expect(settingOf({ argoCD: 'Operator' })).toBeUndefined();
});

test('clusters follow a new version a tenth at a time by default', () => {
  expect(defaultRolloutStrategy).toEqual({
    type: 'Progressive',
    maxConcurrency: { percent: 10 },
    maxFailures: { count: 0 },
    minSuccessMs: 0,
    progressDeadlineMs: 600_000,
    mandatoryDecisionGroups: [],
  });
});

test.each([
  [{ mode: 'fancy' }, 'addOn', 'spec.argoCDAgentAddon.mode must be managed or autonomous, not "fancy"'],
  [
    { principalServerPort: '70000' },
    'server',
    'spec.argoCDAgentAddon.principalServerPort must be a port from 1 to 65535, not "70000"',
  ],
  [{ principalServerPort: 443 }, 'server', 'spec.argoCDAgentAddon.principalServerPort must be a text, not 443'],
  [{ principalServerPort: 'https' }, 'server', 'must be a port from 1 to 65535, not "https"'],
  [
    { principalServerAddress: 'https://a.b' },
    'server',
    'must be a host name or an IP address without port, not "https://a.b"',
  ],
  [{ principalServerAddress: 'a.b:443' }, 'server', 'spec.argoCDAgentAddon.principalServerAddress must be'],
  [{ agentNamespace: 'Argo_CD' }, 'addOn', "spec.argoCDAgentAddon.agentNamespace must be a namespace's name"],
  ...['kube-system', 'kube-public', 'kube-node-lease', 'open-cluster-management-agent', 'openshift-monitoring'].map(
    (namespace) =>
      [
        { operatorNamespace: namespace },
        'addOn',
        `spec.argoCDAgentAddon.operatorNamespace is "${namespace}"; it must not be a namespace of Kubernetes, OCM or OpenShift`,
      ] as const,
  ),
  [{ agentNamespace: 'kube-system' }, 'addOn', 'spec.argoCDAgentAddon.agentNamespace is "kube-system"; it must not be'],
  [{ argoCD: 'Maybe' }, 'addOn', 'spec.argoCDAgentAddon.argoCD must be Install or Existing or Operator, not "Maybe"'],
  [{ clientCertificate: true }, 'addOn', 'spec.argoCDAgentAddon.clientCertificate must be Generated or CSR, not true'],
  [
    { destinationBasedMapping: 'no' },
    'addOn',
    'spec.argoCDAgentAddon.destinationBasedMapping must be true or false, not "no"',
  ],
  [
    { liveAccess: 'none' },
    'addOn',
    'spec.argoCDAgentAddon.liveAccess must be Full, None or the name of a ClusterRole, not "none"',
  ],
  [
    { clusterLabels: { labels: ['env', 'a/b/c'] } },
    'addOn',
    'spec.argoCDAgentAddon.clusterLabels.labels.1 must be a label key such as env, or the beginning of one and a * such as topology.kubernetes.io/*, not "a/b/c"',
  ],
  [
    { clusterLabels: { claims: ['argocd.argoproj.io/secret-type'] } },
    'addOn',
    'spec.argoCDAgentAddon.clusterLabels.claims.0 is "argocd.argoproj.io/secret-type"; labels of Argo CD,',
  ],
  [
    { clusterLabels: ['env'] },
    'addOn',
    'spec.argoCDAgentAddon.clusterLabels must have the lists labels and claims, not ["env"]',
  ],
  [{ clusterLabels: { labels: 'env' } }, 'addOn', 'clusterLabels.labels must be a list of label keys, not "env"'],
] as const)('%j is refused by name', (addOn, part, message) => {
  const parsed = parseGitOpsCluster(goc(addOn));
  expect(parsed[part].problem).toMatch(/^GitOpsCluster argocd\/fleet: /);
  expect(parsed[part].problem).toContain(message);
  expect(parsed.placement).toEqual({ value: 'p' });
});

test.each([
  [{ mode: 'x'.repeat(1_000_000) }, 'addOn', 'spec.argoCDAgentAddon.mode must be managed or autonomous, not "xxx'],
  [
    { rolloutStrategy: { all: { mandatoryDecisionGroups: Array(300_000).fill({}) } } },
    'addOn',
    'spec.argoCDAgentAddon.rolloutStrategy.all.mandatoryDecisionGroups must have at most 1000 entries, not 300000',
  ],
  [
    { rolloutStrategy: { all: { maxConcurrency: { toString: 1 } } } },
    'addOn',
    'spec.argoCDAgentAddon.rolloutStrategy.all.maxConcurrency must be a number or a percentage like 10%, not {"toString":1}',
  ],
  [
    { rolloutStrategy: { all: { minSuccessTime: `${'9'.repeat(400)}h` } } },
    'addOn',
    'spec.argoCDAgentAddon.rolloutStrategy.all.minSuccessTime must be a time like 90m, not "999',
  ],
  [
    { clusterLabels: { labels: Array(300_000).fill('a') } },
    'addOn',
    'spec.argoCDAgentAddon.clusterLabels.labels must have at most 64 entries, not 300000',
  ],
  [{ clusterLabels: { labels: ['a'.repeat(1_000_000)] } }, 'addOn', 'clusterLabels.labels.0 must be a label key'],
] as const)('a huge or odd value is named, and the message fits into a condition', (addOn, part, message) => {
  const problem = parseGitOpsCluster(goc(addOn))[part].problem ?? '';
  expect(problem).toContain(message);
  expect(problem.length).toBeLessThan(4_096);
});

test.each([
  [{ kind: 'ManagedCluster', name: 'p' }, 'spec.placementRef.kind must be "Placement", not "ManagedCluster"'],
  [{ kind: 'Placement', name: '' }, 'spec.placementRef.name must name a Placement'],
  [{ name: 'p' }, 'spec.placementRef.kind must be "Placement", not nothing'],
  ['p', 'spec.placementRef must name a Placement'],
])('the reference %j is refused by name', (reference, message) => {
  expect(parseGitOpsCluster(goc({}, reference as object)).placement.problem).toBe(
    `GitOpsCluster argocd/fleet: ${message}`,
  );
});

test('namespaces that only look like those of the system are accepted', () => {
  for (const agentNamespace of [
    'default',
    'kube-systems',
    'my-kube-system',
    'openshift-gitops',
    'openshift-gitops-operator',
  ]) {
    expect(parseGitOpsCluster(goc({ agentNamespace })).addOn.value?.agentNamespace).toBe(agentNamespace);
  }
});

test('host names and IP addresses of every form are accepted', () => {
  for (const principalServerAddress of ['a.example.com', '10.0.0.1', '2001:db8::1', 'localhost', 'A-b.c.']) {
    expect(parseGitOpsCluster(goc({ principalServerAddress })).server.value?.address).toBe(principalServerAddress);
  }
  const bracketed = goc({ principalServerAddress: '[2001:db8::1]' });
  expect(parseGitOpsCluster(bracketed).server.value?.address).toBe('2001:db8::1');
});

const argoCd = { apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', metadata: { name: 'argocd', namespace: 'argocd' } };
const path = 'GitOpsCluster argocd/fleet: spec.argoCDAgentAddon.argoCDCRManifestWork';

test.each([
  [{}, `${path}.manifests must be a list of manifests, not nothing`],
  ['text', `${path} must have a list of manifests`],
  [{ manifests: [] }, `${path}.manifests must hold an ArgoCD`],
  [{ manifests: [null] }, `${path}.manifests.0 must be an object with apiVersion, kind and metadata, not null`],
  [{ manifests: [argoCd, { kind: 'X', metadata: {} }] }, `${path}.manifests.1.apiVersion must be a text, not nothing`],
  [
    { manifests: [{ ...argoCd, apiVersion: 'argoproj.io/v1alpha1' }] },
    `${path}.manifests must hold an ArgoCD of argoproj.io/v1beta1, not only ArgoCD argocd of argoproj.io/v1alpha1`,
  ],
  [
    { manifests: [{ ...argoCd, metadata: { name: 'argocd' } }] },
    `${path}.manifests.0.metadata.namespace must say where the ArgoCD belongs`,
  ],
])('a payload that cannot work is named, and the rest stays usable: %j', (argoCDCRManifestWork, message) => {
  const { addOn } = parseGitOpsCluster(goc({ argoCDCRManifestWork }));
  expect(addOn.value?.argoCD).toBe('Operator');
  expect(addOn.value?.payload?.problem).toContain(message);
});

test('a payload of very many manifests is refused', () => {
  const problemOf = (manifests: unknown) =>
    parseGitOpsCluster(goc({ argoCDCRManifestWork: { manifests } })).addOn.value?.payload?.problem;
  expect(problemOf(Array(5_000).fill(null))).toBe(`${path}.manifests must have at most 4096 entries, not 5000`);
  expect(problemOf(Array(101).fill(argoCd))).toBe(`${path}.manifests must hold at most 100 ArgoCDs`);
});

test('a payload that is nested deeper than programs can read is refused', () => {
  const deep = JSON.parse(`${'['.repeat(9_000)}${']'.repeat(9_000)}`);
  const problemOf = (manifest: object) =>
    parseGitOpsCluster(goc({ argoCDCRManifestWork: { manifests: [manifest] } })).addOn.value?.payload?.problem;
  expect(problemOf({ ...argoCd, spec: deep })).toContain(`${path}.manifests.0 is nested more than 100 deep`);
  const text = `${path}.manifests.0.kind must be a text, not a value that is nested too deep`;
  expect(problemOf({ ...argoCd, kind: deep })).toContain(text);
});

test('a payload requires argocd-operator', () => {
  const given = { manifests: [{ ...argoCd, spec: { any: 'thing' } }] };
  expect(parseGitOpsCluster(goc({ argoCDCRManifestWork: given })).addOn.value?.payload?.value).toEqual(given.manifests);
  const both = parseGitOpsCluster(goc({ argoCDCRManifestWork: given, argoCD: 'Install' }));
  expect(both.addOn.value?.payload?.problem).toBe(`${path} is for argoCD: Operator, not Install; remove one of them`);
});

test('an annotation leaves the image of the agent to argocd-operator', () => {
  const annotated = goc({});
  annotated.metadata.annotations = { 'apps.open-cluster-management.io/disable-agent-image-sync': 'true' };
  expect(parseGitOpsCluster(annotated).addOn.value?.syncsAgentImage).toBe(false);
});
