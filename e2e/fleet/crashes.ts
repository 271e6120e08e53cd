import type { KubeClient } from '../../lib/kube/index.ts';
import { type ContainerStatus, kubeletPods, type Node } from '../node/index.ts';

/** A cluster with its node. */
interface Place {
  readonly name: string;
  readonly client: KubeClient;
  readonly node: Pick<Node, 'log'>;
}

/** The ends of the logs of all containers that ended with an error and are, or were, started again; empty when none did. */
export async function crashLogs(places: readonly Place[], lines = 20): Promise<string> {
  const texts = await Promise.all(
    places.map(async ({ name: cluster, client, node }) => {
      const all = await client.list(kubeletPods).catch(() => []);
      const crashed = all.flatMap(({ metadata, status }) =>
        [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
          .filter(hasCrashed)
          .map((container) => ({ namespace: metadata.namespace ?? '', pod: metadata.name, container })),
      );
      return Promise.all(
        crashed.map(async ({ namespace, pod, container: { name, restartCount, lastState, state } }) => {
          const code = (lastState?.terminated ?? state?.terminated)?.exitCode;
          const log = await node.log(namespace, pod, name, lines);
          return `--- ${cluster}: ${namespace}/${pod} ${name}, exit code ${code}, ${restartCount} restarts\n${log ?? ''}`;
        }),
      );
    }),
  );
  return texts.flat().join('\n');
}

function hasCrashed({ state, lastState }: ContainerStatus): boolean {
  return (state?.terminated?.exitCode ?? 0) !== 0 || (lastState?.terminated?.exitCode ?? 0) !== 0;
}
