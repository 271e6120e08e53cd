import type { KubeClient, KubeNode } from '../../lib/kube/index.ts';
import type { NodeRequirement, Pod, PodSpec } from './types.ts';

interface Taint {
  key: string;
  value?: string;
  effect: string;
}

/**
 * Why a pod cannot run on a node, in a scheduler's words; undefined when it can. Looks at the node selector, required
 * node affinity, taints and tolerations. Resources are not counted: processes share what the machine has.
 */
export function unschedulable(spec: PodSpec, node: KubeNode): string | undefined {
  const labels = node.metadata.labels ?? {};
  const wanted = Object.entries(spec.nodeSelector ?? {});
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const selected =
    wanted.every(([key, value]) => labels[key] === value) &&
    (terms === undefined ||
      terms.some(
        (term) =>
          (term.matchExpressions ?? []).every((r) => matches(r, labels[r.key])) &&
          (term.matchFields ?? []).every((r) => matches(r, r.key === 'metadata.name' ? node.metadata.name : undefined)),
      ));
  if (!selected) return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
  const taints = (node.spec?.taints as Taint[] | undefined) ?? [];
  const bad = taints.find((taint) => taint.effect !== 'PreferNoSchedule' && !tolerates(spec, taint));
  if (bad) return `0/1 nodes are available: 1 node(s) had untolerated taint {${bad.key}: ${bad.value ?? ''}}.`;
  if (node.spec?.unschedulable === true) return '0/1 nodes are available: 1 node(s) were unschedulable.';
  return undefined;
}

function tolerates(spec: PodSpec, taint: Taint): boolean {
  return (spec.tolerations ?? []).some(
    (toleration) =>
      (toleration.effect === undefined || toleration.effect === '' || toleration.effect === taint.effect) &&
      (toleration.key ? toleration.key === taint.key : toleration.operator === 'Exists') &&
      (toleration.operator === 'Exists' || (toleration.value ?? '') === (taint.value ?? '')),
  );
}

function matches(requirement: NodeRequirement, value: string | undefined): boolean {
  const values = requirement.values ?? [];
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return Number(value) > Number(values[0]);
    case 'Lt':
      return Number(value) < Number(values[0]);
    default:
      return false;
  }
}

/** Gives a pod to a node. */
export async function bind(client: KubeClient, pod: Pod, nodeName: string, signal: AbortSignal): Promise<void> {
  const { name, namespace, uid } = pod.metadata;
  const response = await client.request(`/api/v1/namespaces/${namespace}/pods/${name}/binding`, {
    method: 'POST',
    signal,
    body: {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, uid },
      target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
    },
  });
  await response.body.discard();
}
