import { isDeepStrictEqual } from 'node:util';
import { addOnName, fieldManager, formerWork, keys, workName } from '../hub/names.ts';
import { type ManagedClusterAddOn, type ManifestWork, managedClusterAddOns, manifestWorks } from '../hub/resources.ts';
import type { AddOnConfig } from '../render/addon-config.ts';
import { cleanUpState, renderCleanUp } from '../render/cleanup.ts';
import { type RenderedWork, workParts } from '../render/pack.ts';
import type { ClusterContext } from './cluster-context.ts';
import { isApplied } from './cluster-works.ts';

/*
 * When Argo CD and the agent move to another namespace, the works no longer bring the one that they were in. The work agent
 * leaves it there: it may not be ours. So its name is written down before the works change, and when the cluster has what
 * the works bring now, a Job looks after it, as one does when a cluster is left.
 */

const parts: ReadonlySet<string> = new Set(workParts);

/** The namespaces that a work brings. */
export function namespacesOf({ spec }: Pick<ManifestWork, 'spec'> | RenderedWork): string[] {
  return spec.workload.manifests.flatMap(({ kind, metadata }) => (kind === 'Namespace' ? [metadata.name] : []));
}

/** The namespaces of a cluster that were used once and are not cleaned up yet, as its add-on says. */
export function formerNamespacesOf(addOn: ManagedClusterAddOn | undefined): string[] {
  return addOn?.metadata.annotations?.[keys.formerNamespaces]?.split(',').filter(Boolean) ?? [];
}

/** Writes down which namespaces the works of a cluster bring no longer; to be called before they are written. */
export async function noteFormerNamespaces(context: ClusterContext, rendered: readonly RenderedWork[]): Promise<void> {
  const { cluster, caches, applier, signal } = context;
  const addOn = await addOnOf(context);
  if (addOn === undefined) {
    return;
  }
  const ours = caches.works.list(cluster).filter(({ metadata }) => parts.has(metadata.labels?.[keys.part] ?? ''));
  // As they were written last, even before the cache has seen that.
  const works = await Promise.all(ours.map((work) => applier.current(manifestWorks, work.metadata, work, signal)));
  const used = works.flatMap((work) => (work ? namespacesOf(work) : []));
  const wanted = new Set(rendered.flatMap(namespacesOf));
  const known = formerNamespacesOf(addOn);
  const former = [...new Set([...known, ...used])].filter((namespace) => !wanted.has(namespace)).sort();
  if (!isDeepStrictEqual(former, known)) {
    await writeFormer(context, addOn, former);
  }
}

/**
 * Cleans up namespaces that the works of a cluster bring no longer, once it has applied what they bring now.
 * @param config of the cluster's workloads
 */
export async function cleanFormerNamespaces(
  context: ClusterContext,
  rendered: readonly RenderedWork[],
  config: AddOnConfig,
): Promise<void> {
  const { cluster, caches, applier, client, templates, delivery, foundation, signal, logger } = context;
  const addOn = await addOnOf(context);
  const [namespace, ...otherNamespaces] = formerNamespacesOf(addOn);
  const key = { namespace: cluster, name: formerWork.name };
  const cached = caches.works.get(key);
  // As good as always: nothing is asked of the server for it.
  if (namespace === undefined && cached === undefined) {
    return;
  }
  const work = await applier.current(manifestWorks, key, cached, signal);
  if (work?.metadata.deletionTimestamp) {
    return; // its end leads here again
  }
  if (addOn === undefined || namespace === undefined) {
    if (work) {
      await applier.remove(manifestWorks, work, signal);
    }
    return;
  }
  const isMoved = rendered.every(({ part, index, spec }) =>
    isApplied(caches.works.get({ namespace: cluster, name: workName(part, index) }), spec),
  );
  if (!isMoved) {
    return;
  }
  const spec = renderCleanUp(templates, {
    namespace,
    otherNamespaces,
    principalNamespace: foundation.namespace,
    image: delivery.agentImage,
    pullPolicy: delivery.pullPolicy,
    config,
  });
  if (work === undefined) {
    // The cache may not have heard yet that this was done a moment ago.
    const now = await client.get(managedClusterAddOns, { namespace: cluster, name: addOnName }, signal);
    if (!isDeepStrictEqual(formerNamespacesOf(now), formerNamespacesOf(addOn))) {
      return;
    }
    logger.info({ cluster, namespaces: [namespace, ...otherNamespaces] }, 'cleaning up namespaces no longer used');
    const base = context.ownerMetadata('manifestwork');
    const labels = {
      ...base.labels,
      [keys.gitOpsCluster]: 'true',
      [keys.addOnName]: addOnName,
      [keys.part]: formerWork.part,
    };
    await applier.ensure(manifestWorks, { metadata: { ...key, ...base, labels }, spec }, undefined, {
      exact: ['spec.workload'],
      signal,
    });
    return;
  }
  // A Job runs once: for other namespaces, or from another image, another one is needed.
  if (!isDeepStrictEqual(work.spec.workload, spec.workload)) {
    return applier.remove(manifestWorks, work, signal);
  }
  const state = cleanUpState(work);
  if (state === 'complete') {
    await writeFormer(context, addOn, []);
    await applier.remove(manifestWorks, work, signal);
  } else if (state === 'failed') {
    context.events?.warning(
      foundation.gitOpsCluster,
      'CleanUpFailed',
      `the Job that cleans up namespace ${[namespace, ...otherNamespaces].join(', ')} of cluster ${cluster} failed: see the logs of its pods in namespace argocd-agent-addon-former; delete ManifestWork ${cluster}/${formerWork.name} to run it again`,
    );
  }
}

async function addOnOf({ cluster, caches, applier, signal }: ClusterContext): Promise<ManagedClusterAddOn | undefined> {
  const key = { namespace: cluster, name: addOnName };
  return applier.current(managedClusterAddOns, key, caches.addOns.get(key), signal);
}

async function writeFormer(
  { client, signal }: ClusterContext,
  addOn: ManagedClusterAddOn,
  former: readonly string[],
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
