import type { KubeClient, KubeObject } from '../../../lib/kube/index.ts';
import { resourcePathOf } from '../../../lib/live/index.ts';
import { RequestRefusedError } from '../refusal.ts';
import type { ManagedObjects } from './managed-objects.ts';

/** A pod that a log or a terminal is asked of. */
export interface PodName {
  readonly namespace: string;
  readonly podName: string;
}

/** The path of a pod, or of a subresource of it. @throws RequestRefusedError for a name that could lead elsewhere */
export function podPath({ namespace, podName }: PodName, subresource = ''): string {
  try {
    return resourcePathOf({ group: '', version: 'v1', namespace, resource: 'pods', name: podName, subresource });
  } catch (error) {
    throw new RequestRefusedError(400, (error as Error).message);
  }
}

/** @throws RequestRefusedError when the pod belongs to no Application and only what does may be seen */
export async function requireManagedPod(
  pod: PodName,
  options: {
    readonly client: KubeClient;
    readonly managed: Pick<ManagedObjects, 'verdictOn'>;
    readonly access: 'managed' | 'all';
  },
  signal: AbortSignal,
): Promise<void> {
  const path = podPath(pod);
  if (options.access === 'all') {
    return;
  }
  const response = await options.client.request(path, { signal });
  const object = JSON.parse(await response.body.text()) as KubeObject;
  const { isManaged } = await options.managed.verdictOn(object, signal);
  if (isManaged) {
    return;
  }
  throw new RequestRefusedError(403, `pod "${pod.namespace}/${pod.podName}" belongs to no Application of this cluster`);
}
