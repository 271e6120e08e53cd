import type { ZodType } from 'zod';
import { stringFlag, UsageError } from '../../lib/ops/index.ts';
import { problemsOf } from '../hub/index.ts';
import { clusterSettingsSchema, type DeliverySettings } from '../spec/index.ts';

/** What managed clusters get: images, their pull policy, and settings. */
export const deliveryFlags = {
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
  'cluster-settings': stringFlag({
    usage:
      'settings of Argo CD and the agent on all managed clusters, as JSON: the fields of clusterSettings, which those of a GitOpsCluster override key by key',
    default: '{}',
    env: 'CLUSTER_SETTINGS',
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
  'cluster-settings': string;
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
    clusterSettings: jsonOf('cluster-settings', flags['cluster-settings'], clusterSettingsSchema),
  };
}

/** The value of a flag with an environment variable of the same name, as JSON of this form. */
export function jsonOf<T>(flag: string, text: string, schema: ZodType<T>): T {
  const subject = `--${flag} (or ${flag.toUpperCase().replaceAll('-', '_')})`;
  let input: unknown;
  try {
    input = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${subject} is no JSON: ${(error as Error).message}`);
  }
  const result = schema.safeParse(input);
  if (result.success) {
    return result.data;
  }
  throw new UsageError(`${subject}: ${problemsOf(result.error)}`);
}
