import { isDeepStrictEqual } from 'node:util';
import { type Secret, secrets } from '../../lib/kube/index.ts';
import type { StepContext } from '../fleet/steps.ts';
import { hubNames, keys, labelValue, managedBy } from '../hub/names.ts';

/** What writing a Secret that all GitOpsClusters of a namespace share needs. */
export type SharedContext = Pick<
  StepContext,
  'namespace' | 'gitOpsCluster' | 'caches' | 'applier' | 'signal' | 'now' | 'logger'
>;

/** A Secret of the hub by its well-known name, as it is now. */
export function currentSecret(context: SharedContext, name: string): Promise<Secret | undefined> {
  const { namespace, caches, applier, signal } = context;
  return applier.current(secrets, { namespace, name }, caches.sharedSecret(namespace, name), signal);
}

/**
 * Writes a Secret that the GitOpsClusters of a namespace share.
 * @throws ForeignObjectError when there is one that is not ours
 */
export async function writeSecret(
  context: SharedContext,
  name: string,
  type: string,
  data: Record<string, string>,
  annotations: Record<string, string> = {},
): Promise<Secret> {
  const { namespace, caches, applier, signal } = context;
  const live = caches.sharedSecret(namespace, name);
  const metadata = { namespace, name, labels: labelsOf(context, name), annotations };
  const desired: Secret = { metadata, type, data };
  if (live?.type !== undefined && live.type !== type) {
    await applier.remove(secrets, live, signal);
  }
  const { object } = await applier.ensure(secrets, desired, live?.type === type ? live : undefined, {
    exact: ['data'],
    signal,
  });
  return isDeepStrictEqual(object.data, data) ? object : { ...object, data };
}

/** `namespace/name` of a Secret of the hub, for messages. */
export function nameOf({ namespace }: Pick<StepContext, 'namespace'>, name: string): string {
  return `${namespace}/${name}`;
}

/** The request for another authority or key on a Secret that was not carried out yet, or the one carried out last. */
export function rotationRequest(secret: Secret | undefined): { pending: boolean; annotations: Record<string, string> } {
  const { [keys.rotate]: wanted, [keys.rotated]: done } = secret?.metadata.annotations ?? {};
  const pending = wanted !== undefined && wanted !== '' && wanted !== done;
  const carriedOut = wanted || done;
  return { pending, annotations: carriedOut === undefined ? {} : { [keys.rotated]: carriedOut } };
}

function labelsOf(context: SharedContext, name: string): Record<string, string> {
  const labels = { [keys.managedBy]: managedBy, [keys.component]: name.replace(/^argocd-agent-/, '') };
  // Written again and again as clusters come along: it must not matter whose turn it is.
  if (name === hubNames.authorityTrust) {
    return labels;
  }
  return {
    ...labels,
    [keys.ownerName]: labelValue(context.gitOpsCluster.metadata.name),
    [keys.ownerNamespace]: labelValue(context.namespace),
  };
}
