import {
  isConflict,
  isNotFound,
  type KubeClient,
  type KubeNode,
  keyOf,
  nodes,
  type ObjectKey,
  parseKey,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { type KubeletPod, type KubeletPodSpec, kubeletPods, type NodeRequirement } from './types.ts';

interface Taint {
  key: string;
  value?: string;
  effect: string;
}

/**
 * Why a pod cannot run on a node, in a scheduler's words; undefined when it can. Looks at the node selector, required
 * node affinity, taints and tolerations. Resources are not counted: processes share what the machine has.
 */
export function unschedulable(spec: KubeletPodSpec, node: KubeNode): string | undefined {
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
  if (!selected) {
    return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
  }
  const taints = (node.spec?.taints as Taint[] | undefined) ?? [];
  const bad = taints.find((taint) => taint.effect !== 'PreferNoSchedule' && !tolerates(spec, taint));
  if (bad) {
    return `0/1 nodes are available: 1 node(s) had untolerated taint {${bad.key}: ${bad.value ?? ''}}.`;
  }
  if (node.spec?.unschedulable === true) {
    return '0/1 nodes are available: 1 node(s) were unschedulable.';
  }
  return undefined;
}

function tolerates(spec: KubeletPodSpec, taint: Taint): boolean {
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

/** Gives a node the pods that nobody has bound yet, as the default scheduler would if it were the only node. */
export class Scheduler {
  readonly #client: KubeClient;
  readonly #nodeName: string;
  readonly #find: (key: ObjectKey) => KubeletPod | undefined;
  readonly #warn: (pod: KubeletPod, reason: string, message: string) => void;
  readonly #queue: WorkQueue;

  constructor(options: {
    client: KubeClient;
    nodeName: string;
    /** The pod as last seen. */
    find(key: ObjectKey): KubeletPod | undefined;
    /** Records an event. */
    warn(pod: KubeletPod, reason: string, message: string): void;
  }) {
    this.#client = options.client;
    this.#nodeName = options.nodeName;
    this.#find = options.find;
    this.#warn = options.warn;
    this.#queue = new WorkQueue({
      name: 'scheduler',
      handler: (key, signal) => this.#schedule(key, signal),
      concurrency: 8,
      backoff: { initialMs: 50, maxMs: 2_000 },
    });
  }

  /** A pod without a node was seen. */
  add(pod: KubeletPod): void {
    const { schedulerName, schedulingGates } = pod.spec;
    if ((schedulerName ?? 'default-scheduler') !== 'default-scheduler' || schedulingGates?.length) {
      return;
    }
    this.#queue.add(keyOf(pod));
  }

  /** Works until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#queue.run(signal);
  }

  async #schedule(key: string, signal: AbortSignal): Promise<void> {
    const pod = this.#find(parseKey(key));
    if (!pod || pod.spec.nodeName || pod.metadata.deletionTimestamp) {
      return;
    }
    const node = await this.#client.get(nodes, { name: this.#nodeName }, signal);
    const why = node ? unschedulable(pod.spec, node) : 'no nodes available to schedule pods';
    if (why !== undefined) {
      await this.#report(pod, why, signal);
      throw new Error(why); // the queue tries again: labels and taints of the node may change
    }
    try {
      await this.#bind(pod, signal);
    } catch (error) {
      if (!(isNotFound(error) || isConflict(error)) || (await this.#isUnbound(pod, signal))) {
        throw error;
      }
      // Gone, or bound already.
    }
  }

  async #isUnbound({ metadata }: KubeletPod, signal: AbortSignal): Promise<boolean> {
    const now = await this.#client.get(kubeletPods, metadata, signal);
    const isIt = now !== undefined && now.metadata.uid === metadata.uid;
    return isIt && !now.spec.nodeName && !now.metadata.deletionTimestamp;
  }

  async #bind(pod: KubeletPod, signal: AbortSignal): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    const response = await this.#client.request(`/api/v1/namespaces/${namespace}/pods/${name}/binding`, {
      method: 'POST',
      signal,
      body: {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name, namespace, uid },
        target: { apiVersion: 'v1', kind: 'Node', name: this.#nodeName },
      },
    });
    await response.body.discard();
  }

  async #report(pod: KubeletPod, message: string, signal: AbortSignal): Promise<void> {
    const old = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
    if (old?.status === 'False' && old.message === message) {
      return;
    }
    const others = (pod.status?.conditions ?? []).filter((condition) => condition.type !== 'PodScheduled');
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message };
    const status = { conditions: [...others, condition] };
    await this.#client.mergePatch(kubeletPods, pod.metadata, { status }, { subresource: 'status', signal });
    this.#warn(pod, 'FailedScheduling', message);
  }
}
