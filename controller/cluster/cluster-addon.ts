import { isDeepStrictEqual } from 'node:util';
import { type Condition, finalizerPatch, findCondition, type KubeClient, setCondition } from '../../lib/kube/index.ts';
import {
  type AddOnCondition,
  addOnName,
  agentConnected,
  agentSubject,
  cleanUpWork,
  fieldManager,
  finalizer,
  formerWork,
  hubNames,
  isOurs,
  keys,
  type ManagedClusterAddOn,
  type ManifestWork,
  managedClusterAddOns,
  managedClusters,
  signerName,
} from '../hub/index.ts';
import { type Phase, rolloutProgress } from '../rollout/index.ts';
import type { Foundation } from '../spec/index.ts';
import { type ClientCertificatePlan, issuedOf } from '../trust/index.ts';
import { NotDeliverableError } from './cluster-config.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';
import { availability, certificateIssued, certificateIssuedType, manifestApplied, progress } from './cluster-health.ts';
import { labelsCopied, labelsCopiedType } from './cluster-labels.ts';
import { configReferences, configured } from './config-status.ts';
import { hookCondition } from './detach-status.ts';
import { ownerMetadata } from './owner-metadata.ts';

/** Parts with a clean-up Job only. */
const cleaning: ReadonlySet<string> = new Set([cleanUpWork.part, formerWork.part]);

/** Makes the ManagedClusterAddOn, or takes over one of a user, whose configuration references stay. */
export async function ensureAddOn(
  { applier, caches, client }: Pick<ClusterDeps, 'applier' | 'caches' | 'client'>,
  { cluster, foundation, signal }: Enrolment,
): Promise<void> {
  const key = { namespace: cluster, name: addOnName };
  const cached = caches.addOns.get(key);
  const base = ownerMetadata(foundation.key, cluster, 'addon');
  const live = await applier.current(managedClusterAddOns, key, cached, signal);
  if (live?.metadata.deletionTimestamp) {
    await releaseUnlessDetached(cluster, client, signal);
    throw new NotDeliverableError(
      `ManagedClusterAddOn ${cluster}/${addOnName} is being deleted; it is made again when it is gone`,
    );
  }
  if (live?.metadata.annotations?.[keys.issued] !== undefined && foundation.addOn.clientCertificate === 'Generated') {
    // OCM's agent deletes the requested certificate: the record must not count when the cluster requests another one later.
    const patch = { metadata: { annotations: { [keys.issued]: null } } };
    await client.mergePatch(managedClusterAddOns, key, patch, { fieldManager, signal });
    return;
  }
  if (live && (!isOurs(live) || live.metadata.annotations?.[keys.detaching])) {
    const annotations = {
      ...base.annotations,
      [keys.detaching]: null,
      [keys.drainUntil]: null,
      [keys.namespaces]: null,
    };
    await client.mergePatch(
      managedClusterAddOns,
      key,
      { metadata: { labels: base.labels, annotations } },
      { fieldManager, signal },
    );
    return;
  }
  const held = foundation.retains
    ? { annotations: { ...base.annotations, [keys.retain]: 'true' } }
    : { finalizers: [finalizer] };
  const desired: ManagedClusterAddOn = { metadata: { ...key, ...base, ...held }, spec: {} };
  await applier.change(managedClusterAddOns, desired, live, { signal });
}

/**
 * Removes our finalizer from a deleted add-on, unless OCM deleted it because the cluster leaves the hub: OCM waits for the
 * add-on before it deletes the works, so the finalizer stays until the cluster is cleaned up. An add-on deleted by somebody
 * else is made again, and its objects on the cluster stay. The server is read because the caches of two kinds may differ.
 */
async function releaseUnlessDetached(cluster: string, client: KubeClient, signal: AbortSignal): Promise<void> {
  const [managed] = await client.list(managedClusters, { fieldSelector: `metadata.name=${cluster}`, signal });
  if (managed && !managed.metadata.deletionTimestamp) {
    await releaseAddOn(cluster, client, signal);
  }
}

/** Removes our finalizer from the add-on of a cluster, if the add-on has it. */
export async function releaseAddOn(
  cluster: string,
  client: Pick<KubeClient, 'get' | 'mergePatch'>,
  signal: AbortSignal,
): Promise<void> {
  const key = { namespace: cluster, name: addOnName };
  const live = await client.get(managedClusterAddOns, key, signal);
  const patch = live && finalizerPatch(live, { remove: finalizer });
  if (patch) {
    await client.mergePatch(managedClusterAddOns, key, patch, { fieldManager, signal });
  }
}

/** What a reconcile found about a cluster. */
export interface AddOnProgress {
  /** Why the works could not be written. */
  readonly problem: string | undefined;
  readonly phase: Phase;
  /** Where the agent of the cluster connects; undefined while unknown. */
  readonly endpoint: Foundation['endpoint'];
  /** How the agent gets its certificate; undefined when that could not be decided. */
  readonly plan: ClientCertificatePlan | undefined;
  /** The labels and claims that could not be copied to the cluster Secret; undefined when it was not made. */
  readonly skippedLabels: readonly string[] | undefined;
}

/**
 * Writes the add-on's conditions and configuration references in one patch, if they changed.
 * @returns the conditions before and after
 */
export async function writeAddOnStatus(
  { applier, caches, client }: Pick<ClusterDeps, 'applier' | 'caches' | 'client'>,
  { cluster, foundation, signal, now }: Enrolment,
  { problem, phase, endpoint, plan, skippedLabels }: AddOnProgress,
): Promise<{ before: readonly Condition[]; conditions: readonly Condition[] }> {
  const works = caches.works
    .list(cluster)
    .filter(
      ({ metadata }) =>
        metadata.annotations?.[keys.owner] === foundation.key && !cleaning.has(metadata.labels?.[keys.part] ?? ''),
    )
    .sort((x, y) => (x.metadata.name < y.metadata.name ? -1 : 1));
  const [lease] = caches.connections.byIndex('agent', `${foundation.namespace}/${cluster}`);
  const key = { namespace: cluster, name: addOnName };
  const addOn = await applier.current(managedClusterAddOns, key, caches.addOns.get(key), signal);
  const before = addOn?.status?.conditions;
  const connection = agentConnected(lease, endpoint);
  const labels = skippedLabels && labelsCopied(skippedLabels);
  const changes: AddOnCondition[] = [
    configured({ caches, cluster }, works),
    manifestApplied(works, problem, findCondition(before, 'ManifestApplied')),
    availability(works, caches.managedClusters.get({ name: cluster }), findCondition(before, 'Available'), connection),
    problem === undefined ? (rolloutProgress(phase, foundation) ?? progress(works, problem)) : progress(works, problem),
    connection,
    ...(plan?.isRequested ? [certificateIssued(issuedOf(addOn), plan, connection, now)] : []),
    ...(labels ? [labels] : []),
  ];
  // The hook's condition remains from an earlier detachment.
  const obsolete = [
    hookCondition,
    ...(plan?.isRequested === false ? [certificateIssuedType] : []),
    ...(skippedLabels?.length === 0 ? [labelsCopiedType] : []),
  ];
  let conditions: Condition[] = (before ?? []).filter(({ type }) => !obsolete.includes(type));
  for (const change of changes) {
    conditions = setCondition(conditions, change, now);
  }
  // Conditions that were not written do not count as a change.
  if (addOn === undefined) {
    return { before: conditions, conditions };
  }
  const completed = changes.some(({ type, reason }) => type === 'Progressing' && reason === 'Completed');
  const status: ManagedClusterAddOn['status'] = {
    ...addOn.status,
    conditions,
    // The work agent's reports determine the health. No lease is renewed for this add-on.
    healthCheck: { mode: 'Customized' },
    ...registrationsOf(cluster, plan, addOn),
    namespace: works.length > 0 ? namespaceOf(works) : (addOn.status?.namespace ?? 'argocd'),
    configReferences: configReferences({ caches, cluster }, addOn, works, completed),
  };
  if (!isDeepStrictEqual(status, addOn.status)) {
    const { resourceVersion } = addOn.metadata;
    await client.mergePatch(
      managedClusterAddOns,
      key,
      { metadata: { resourceVersion }, status },
      { subresource: 'status', fieldManager, signal },
    );
  }
  return { before: before ?? [], conditions };
}

/** The agent's namespace on the cluster. OCM stores the certificates that the cluster requests there. */
function namespaceOf(works: readonly ManifestWork[]): string {
  const manifests = works.flatMap(({ spec }) => spec.workload.manifests);
  const authorities = manifests.find(
    ({ kind, metadata: { name } }) => kind === 'Secret' && name === hubNames.authority,
  );
  return authorities?.metadata.namespace ?? 'argocd';
}

/** The certificates that OCM's registration agent of the cluster requests. */
function registrationsOf(
  cluster: string,
  plan: ClientCertificatePlan | undefined,
  { status }: ManagedClusterAddOn,
): Pick<NonNullable<ManagedClusterAddOn['status']>, 'registrations'> {
  const { commonName: user, organizations: groups } = agentSubject(cluster);
  if (plan?.isRequested) {
    return { registrations: [{ signerName, subject: { user, groups } }] };
  }
  return plan === undefined || status?.registrations === undefined ? {} : { registrations: [] };
}
