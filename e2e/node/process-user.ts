import { ContainerError } from './errors.ts';
import type { Image } from './images.ts';
import type { ProcessUser } from './sandbox.ts';
import type { KubeletContainer, KubeletPod } from './types.ts';

/**
 * Who a container's process runs as: what the container says, else the pod, else the image.
 *
 * @throws ContainerError `CreateContainerConfigError` when `runAsNonRoot` is asked for and the user would be root
 */
export function processUser(pod: KubeletPod, container: KubeletContainer, image: Image): ProcessUser {
  const forPod = pod.spec.securityContext ?? {};
  const forContainer = container.securityContext ?? {};
  const asked = forContainer.runAsUser ?? forPod.runAsUser;
  const uid = asked ?? image.user?.uid ?? 0;
  if ((forContainer.runAsNonRoot ?? forPod.runAsNonRoot) && uid === 0) {
    const where = `(pod: "${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})", container: ${container.name})`;
    const why =
      asked === undefined
        ? 'container has runAsNonRoot and image will run as root'
        : "container's runAsUser breaks non-root policy";
    throw new ContainerError('CreateContainerConfigError', `${why} ${where}`);
  }
  const gid = forContainer.runAsGroup ?? forPod.runAsGroup ?? (uid === image.user?.uid ? image.user.gid : 0);
  const groups = [...(forPod.supplementalGroups ?? []), ...(forPod.fsGroup === undefined ? [] : [forPod.fsGroup])];
  return { uid, gid, groups: [...new Set(groups)] };
}
