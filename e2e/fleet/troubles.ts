import { deployments, events, type KubeClient, type KubeEvent } from '../../lib/kube/index.ts';
import { type ContainerStatus, type KubeletPod, kubeletPods, type Node } from '../node/index.ts';

/** A cluster with its node. */
interface Place {
  readonly name: string;
  readonly client: KubeClient;
  readonly node: Pick<Node, 'log'>;
}

/**
 * What is wrong in the clusters: Deployments that are not available and pods that are not ready, with their events and
 * the ends of their logs, and the logs of containers that were started again after an error; empty when nothing is.
 */
export async function troubles(places: readonly Place[], lines = 20): Promise<string> {
  const texts = await Promise.all(places.map((place) => troublesOf(place, lines)));
  return texts.flat().join('\n');
}

async function troublesOf(place: Place, lines: number): Promise<string[]> {
  const { name: cluster, client } = place;
  try {
    const [all, pods, said] = await Promise.all([
      client.list(deployments),
      client.list(kubeletPods),
      client.list(events),
    ]);
    const waiting = all.filter(({ spec, status }) => (status?.availableReplicas ?? 0) < (spec?.replicas ?? 1));
    const bad = pods.filter((pod) => !isReady(pod) || statuses(pod).some(hasCrashed));
    return [
      ...waiting.map(({ metadata, status }) =>
        [
          `--- ${cluster}: Deployment ${metadata.namespace}/${metadata.name} is not available: ${JSON.stringify(status)}`,
          ...eventsOf(said, metadata.uid),
        ].join('\n'),
      ),
      ...(await Promise.all(bad.map((pod) => troubleOf(place, pod, said, lines)))),
    ];
  } catch (error) {
    return [`--- ${cluster}: cannot be read: ${error instanceof Error ? error.message : String(error)}`];
  }
}

async function troubleOf(place: Place, pod: KubeletPod, said: readonly KubeEvent[], lines: number): Promise<string> {
  const { namespace = '', name, uid } = pod.metadata;
  const containers = statuses(pod).filter((status) => !status.ready || hasCrashed(status));
  const texts = await Promise.all(
    containers.map(async (status) => {
      const { name: container, restartCount, state, lastState } = status;
      const log = await place.node.log(namespace, name, container, lines);
      return `${container}, ${restartCount} restarts: ${JSON.stringify({ state, lastState })}\n${log ?? 'no log'}`;
    }),
  );
  const title = `--- ${place.name}: ${namespace}/${name} ${pod.status?.phase ?? 'without a status'}`;
  return [title, ...eventsOf(said, uid), ...texts].join('\n');
}

function statuses({ status }: KubeletPod): ContainerStatus[] {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
}

function isReady({ status }: KubeletPod): boolean {
  return (
    status?.phase === 'Succeeded' ||
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
  );
}

function hasCrashed({ state, lastState }: ContainerStatus): boolean {
  return (state?.terminated?.exitCode ?? 0) !== 0 || (lastState?.terminated?.exitCode ?? 0) !== 0;
}

function eventsOf(all: readonly KubeEvent[], uid: string | undefined): string[] {
  return all.filter(({ regarding }) => regarding?.uid === uid).map(({ reason, note = '' }) => `${reason}: ${note}`);
}
