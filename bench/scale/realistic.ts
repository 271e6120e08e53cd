import type { ArgoObject } from '../../e2e/pair/index.ts';

const resources = 8;
const past = 3;

/**
 * An Application as a fleet has them: a Helm chart with a few parameters, synced some time ago, eight resources, three
 * syncs in its history. About 4 kB of JSON without what the API server adds.
 */
export function realisticApplication(namespace: string, name: string): ArgoObject {
  const revision = '3f2a9d0c1b7e4f5a8d6c9b0e1f2a3b4c5d6e7f80';
  const source = {
    repoURL: 'https://git.example.com/platform/deployments.git',
    path: `charts/${name}`,
    targetRevision: 'release-2026.11',
    helm: {
      releaseName: name,
      valueFiles: ['values.yaml', `values-${namespace}.yaml`],
      parameters: [
        { name: 'image.tag', value: '2026.11.3' },
        { name: 'replicaCount', value: '3' },
      ],
    },
  };
  const kinds = ['Service', 'ConfigMap', 'ServiceAccount', 'Deployment', 'Secret', 'Role', 'RoleBinding', 'Ingress'];
  const listed = kinds.slice(0, resources).map((kind) => ({
    kind,
    version: 'v1',
    ...(kind === 'Deployment' ? { group: 'apps' } : {}),
    namespace: 'workload',
    name: `${name}-${kind.toLowerCase()}`,
    status: 'Synced',
    health: { status: 'Healthy' },
  }));
  const results = listed.map(({ kind, version, namespace: where, name: what, group = '' }) => ({
    group,
    version,
    kind,
    namespace: where,
    name: what,
    status: 'Synced',
    message: `${kind.toLowerCase()}/${what} configured`,
    hookPhase: 'Running',
    syncPhase: 'Sync',
  }));
  const history = Array.from({ length: past }, (_, id) => ({
    id,
    revision,
    deployedAt: `2026-11-0${id + 1}T08:00:00Z`,
    deployStartedAt: `2026-11-0${id + 1}T07:59:48Z`,
    initiatedBy: { automated: true },
    source,
  }));
  const destination = { name: namespace, namespace: 'workload' };
  return {
    metadata: {
      namespace,
      name,
      labels: { 'app.kubernetes.io/part-of': 'platform', team: 'payments' },
      annotations: { 'argocd.argoproj.io/manifest-generate-paths': '.' },
      finalizers: ['resources-finalizer.argocd.argoproj.io'],
    },
    spec: {
      project: 'default',
      source,
      destination,
      syncPolicy: { automated: { prune: true, selfHeal: true }, syncOptions: ['CreateNamespace=true'] },
    },
    status: {
      sync: { status: 'Synced', revision, comparedTo: { source, destination } },
      health: { status: 'Healthy', lastTransitionTime: '2026-11-03T08:00:10Z' },
      reconciledAt: '2026-11-21T09:00:00Z',
      resources: listed,
      history,
      operationState: {
        operation: { sync: { revision, prune: true }, initiatedBy: { automated: true }, retry: { limit: 5 } },
        phase: 'Succeeded',
        message: 'successfully synced (all tasks run)',
        startedAt: '2026-11-03T07:59:48Z',
        finishedAt: '2026-11-03T08:00:00Z',
        syncResult: { revision, source, resources: results },
      },
      sourceType: 'Helm',
      summary: { images: [`registry.example.com/platform/${name}:2026.11.3`] },
      controllerNamespace: 'argocd',
    },
  };
}
