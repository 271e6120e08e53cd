const namespaced = (name: string, namespace = 'argocd', labels: Readonly<Record<string, string>> = {}) => ({
  metadata: { name, namespace, labels },
});
const workload = (kind: string) => (name: string) => {
  const labels = { 'app.kubernetes.io/name': name };
  return {
    apiVersion: 'apps/v1',
    kind,
    ...namespaced(name),
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'registry.example.com/main' }] } },
    },
  };
};
const ocm = (group: string, version: string) => `${group}.open-cluster-management.io/${version}`;
const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

/** Objects that the pages suppose, as manifests. Namespace `argocd` unless said otherwise. */
export const objects = {
  namespace,
  argocd: namespace('argocd'),
  configMap: (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', ...namespaced(name), data: { key: 'value' } }),
  secret: (name: string, labels: Readonly<Record<string, string>> = {}) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    ...namespaced(name, 'argocd', labels),
  }),
  deployment: workload('Deployment'),
  statefulSet: workload('StatefulSet'),
  application: (name: string, of = 'argocd') => ({
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Application',
    ...namespaced(name, of),
    spec: {
      project: 'default',
      source: { repoURL: 'https://example.com/shop.git', path: '.' },
      destination: { server: 'https://kubernetes.default.svc', namespace: 'shop' },
    },
  }),
  event: (reason: string) => ({
    apiVersion: 'v1',
    kind: 'Event',
    ...namespaced('event'),
    involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name: 'any', namespace: 'argocd' },
    reason,
    type: 'Warning',
    message: 'It happened.',
  }),
  /** A managed cluster, and its namespace. */
  cluster1: [
    namespace('cluster1'),
    { apiVersion: ocm('cluster', 'v1'), kind: 'ManagedCluster', metadata: { name: 'cluster1' }, spec: {} },
  ],
  gitOpsCluster: (argoCDAgentAddon: object) => ({
    apiVersion: ocm('apps', 'v1alpha1'),
    kind: 'GitOpsCluster',
    ...namespaced('gitops-cluster'),
    spec: {
      placementRef: { apiVersion: ocm('cluster', 'v1beta1'), kind: 'Placement', name: 'placement' },
      argoCDAgentAddon,
    },
  }),
  addOn: {
    apiVersion: ocm('addon', 'v1alpha1'),
    kind: 'ManagedClusterAddOn',
    ...namespaced('argocd-agent-addon', 'cluster1'),
    spec: {},
  },
  manifestWork: {
    apiVersion: ocm('work', 'v1'),
    kind: 'ManifestWork',
    ...namespaced('work', 'cluster1'),
    spec: { workload: { manifests: [] } },
  },
};
