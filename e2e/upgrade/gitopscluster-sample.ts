import type { KubeObject } from '../../lib/kube/index.ts';

const addon = 'argoCDAgentAddon';
const since = '2026-01-01T00:00:00Z';
const placementRef = {
  apiVersion: 'cluster.open-cluster-management.io/v1beta1',
  fieldPath: 'spec',
  kind: 'Placement',
  name: 'placement',
  namespace: 'argocd',
  resourceVersion: '7',
  uid: '1d6e',
};
const mandatoryDecisionGroups = [{ groupName: 'canary', groupIndex: 1 }];
const pace = { maxFailures: '10%', minSuccessTime: '5m', progressDeadline: '10m', mandatoryDecisionGroups };

/** GitOpsClusters that together have every field of their CRD; a test compares them with it. */
export const gitOpsClusterSamples: readonly (KubeObject & { spec: object; status: object })[] = [
  {
    metadata: { namespace: 'argocd', name: 'installed' },
    spec: {
      placementRef,
      [addon]: {
        mode: 'autonomous',
        principalServerAddress: 'principal.example.com',
        principalServerPort: '8443',
        agentNamespace: 'argocd',
        operatorNamespace: 'operators',
        argoCD: 'Install',
        rolloutStrategy: {
          type: 'ProgressivePerGroup',
          all: { minSuccessTime: '0', progressDeadline: 'None' },
          progressive: { ...pace, maxConcurrency: 3 },
          progressivePerGroup: pace,
        },
        clusterLabels: { labels: ['env', 'topology.kubernetes.io/*'], claims: ['platform.open-cluster-management.io'] },
        clusterSettings: {
          config: { 'timeout.reconciliation': '60s' },
          params: { 'controller.status.processors': '50' },
          tlsCertificates: { 'git.example.com': '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n' },
          sshKnownHosts: 'git.example.com ssh-ed25519 AAAA\n',
          plugins: {
            cue: {
              image: 'example.com/cue:v1',
              spec: { generate: { command: ['cue'] } },
              env: [{ name: 'A', value: 'b' }],
            },
          },
          replicas: { applicationController: 2, repoServer: 3 },
          agentParams: { 'agent.log.level': 'debug' },
        },
        clientCertificate: 'Generated',
        destinationBasedMapping: false,
        liveAccess: 'view',
      },
    },
    status: {
      observedGeneration: 3,
      clusters: {
        selected: 5,
        enrolled: 4,
        available: 3,
        connected: 2,
        failing: 1,
        failingClusters: [{ name: 'cluster1', step: 'works', reason: 'Failed', message: 'it does not work', since }],
      },
      conditions: [
        {
          type: 'Ready',
          status: 'False',
          reason: 'Failed',
          message: 'no',
          observedGeneration: 3,
          lastTransitionTime: since,
        },
      ],
    },
  },
  {
    metadata: { namespace: 'argocd', name: 'operated' },
    spec: {
      placementRef,
      [addon]: {
        mode: 'managed',
        argoCD: 'Operator',
        argoCDCRManifestWork: {
          manifests: [
            { apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', metadata: { name: 'argocd' }, spec: { a: 'b' } },
          ],
        },
        clientCertificate: 'CSR',
        liveAccess: 'None',
      },
    },
    status: { observedGeneration: 1 },
  },
  {
    metadata: { namespace: 'argocd', name: 'plain' },
    spec: { placementRef: { kind: 'Placement', name: 'placement' }, [addon]: { mode: '' } },
    status: {},
  },
];
