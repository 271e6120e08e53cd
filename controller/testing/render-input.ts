import type { CustomResourceDefinition } from '../../lib/kube/index.ts';
import { deliverableCrd } from '../hub/index.ts';
import { noConfig, type OperatorInput, type RenderInput } from '../render/index.ts';

/** A small CRD as on the hub. */
export const hubCrd = (name: string): CustomResourceDefinition => ({
  metadata: { name, uid: 'hub-uid', resourceVersion: '7', annotations: { a: 'b' } },
  spec: {
    group: 'argoproj.io',
    names: { kind: 'Application', plural: 'applications' },
    scope: 'Namespaced',
    conversion: { strategy: 'Webhook' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { description: 'text', properties: { description: { type: 'string', description: 'x' } } },
        },
      },
    ],
  },
  status: { storedVersions: ['v1alpha1'] },
});
/** Argo CD for delivery. */
export const argoCD = {
  image: 'quay.io/argoproj/argocd:v3.2.6',
  redisImage: 'redis:8',
  redisPassword: 'secret',
  serverSecretKey: 'key',
  crds: [hubCrd('applications.argoproj.io'), hubCrd('appprojects.argoproj.io')].map(deliverableCrd),
};

/** The input for the works of a cluster. */
export const input: RenderInput = {
  namespace: 'argocd',
  mode: 'managed',
  serverAddress: 'principal.example.com',
  serverPort: '443',
  authorities: 'PEM "of": authorities\n',
  clientCertificate: { certificate: 'CERT', key: 'KEY' },
  agentImage: 'quay.io/open-cluster-management/argocd-fleet:1',
  pullPolicy: 'IfNotPresent',
  liveAccess: 'Full',
  destinationBasedMapping: true,
  argoCD,
  config: noConfig,
};

/** argocd-operator for delivery. */
export const operator: OperatorInput = {
  namespace: 'argocd-operator-system',
  image: 'quay.io/argoprojlabs/argocd-operator:v0.18.0',
  crds: [hubCrd('argocds.argoproj.io')].map(deliverableCrd),
  agentImage: 'quay.io/open-cluster-management/argocd-fleet:1',
  payload: undefined,
};
