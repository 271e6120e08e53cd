import type { KubeObject, PodTemplate } from '../../lib/kube/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import { settingsChecksum } from '../render/index.ts';

const workloadKinds = new Set(['Deployment', 'StatefulSet', 'ArgoCD']);

/**
 * Whether works are applied in their current generation and their workloads run. A work may be applied while its pods are
 * still the former ones. So a workload counts only when the reported image is the delivered one, the cluster has observed
 * the change, and all pods are updated and ready.
 */
export function haveArrived(works: readonly ManifestWork[]): boolean {
  return works.length > 0 && works.every((work) => isApplied(work) && work.spec.workload.manifests.every(runs(work)));
}

function isApplied({ metadata, status }: ManifestWork): boolean {
  return ['Applied', 'Available'].every((condition) =>
    status?.conditions?.some(
      ({ type, status: value, observedGeneration }) =>
        type === condition && value === 'True' && (observedGeneration ?? 0) >= (metadata.generation ?? 0),
    ),
  );
}

/** Workloads without requested status feedback count as running: a user's own, or those of an older version's work. */
function runs(work: ManifestWork): (manifest: KubeObject) => boolean {
  const reported = work.status?.resourceStatus?.manifests ?? [];
  const hasFeedback = ({ namespace, name }: KubeObject['metadata']) =>
    work.spec.manifestConfigs?.some(
      ({ resourceIdentifier: one, feedbackRules }) =>
        feedbackRules !== undefined && one.name === name && one.namespace === namespace,
    ) ?? false;
  return ({ kind, metadata, ...rest }) => {
    if (!workloadKinds.has(kind ?? '') || !hasFeedback(metadata)) {
      return true;
    }
    const isSame = ({ resourceMeta }: (typeof reported)[number]) =>
      resourceMeta.kind === kind && resourceMeta.name === metadata.name;
    const values = reported.find(isSame)?.statusFeedback?.values;
    const text = (name: string) => values?.find((value) => value.name === name)?.fieldValue.string;
    if (kind === 'ArgoCD') {
      return text('Phase') === 'Available';
    }
    const number = (name: string) => values?.find((value) => value.name === name)?.fieldValue.integer;
    const { template, replicas: wanted } =
      (rest as { spec?: { template?: PodTemplate; replicas?: number } }).spec ?? {};
    const isObserved = number('Generation') !== undefined && number('Generation') === number('ObservedGeneration');
    if (!isObserved || text('Image') !== template?.spec?.containers[0]?.image) {
      return false;
    }
    if (text('Settings') !== template?.metadata?.annotations?.[settingsChecksum]) {
      return false;
    }
    const replicas = number('Replicas') ?? 0;
    if (wanted === 0) {
      return replicas === 0;
    }
    return replicas > 0 && number('UpdatedReplicas') === replicas && (number('ReadyReplicas') ?? 0) >= replicas;
  };
}
