import { stringFlag, UsageError } from '../../lib/ops/index.ts';
import type { DeliverySettings } from '../spec/index.ts';

/** Images for managed clusters, and their pull policy. */
export const imageFlags = {
  'agent-image': stringFlag({ usage: 'image of the agent on managed clusters', env: 'CONTROLLER_IMAGE' }),
  'cleanup-image': stringFlag({
    usage: "image of the Job that cleans up a detached cluster, this program's; default: the image of the agent",
    env: 'CLEANUP_IMAGE',
  }),
  'argocd-image': stringFlag({
    usage: "image of Argo CD on managed clusters; default: the hub's",
    env: 'ARGOCD_IMAGE',
  }),
  'redis-image': stringFlag({ usage: "image of Redis on managed clusters; default: the hub's", env: 'REDIS_IMAGE' }),
  'operator-image': stringFlag({
    usage:
      'image of argocd-operator on managed clusters, with argoCD: Operator; default: the version that this program supports',
    env: 'OPERATOR_IMAGE',
  }),
  'image-pull-policy': stringFlag({
    usage: 'pull policy of the images on managed clusters',
    default: 'IfNotPresent',
    env: 'IMAGE_PULL_POLICY',
    check: (value) =>
      ['Always', 'IfNotPresent', 'Never'].includes(value) ? undefined : 'must be Always, IfNotPresent or Never',
  }),
};

/** The delivery settings, from the flags. */
export function deliveryOf(flags: {
  'agent-image': string;
  'cleanup-image': string;
  'argocd-image': string;
  'redis-image': string;
  'operator-image': string;
  'image-pull-policy': string;
}): DeliverySettings {
  if (!flags['agent-image']) {
    throw new UsageError('--agent-image (or CONTROLLER_IMAGE) must say which image the agents on managed clusters run');
  }
  return {
    agentImage: flags['agent-image'],
    cleanUpImage: flags['cleanup-image'] || undefined,
    pullPolicy: flags['image-pull-policy'],
    argoCdImage: flags['argocd-image'] || undefined,
    redisImage: flags['redis-image'] || undefined,
    operatorImage: flags['operator-image'] || undefined,
  };
}
