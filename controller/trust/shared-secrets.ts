import { isDeepStrictEqual } from 'node:util';
import { wellKnown } from '../../lib/base/index.ts';
import { type Secret, secrets } from '../../lib/kube/index.ts';
import { hubNames, keys, labelValue, managedBy } from '../hub/index.ts';
import type { TrustDeps, TrustScope } from './trust-deps.ts';

type SecretDeps = Pick<TrustDeps, 'caches' | 'applier'>;

/** The newest known state of one of the Secrets in `hubNames`. */
export function currentSecret(
  { caches, applier }: SecretDeps,
  { namespace, signal }: Pick<TrustScope, 'namespace' | 'signal'>,
  name: string,
): Promise<Secret | undefined> {
  return applier.current(secrets, { namespace, name }, caches.sharedSecret(namespace, name), signal);
}

/**
 * Writes a Secret that all GitOpsClusters of a principal share.
 * @throws ForeignObjectError when a Secret with that name belongs to somebody else
 */
export async function writeSecret(
  { caches, applier }: SecretDeps,
  scope: TrustScope,
  name: string,
  content: Required<Pick<Secret, 'type' | 'data'>>,
  annotations: Record<string, string> = {},
): Promise<Secret> {
  const { namespace, signal } = scope;
  const { type, data } = content;
  const live = caches.sharedSecret(namespace, name);
  const desired: Secret = { metadata: { namespace, name, labels: labelsOf(scope, name), annotations }, type, data };
  if (live?.type !== undefined && live.type !== type) {
    await applier.remove(secrets, live, signal);
  }
  const { object } = await applier.ensure(secrets, desired, live?.type === type ? live : undefined, {
    exact: ['data'],
    signal,
  });
  return isDeepStrictEqual(object.data, data) ? object : { ...object, data };
}

/**
 * A user's request for a new authority or key, from annotation `rotate` of its Secret.
 * @returns whether it is pending, and the annotations that mark it as carried out
 */
export function rotationRequest(secret: Secret | undefined): { pending: boolean; annotations: Record<string, string> } {
  const { [keys.rotate]: requested, [keys.rotated]: done } = secret?.metadata.annotations ?? {};
  const pending = requested !== undefined && requested !== '' && requested !== done;
  const carriedOut = requested || done;
  return { pending, annotations: carriedOut === undefined ? {} : { [keys.rotated]: carriedOut } };
}

function labelsOf({ gitOpsCluster: { metadata } }: TrustScope, name: string): Record<string, string> {
  const labels = { [wellKnown.managedByLabel]: managedBy, [keys.component]: name.replace(/^argocd-agent-/, '') };
  // This Secret is rewritten as clusters are enrolled. It has no owner, so that all GitOpsClusters write the same content.
  if (name === hubNames.authorityTrust) {
    return labels;
  }
  return {
    ...labels,
    [keys.ownerName]: labelValue(metadata.name),
    [keys.ownerNamespace]: labelValue(metadata.namespace ?? ''),
  };
}
