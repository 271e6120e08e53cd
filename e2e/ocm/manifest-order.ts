import type { KubeObject } from '../../lib/kube/index.ts';

const ranks: readonly (readonly string[])[] = [
  ['PriorityClass', 'Namespace', 'CustomResourceDefinition', 'StorageClass', 'PersistentVolume'],
  ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  ['NetworkPolicy', 'ResourceQuota', 'LimitRange', 'PodDisruptionBudget', 'ServiceAccount'],
  ['Secret', 'ConfigMap', 'PersistentVolumeClaim'],
  ['Service'],
  ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Pod', 'HorizontalPodAutoscaler', 'Job', 'CronJob'],
  [
    'APIService',
    'MutatingWebhookConfiguration',
    'ValidatingWebhookConfiguration',
    'ValidatingAdmissionPolicy',
    'ValidatingAdmissionPolicyBinding',
  ],
];

/** The order in which OCM's work agent applies the manifests of one work: by kind, otherwise as they stand. */
export function inApplyOrder(manifests: readonly KubeObject[]): { ordinal: number; manifest: KubeObject }[] {
  const rank = ({ kind = '' }: KubeObject) => {
    const found = ranks.findIndex((kinds) => kinds.includes(kind));
    return found < 0 ? 1000 : found;
  };
  return manifests
    .map((manifest, ordinal) => ({ ordinal, manifest }))
    .sort((a, b) => rank(a.manifest) - rank(b.manifest) || a.ordinal - b.ordinal);
}
