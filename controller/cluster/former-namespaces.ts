import { isDeepStrictEqual } from 'node:util';
import type { KubeClient } from '../../lib/kube/index.ts';
import {
  addOnName,
  fieldManager,
  formerWork,
  keys,
  type ManagedClusterAddOn,
  type ManifestWork,
  managedClusterAddOns,
  manifestWorks,
  partWorkName,
} from '../hub/index.ts';
import {
  type AddOnConfig,
  cleanedNamespaces,
  cleanUpState,
  type RenderedWork,
  renderCleanUp,
  workParts,
} from '../render/index.ts';
import { NotDeliverableError } from './cluster-config.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';
import { isApplied } from './cluster-works.ts';
import { workMetadata } from './owner-metadata.ts';

/*
 * When Argo CD and the agent move to another namespace, the works no longer contain the former one. The work agent keeps it
 * on the cluster, because it may belong to somebody else. So its name is recorded before the works change. When the cluster
 * has applied the new works, a Job cleans the former namespace up, like the Job of a detachment.
 */

type FormerDeps = Pick<ClusterDeps, 'applier' | 'caches' | 'client' | 'delivery' | 'events' | 'logger' | 'templates'>;

const parts: ReadonlySet<string> = new Set(workParts);

/** The namespaces that a work contains. */
export function namespacesOf({ spec }: Pick<ManifestWork, 'spec'> | RenderedWork): string[] {
  return spec.workload.manifests.flatMap(({ kind, metadata }) => (kind === 'Namespace' ? [metadata.name] : []));
}

/** The former namespaces of a cluster that are not cleaned up yet, as recorded on its add-on. */
export function formerNamespacesOf(addOn: ManagedClusterAddOn | undefined): string[] {
  return addOn?.metadata.annotations?.[keys.formerNamespaces]?.split(',').filter(Boolean) ?? [];
}

/** Records the namespaces that the works of a cluster will no longer contain. Call it before the works are written. */
export async function recordFormerNamespaces(
  { caches, applier, client }: Pick<FormerDeps, 'caches' | 'applier' | 'client'>,
  { cluster, signal }: Pick<Enrolment, 'cluster' | 'signal'>,
  rendered: readonly RenderedWork[],
): Promise<void> {
  const addOn = await addOnOf({ caches, applier }, cluster, signal);
  if (addOn === undefined) {
    return;
  }
  const ours = caches.works.list(cluster).filter(({ metadata }) => parts.has(metadata.labels?.[keys.part] ?? ''));
  // The works as they were written last. The cache may not show that yet.
  const works = await Promise.all(ours.map((work) => applier.current(manifestWorks, work.metadata, work, signal)));
  const used = works.flatMap((work) => (work ? namespacesOf(work) : []));
  const desired = new Set(rendered.flatMap(namespacesOf));
  const known = formerNamespacesOf(addOn);
  const former = [...new Set([...known, ...used])].filter((namespace) => !desired.has(namespace)).sort();
  if (!isDeepStrictEqual(former, known)) {
    await writeFormer(client, addOn, former, signal);
  }
}

/**
 * Deletes the work whose Job cleans up a namespace that the cluster is to use again: it would remove the new objects.
 * Call it before the works are written.
 * @throws NotDeliverableError until that work is gone
 */
export async function stopCleaningUsed(
  { caches, applier }: Pick<FormerDeps, 'caches' | 'applier'>,
  { cluster, signal }: Pick<Enrolment, 'cluster' | 'signal'>,
  rendered: readonly RenderedWork[],
): Promise<void> {
  const key = { namespace: cluster, name: formerWork.name };
  const cached = caches.works.get(key);
  if (cached === undefined) {
    return;
  }
  const work = await applier.current(manifestWorks, key, cached, signal);
  const desired = new Set(rendered.flatMap(namespacesOf));
  const used = work === undefined ? [] : cleanedNamespaces(work).filter((namespace) => desired.has(namespace));
  if (work === undefined || used.length === 0) {
    return;
  }
  if (work.metadata.deletionTimestamp === undefined) {
    await applier.remove(manifestWorks, work, signal);
  }
  throw new NotDeliverableError(
    `cluster ${cluster} must first remove ManifestWork ${formerWork.name}, which cleans up namespace ${used.join(', ')} that is to be used again`,
  );
}

/**
 * Cleans up former namespaces once the cluster has applied the new works.
 * @param config workload settings of the cluster
 */
export async function cleanFormerNamespaces(
  { caches, applier, client, templates, delivery, logger, events }: FormerDeps,
  { cluster, foundation, signal }: Enrolment,
  rendered: readonly RenderedWork[],
  config: AddOnConfig,
): Promise<void> {
  const addOn = await addOnOf({ caches, applier }, cluster, signal);
  const [namespace, ...otherNamespaces] = formerNamespacesOf(addOn);
  const key = { namespace: cluster, name: formerWork.name };
  const cached = caches.works.get(key);
  // The usual case. It makes no request to the server.
  if (namespace === undefined && cached === undefined) {
    return;
  }
  const work = await applier.current(manifestWorks, key, cached, signal);
  if (work?.metadata.deletionTimestamp) {
    return; // the deletion triggers another reconcile
  }
  if (addOn === undefined || namespace === undefined) {
    if (work) {
      await applier.remove(manifestWorks, work, signal);
    }
    return;
  }
  const isMoved = rendered.every(({ part, index, spec }) =>
    isApplied(caches.works.get({ namespace: cluster, name: partWorkName(part, index) }), spec),
  );
  if (!isMoved) {
    return;
  }
  const spec = renderCleanUp(templates, {
    namespace,
    otherNamespaces,
    principalNamespace: foundation.namespace,
    image: delivery.cleanUpImage ?? delivery.agentImage,
    pullPolicy: delivery.pullPolicy,
    config,
  });
  if (work === undefined) {
    // The cache may not show an update of a moment ago.
    const now = await client.get(managedClusterAddOns, { namespace: cluster, name: addOnName }, signal);
    if (!isDeepStrictEqual(formerNamespacesOf(now), formerNamespacesOf(addOn))) {
      return;
    }
    logger.info({ cluster, namespaces: [namespace, ...otherNamespaces] }, 'cleaning up namespaces no longer used');
    const metadata = { ...key, ...workMetadata(foundation.key, cluster, formerWork.part) };
    await applier.ensure(manifestWorks, { metadata, spec }, undefined, {
      exact: ['spec.workload'],
      signal,
    });
    return;
  }
  // A Job runs once. Other namespaces or another image need a new Job.
  if (!isDeepStrictEqual(work.spec.workload, spec.workload)) {
    return applier.remove(manifestWorks, work, signal);
  }
  const state = cleanUpState(work);
  if (state === 'complete') {
    await writeFormer(client, addOn, [], signal);
    await applier.remove(manifestWorks, work, signal);
  } else if (state === 'failed') {
    events.warning(
      foundation.gitOpsCluster,
      'CleanUpFailed',
      `the Job that cleans up namespace ${[namespace, ...otherNamespaces].join(', ')} of cluster ${cluster} failed: see the logs of its pods in namespace argocd-agent-addon-former; delete ManifestWork ${cluster}/${formerWork.name} to run it again`,
    );
  }
}

async function addOnOf(
  { caches, applier }: Pick<FormerDeps, 'caches' | 'applier'>,
  cluster: string,
  signal: AbortSignal,
): Promise<ManagedClusterAddOn | undefined> {
  const key = { namespace: cluster, name: addOnName };
  return applier.current(managedClusterAddOns, key, caches.addOns.get(key), signal);
}

async function writeFormer(
  client: KubeClient,
  addOn: ManagedClusterAddOn,
  former: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { resourceVersion } = addOn.metadata;
  const annotations = { [keys.formerNamespaces]: former.join(',') || null };
  await client.mergePatch(
    managedClusterAddOns,
    addOn.metadata,
    { metadata: { resourceVersion, annotations } },
    { fieldManager, signal },
  );
}
