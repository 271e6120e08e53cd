import { type KubeObject, resourceType } from '../../lib/kube/index.ts';

const admission = (kind: string, plural: string) =>
  resourceType<KubeObject & { spec: object }>({
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    kind,
    plural,
    namespaced: false,
  });

/** Policies by which an API server refuses writes. */
export const admissionPolicies = admission('ValidatingAdmissionPolicy', 'validatingadmissionpolicies');

/** What puts a policy into force. */
export const admissionPolicyBindings = admission(
  'ValidatingAdmissionPolicyBinding',
  'validatingadmissionpolicybindings',
);
