import { Informer, type KubeClient, type Pod, pods } from '../../lib/kube/index.ts';

/**
 * Says of every pod that it runs and is ready, and of the pods of Jobs and tests that they have succeeded. Nothing runs.
 * Until the signal aborts.
 */
export async function playKubelet(client: KubeClient, signal: AbortSignal): Promise<void> {
  const informer = new Informer<Pod>({ client, type: pods });
  const report = ({ metadata: { namespace = '', name }, spec }: Pod) => {
    const isEnded = spec?.restartPolicy !== undefined && spec.restartPolicy !== 'Always';
    const conditions = [
      { type: 'Ready', status: isEnded ? 'False' : 'True', lastTransitionTime: new Date().toISOString() },
    ];
    const status = { phase: isEnded ? 'Succeeded' : 'Running', conditions };
    // A pod may be gone already, or the cluster.
    client.mergePatch(pods, { namespace, name }, { status }, { subresource: 'status' }).catch(() => undefined);
  };
  informer.subscribe({ added: report });
  await informer.run(signal);
}
