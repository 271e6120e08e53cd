import type { KubeObject } from '../../lib/kube/index.ts';

/** The Git repository of the example, and the namespace that it is deployed into. */
export const guestbookRepository = 'guestbook';

/** The label of the ManagedClusters that the example enrolls. */
export const selectedClusters = { 'fleet.example.com/demo': 'true' };

// Services listen on the ports of this machine's loopback addresses; those below 1024 are root's.
const reachablePort = process.getuid?.() === 0 ? {} : { principal: { service: { port: 8443 } } };

/** The values with which the example installs the add-on: the Placement takes the labelled clusters. */
export const guestbookValues = {
  ...reachablePort,
  gitOpsCluster: {
    placement: {
      spec: { predicates: [{ requiredClusterSelector: { labelSelector: { matchLabels: selectedClusters } } }] },
    },
  },
};

/** The example's files: a ConfigMap with a greeting, and a Deployment that any cluster can run. */
export function guestbookFiles(greeting: string): Record<string, string> {
  return {
    'app/greeting.yaml': `apiVersion: v1
kind: ConfigMap
metadata: { name: greeting }
data: { text: ${greeting} }
`,
    'app/deployment.yaml': `apiVersion: apps/v1
kind: Deployment
metadata: { name: guestbook }
spec:
  replicas: 1
  selector: { matchLabels: { app: guestbook } }
  template:
    metadata: { labels: { app: guestbook } }
    spec:
      containers:
        - name: guestbook
          image: registry.k8s.io/pause:3.10
`,
  };
}

/** An ApplicationSet that makes one Application `guestbook-<cluster>` per decision of the Placement. */
export function guestbookSet(repoURL: string): KubeObject & { spec: object } {
  return {
    metadata: { name: 'guestbook', namespace: 'argocd' },
    spec: {
      generators: [
        {
          clusterDecisionResource: {
            configMapRef: 'ocm-placement-generator',
            labelSelector: {
              matchLabels: { 'cluster.open-cluster-management.io/placement': 'placement' },
            },
            requeueAfterSeconds: 3,
          },
        },
      ],
      template: {
        metadata: { name: 'guestbook-{{name}}' },
        spec: {
          project: 'default',
          source: { repoURL, path: 'app', targetRevision: 'main' },
          destination: { name: '{{name}}', namespace: guestbookRepository },
          syncPolicy: { automated: { prune: true, selfHeal: true }, syncOptions: ['CreateNamespace=true'] },
        },
      },
    },
  };
}
