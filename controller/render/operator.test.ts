import { expect, test } from 'vitest';
import type { KubeObject } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import { input, operator } from '../testing/render-input.ts';
import type { OperatorInput } from './operator.ts';
import { describe } from './pack.ts';
import { allManifests, type RenderInput, renderWorks } from './works.ts';

const templates = new Templates();
const worksWith = (change: Partial<OperatorInput> = {}, from: Partial<RenderInput> = {}) =>
  renderWorks(templates, { ...input, argoCD: undefined, operator: { ...operator, ...change }, ...from });
const specOf = (objects: readonly KubeObject[], name: string) =>
  (objects.find(({ kind, metadata }) => kind === 'ArgoCD' && metadata.name === name) as unknown as { spec: unknown })
    ?.spec;
const argoCd = (spec: object, metadata: object = {}) => ({
  apiVersion: 'argoproj.io/v1beta1',
  kind: 'ArgoCD',
  metadata: { name: 'own', namespace: 'gitops', ...metadata },
  spec,
});

test("argocd-agent's own image, which reads its certificate at its start, is restarted with a new one", () => {
  const own = 'quay.io/argoprojlabs/argocd-agent:v0.9.0';
  const envOf = (agentImage: string | undefined, certificate?: string) => {
    const clientCertificate = certificate === undefined ? undefined : { certificate, key: 'key' };
    const spec = specOf(allManifests(worksWith({ agentImage }, { clientCertificate })), 'argocd');
    return (spec as { argoCDAgent: { agent: { env?: { value: string }[] } } }).argoCDAgent.agent.env;
  };
  expect(envOf(own, 'a')).toEqual([
    { name: 'CLIENT_CERTIFICATE_CHECKSUM', value: expect.stringMatching(/^[0-9a-f]{64}$/) },
  ]);
  expect(envOf(own, 'a')).toEqual(envOf(undefined, 'a'));
  expect(envOf(own, 'a')).not.toEqual(envOf(own, 'b'));
  expect(envOf('example.com/argocd-fleet:1', 'a')).toBeUndefined();
  expect(envOf(own)).toBeUndefined();
});

test('the generated ArgoCD equals that of argocd-pull-integration', () => {
  expect(specOf(allManifests(worksWith()), 'argocd')).toEqual({
    server: { enabled: false },
    sourceNamespaces: ['*'],
    argoCDAgent: {
      agent: {
        enabled: true,
        allowedNamespaces: ['*'],
        creds: 'mtls:open-cluster-management:cluster:([^:]+):addon:argocd-agent',
        logLevel: 'info',
        logFormat: 'text',
        client: {
          principalServerAddress: 'principal.example.com',
          principalServerPort: '443',
          mode: 'managed',
          enableWebSocket: false,
          enableCompression: false,
          keepAliveInterval: '50s',
        },
        tls: {
          secretName: 'argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert',
          rootCASecretName: 'argocd-agent-ca',
          insecure: false,
        },
        redis: { serverAddress: 'argocd-redis:6379' },
        image: 'quay.io/open-cluster-management/argocd-fleet:1',
        destinationBasedMapping: { enabled: true, createNamespace: true },
      },
    },
  });
  const autonomous = specOf(
    allManifests(worksWith({ agentImage: undefined }, { mode: 'autonomous', namespace: 'gitops' })),
    'argocd',
  ) as { argoCDAgent: { agent: object } };
  expect(autonomous.argoCDAgent.agent).not.toHaveProperty('image');
  expect(autonomous.argoCDAgent.agent).not.toHaveProperty('destinationBasedMapping');
  expect(autonomous.argoCDAgent.agent).toMatchObject({ client: { mode: 'autonomous' } });
});

test('ocm defect H8: works are the operator, then ArgoCD and credentials; namespaces and CRDs stay when they are deleted', () => {
  const works = worksWith();
  expect(works.map(({ part }) => part)).toEqual(['crds', 'argocd', 'agent']);
  const [crds, runtime, agent] = works;
  expect(crds?.spec.deleteOption).toEqual({ propagationPolicy: 'Orphan' });
  expect(runtime?.spec.workload.manifests.map(describe)).toEqual([
    'Namespace argocd-operator-system',
    'ServiceAccount argocd-operator-system/argocd-operator-controller-manager',
    'Role argocd-operator-system/argocd-operator-leader-election-role',
    'RoleBinding argocd-operator-system/argocd-operator-leader-election-rolebinding',
    'ClusterRole argocd-operator-manager-role',
    'ClusterRoleBinding argocd-operator-manager-rolebinding',
    'ClusterRole argocd-operator-proxy-role',
    'ClusterRoleBinding argocd-operator-proxy-rolebinding',
    'ClusterRole argocd-operator-metrics-reader',
    'ClusterRole argocd-operator-namespacemanagement-editor-role',
    'ClusterRole argocd-operator-namespacemanagement-viewer-role',
    'ConfigMap argocd-operator-system/argocd-operator-manager-config',
    'Service argocd-operator-system/argocd-operator-controller-manager-metrics-service',
    'Service argocd-operator-system/argocd-operator-webhook-service',
    'Deployment argocd-operator-system/argocd-operator-controller-manager',
    // Removed after the ArgoCD: without this role the work agent could not observe its deletion.
    'ClusterRole open-cluster-management:argocd-agent:work-agent-argocd',
  ]);
  expect(agent?.spec.workload.manifests.map(describe)).toEqual([
    'Namespace argocd',
    'Secret argocd/argocd-agent-ca',
    'Secret argocd/argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert',
    'ClusterRole argocd-agent-live-access',
    'ClusterRoleBinding argocd-agent-agent:argocd-agent-live-access',
    'ArgoCD argocd/argocd',
  ]);
  expect(agent?.spec.manifestConfigs).toContainEqual(
    expect.objectContaining({
      resourceIdentifier: { group: 'argoproj.io', resource: 'argocds', namespace: 'argocd', name: 'argocd' },
      feedbackRules: [{ type: 'JSONPaths', jsonPaths: [{ name: 'Phase', path: '.status.phase' }] }],
    }),
  );
});

test('an existing operator of the cluster is not changed', () => {
  const works = worksWith({ image: undefined, crds: [] });
  expect(works.map(({ part }) => part)).toEqual(['argocd', 'agent']);
  expect(works[0]?.spec.workload.manifests.map(describe)).toEqual([
    'ClusterRole open-cluster-management:argocd-agent:work-agent-argocd',
  ]);
});

test("a user's ArgoCD without the principal's address gets it", () => {
  const spec = (given: object) => specOf(allManifests(worksWith({ payload: [argoCd(given)] })), 'own');
  const client = { principalServerAddress: 'principal.example.com', principalServerPort: '443' };
  expect(spec({ argoCDAgent: { agent: { enabled: true } } })).toEqual({
    argoCDAgent: { agent: { enabled: true, client } },
  });
  expect(
    spec({ argoCDAgent: { agent: { client: { principalServerAddress: 'own', principalServerPort: '' } }, x: 1 } }),
  ).toEqual({
    argoCDAgent: { agent: { client: { principalServerAddress: 'own', principalServerPort: '443' } }, x: 1 },
  });
  expect(spec({ repo: {}, extraConfig: { a: 'b', 'agent.principal.server.port': '8443' } })).toEqual({
    repo: {},
    extraConfig: {
      a: 'b',
      'agent.principal.server.address': 'principal.example.com',
      'agent.principal.server.port': '8443',
    },
  });
});

test('the agents that argocd-operator makes have the configured rights for live access', () => {
  const accounts = (payload?: KubeObject[], from: Partial<RenderInput> = {}) =>
    allManifests(worksWith({ payload }, from))
      .filter(({ kind, metadata }) => kind === 'ClusterRoleBinding' && metadata.name.startsWith('argocd-agent-agent:'))
      .flatMap((binding) => (binding as unknown as { subjects: object[] }).subjects);
  expect(accounts()).toEqual([{ kind: 'ServiceAccount', name: 'argocd-agent-agent', namespace: 'argocd' }]);
  expect(accounts([argoCd({ argoCDAgent: { agent: {} } }), argoCd({}, { name: 'other' })])).toEqual([
    { kind: 'ServiceAccount', name: 'own-agent-agent', namespace: 'gitops' },
  ]);
  expect(accounts([argoCd({})])).toEqual([]);
  expect(accounts(undefined, { liveAccess: 'None' })).toEqual([]);
});

test("a user's other objects are delivered unchanged, in their namespaces", () => {
  const other = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x', namespace: 'elsewhere' },
    data: { a: 'b' },
  };
  const old = {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'ArgoCD',
    metadata: { name: 'old', namespace: 'x' },
    spec: {},
  };
  const works = worksWith({ payload: [other, old, argoCd({ argoCDAgent: { agent: {} } })] });
  const objects = allManifests(works);
  expect(objects).toContainEqual(other);
  expect(objects).toContainEqual(old);
  expect(objects.filter(({ kind }) => kind === 'ArgoCD').map(describe)).toEqual(['ArgoCD x/old', 'ArgoCD gitops/own']);
  const watched = works.at(-1)?.spec.manifestConfigs?.filter(({ feedbackRules }) => feedbackRules);
  expect(watched?.map(({ resourceIdentifier }) => resourceIdentifier.namespace)).toEqual(['gitops']);
});
