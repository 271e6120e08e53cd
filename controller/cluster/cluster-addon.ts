import { isDeepStrictEqual } from 'node:util';
import { type Condition, finalizerPatch, findCondition, type KubeClient, setCondition } from '../../lib/kube/index.ts';
import { isOurs } from '../hub/applier.ts';
import {
  addOnName,
  agentSubject,
  cleanUpWork,
  fieldManager,
  finalizer,
  formerWork,
  hubNames,
  keys,
  signerName,
} from '../hub/names.ts';
import {
  type ManagedClusterAddOn,
  type ManifestWork,
  managedClusterAddOns,
  managedClusters,
} from '../hub/resources.ts';
import type { Phase } from '../rollout/plan.ts';
import { progressOfRollout } from '../rollout/rollout-conditions.ts';
import { NotDeliverableError } from './cluster-config.ts';
import type { ClusterContext } from './cluster-context.ts';
import { availability, connection, manifestApplied, progress, type Verdict } from './cluster-health.ts';
import { configReferences, configured } from './config-status.ts';
import { hookCondition } from './detach-status.ts';

/** Works that bring nothing to stay. */
const cleaning: ReadonlySet<string> = new Set([cleanUpWork.part, formerWork.part]);

/** Makes the ManagedClusterAddOn, or takes over one that a user made (its configuration references stay the user's). */
export async function ensureAddOn(context: ClusterContext): Promise<void> {
  const { cluster, applier, caches, client, signal } = context;
  const key = { namespace: cluster, name: addOnName };
  const cached = caches.addOns.get(key);
  const base = context.ownerMetadata('addon');
  const live = await applier.current(managedClusterAddOns, key, cached, signal);
  if (live?.metadata.deletionTimestamp) {
    await letGo(context);
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
  const held = context.foundation.retains
    ? { annotations: { ...base.annotations, [keys.retain]: 'true' } }
    : { finalizers: [finalizer] };
  const desired: ManagedClusterAddOn = { metadata: { ...key, ...base, ...held }, spec: {} };
  await applier.change(managedClusterAddOns, desired, live, { signal });
}

/**
 * Somebody deleted the add-on of a cluster that is to have it: it may go, and is made again; what is on the cluster stays
 * as it is. When OCM deleted it because the cluster leaves the hub, it must stay until the cluster is cleaned up: OCM
 * waits for that before it deletes the works. The server is asked, because the one news may have come without the other.
 */
async function letGo({ cluster, client, signal }: ClusterContext): Promise<void> {
  const [managed] = await client.list(managedClusters, { fieldSelector: `metadata.name=${cluster}`, signal });
  if (managed && !managed.metadata.deletionTimestamp) {
    await releaseAddOn(cluster, client, signal);
  }
}

/** Takes our finalizer off the add-on of a cluster, if it is there. */
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
  context: ClusterContext,
  problem: string | undefined,
  phase: Phase,
): Promise<{ before: readonly Condition[]; conditions: readonly Condition[] }> {
  const { cluster, caches, foundation, client, signal, now } = context;
  const works = caches.works
    .list(cluster)
    .filter(
      ({ metadata }) =>
        metadata.annotations?.[keys.owner] === foundation.key && !cleaning.has(metadata.labels?.[keys.part] ?? ''),
    )
    .sort((x, y) => (x.metadata.name < y.metadata.name ? -1 : 1));
  const [lease] = caches.connections.byIndex('agent', `${foundation.namespace}/${cluster}`);
  const key = { namespace: cluster, name: addOnName };
  const addOn = await context.applier.current(managedClusterAddOns, key, caches.addOns.get(key), signal);
  const before = addOn?.status?.conditions;
  const verdicts: Verdict[] = [
    configured(context, works),
    manifestApplied(works, problem, findCondition(before, 'ManifestApplied')),
    availability(works, caches.managedClusters.get({ name: cluster }), findCondition(before, 'Available')),
    problem === undefined
      ? (progressOfRollout(phase, foundation) ?? progress(works, problem))
      : progress(works, problem),
    connection(lease),
  ];
  // Of an earlier departure.
  let conditions: Condition[] = (before ?? []).filter(({ type }) => type !== hookCondition);
  for (const verdict of verdicts) {
    conditions = setCondition(conditions, verdict, now);
  }
  // Nothing is news before it is written.
  if (addOn === undefined) {
    return { before: conditions, conditions };
  }
  const completed = verdicts.some(({ type, reason }) => type === 'Progressing' && reason === 'Completed');
  const status: ManagedClusterAddOn['status'] = {
    ...addOn.status,
    conditions,
    // What the work agent reports counts; nobody renews a lease for this add-on.
    healthCheck: { mode: 'Customized' },
    ...registrationsOf(context, addOn),
    namespace: works.length > 0 ? namespaceOf(works) : (addOn.status?.namespace ?? 'argocd'),
    configReferences: configReferences(context, addOn, works, completed),
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

/** Where the agent is: certificates that the cluster asks for are put there. */
function namespaceOf(works: readonly ManifestWork[]): string {
  const manifests = works.flatMap(({ spec }) => spec.workload.manifests);
  const authorities = manifests.find(
    ({ kind, metadata: { name } }) => kind === 'Secret' && name === hubNames.authority,
  );
  return authorities?.metadata.namespace ?? 'argocd';
}

/** What OCM's registration agent of the cluster shall ask for. */
function registrationsOf({ cluster, foundation }: ClusterContext, { status }: ManagedClusterAddOn) {
  const { commonName: user, organizations: groups } = agentSubject(cluster);
  if (foundation.addOn.clientCertificate === 'CSR') {
    return { registrations: [{ signerName, subject: { user, groups } }] };
  }
  return status?.registrations === undefined ? {} : { registrations: [] };
}
