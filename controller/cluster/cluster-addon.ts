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
import { NotDeliverableError } from './cluster-config.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';
import { availability, manifestApplied, progress } from './cluster-health.ts';
import { configReferences, configured } from './config-status.ts';
import { hookCondition } from './detach-status.ts';
import { ownerMetadata } from './owner-metadata.ts';

/** Parts whose works only clean up. */
const cleaning: ReadonlySet<string> = new Set([cleanUpWork.part, formerWork.part]);

/** Makes the ManagedClusterAddOn, or takes over one that a user made (its configuration references stay the user's). */
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
 * Releases a deleted add-on, unless OCM deleted it because the cluster leaves the hub: then it must stay until the cluster is
 * cleaned up, because OCM waits for that before it deletes the works. An add-on that somebody else deleted is made again, and
 * what is on the cluster stays as it is. The server is asked because the caches of the two kinds may not be in step.
 */
async function releaseUnlessDetached(cluster: string, client: KubeClient, signal: AbortSignal): Promise<void> {
  const [managed] = await client.list(managedClusters, { fieldSelector: `metadata.name=${cluster}`, signal });
  if (managed && !managed.metadata.deletionTimestamp) {
    await releaseAddOn(cluster, client, signal);
  }
}

/** Removes our finalizer from the add-on of a cluster, if it is there. */
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

/**
 * Writes the add-on's conditions and configuration references, in one patch and only if they changed.
 * @returns the conditions before and now
 */
export async function writeAddOnStatus(
  { applier, caches, client }: Pick<ClusterDeps, 'applier' | 'caches' | 'client'>,
  { cluster, foundation, signal, now }: Enrolment,
  problem: string | undefined,
  phase: Phase,
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
  const changes: AddOnCondition[] = [
    configured({ caches, cluster }, works),
    manifestApplied(works, problem, findCondition(before, 'ManifestApplied')),
    availability(works, caches.managedClusters.get({ name: cluster }), findCondition(before, 'Available')),
    problem === undefined ? (rolloutProgress(phase, foundation) ?? progress(works, problem)) : progress(works, problem),
    agentConnected(lease),
  ];
  // The hook's condition remains from an earlier detachment.
  let conditions: Condition[] = (before ?? []).filter(({ type }) => type !== hookCondition);
  for (const change of changes) {
    conditions = setCondition(conditions, change, now);
  }
  // Conditions that are not written are not reported as a change.
  if (addOn === undefined) {
    return { before: conditions, conditions };
  }
  const completed = changes.some(({ type, reason }) => type === 'Progressing' && reason === 'Completed');
  const status: ManagedClusterAddOn['status'] = {
    ...addOn.status,
    conditions,
    // Health is what the work agent reports. Nobody renews a lease for this add-on.
    healthCheck: { mode: 'Customized' },
    ...registrationsOf(cluster, foundation, addOn),
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

/** The agent's namespace on the cluster. OCM puts the certificates there that the cluster asks for. */
function namespaceOf(works: readonly ManifestWork[]): string {
  const manifests = works.flatMap(({ spec }) => spec.workload.manifests);
  const authorities = manifests.find(
    ({ kind, metadata: { name } }) => kind === 'Secret' && name === hubNames.authority,
  );
  return authorities?.metadata.namespace ?? 'argocd';
}

/** The certificates that OCM's registration agent of the cluster is to ask for. */
function registrationsOf(cluster: string, { addOn }: Foundation, { status }: ManagedClusterAddOn) {
  const { commonName: user, organizations: groups } = agentSubject(cluster);
  if (addOn.clientCertificate === 'CSR') {
    return { registrations: [{ signerName, subject: { user, groups } }] };
  }
  return status?.registrations === undefined ? {} : { registrations: [] };
}
