import type { KubeObject, PodTemplate } from '../../lib/kube/index.ts';
import type { ManifestWork } from '../hub/index.ts';

const workloadKinds = new Set(['Deployment', 'StatefulSet', 'ArgoCD']);

/**
 * Whether works have arrived as they are now, and what they brought runs: not what was there before. That a work is
 * applied says nothing about pods, and pods may be those of the former version, so a workload counts only when the
 * image that came back is the one that was sent, the cluster has looked at that change, and all its pods are new.
 */
export function haveArrived(works: readonly ManifestWork[]): boolean {
  return works.length > 0 && works.every((work) => isApplied(work) && work.spec.workload.manifests.every(runs(work)));
}

function isApplied({ metadata, status }: ManifestWork): boolean {
  return ['Applied', 'Available'].every((wanted) =>
    status?.conditions?.some(
      ({ type, status: value, observedGeneration }) =>
        type === wanted && value === 'True' && (observedGeneration ?? 0) >= (metadata.generation ?? 0),
    ),
  );
}

/** What nobody asked the status of says nothing, and is not waited for: a user's own workload, a work of former times. */
function runs(work: ManifestWork): (manifest: KubeObject) => boolean {
  const reported = work.status?.resourceStatus?.manifests ?? [];
  const isAsked = ({ namespace, name }: KubeObject['metadata']) =>
    work.spec.manifestConfigs?.some(
      ({ resourceIdentifier: one, feedbackRules }) =>
        feedbackRules !== undefined && one.name === name && one.namespace === namespace,
    ) ?? false;
  return ({ kind, metadata, ...rest }) => {
    if (!workloadKinds.has(kind ?? '') || !isAsked(metadata)) {
      return true;
    }
    const isIt = ({ resourceMeta }: (typeof reported)[number]) =>
      resourceMeta.kind === kind && resourceMeta.name === metadata.name;
    const values = reported.find(isIt)?.statusFeedback?.values;
    const text = (name: string) => values?.find((value) => value.name === name)?.fieldValue.string;
    if (kind === 'ArgoCD') {
      return text('Phase') === 'Available';
    }
    const number = (name: string) => values?.find((value) => value.name === name)?.fieldValue.integer;
    const { template } = (rest as { spec?: { template?: PodTemplate } }).spec ?? {};
    const isSeen = number('Generation') !== undefined && number('Generation') === number('ObservedGeneration');
    if (!isSeen || text('Image') !== template?.spec?.containers[0]?.image) {
      return false;
    }
    const replicas = number('Replicas') ?? 0;
    return replicas > 0 && number('UpdatedReplicas') === replicas && (number('ReadyReplicas') ?? 0) >= replicas;
  };
}
