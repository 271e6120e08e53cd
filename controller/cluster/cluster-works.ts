import { isDeepStrictEqual } from 'node:util';
import { isConflict } from '../../lib/kube/index.ts';
import {
  addOnName,
  appliedNow,
  cleanUpWork,
  formerWork,
  keys,
  type ManifestWork,
  manifestWorks,
  partWorkName,
} from '../hub/index.ts';
import type { RenderedWork } from '../render/index.ts';
import { type ClusterRelease, versionAnnotations, versionKeys } from '../rollout/index.ts';
import { NotDeliverableError } from './cluster-config.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';
import { configHashAnnotation, configHashes } from './config-status.ts';
import { isOriginal, releaseOriginals } from './original-works.ts';
import { workMetadata } from './owner-metadata.ts';

/**
 * Writes the works of a cluster and deletes those that are no longer desired. Those of argocd-pull-integration go first.
 * @returns whether anything was written
 */
export async function ensureWorks(
  deps: Pick<ClusterDeps, 'applier' | 'caches' | 'client'>,
  { cluster, foundation, signal }: Enrolment,
  rendered: readonly RenderedWork[],
  release: Omit<ClusterRelease, 'crds' | 'isHeld'>,
): Promise<boolean> {
  const { applier, caches } = deps;
  const cleanUp = caches.works.get({ namespace: cluster, name: cleanUpWork.name });
  if (cleanUp) {
    // The cluster was selected again during its detachment: the clean-up Job must not remove the new objects.
    await applier.remove(manifestWorks, cleanUp, signal);
    throw new NotDeliverableError(
      `cluster ${cluster} must first remove ManifestWork ${cleanUpWork.name}, with which it was cleaned up`,
    );
  }
  await releaseOriginals(deps, { cluster, signal });
  const configs = configHashes({ caches, cluster }, caches.addOns.get({ namespace: cluster, name: addOnName }));
  const desired = new Set<string>();
  const errors: Error[] = [];
  let isWritten = false;
  for (const { part, index, spec } of rendered) {
    const name = partWorkName(part, index);
    desired.add(name);
    const { labels, annotations } = workMetadata(foundation.key, cluster, part);
    const work: ManifestWork = {
      metadata: {
        namespace: cluster,
        name,
        labels,
        annotations: {
          ...annotations,
          [configHashAnnotation]: configs,
          ...versionAnnotations(release.version, release),
        },
      },
      spec,
    };
    const live = caches.works.get({ namespace: cluster, name });
    if (live?.metadata.deletionTimestamp) {
      // The work remains from an earlier detachment. Its deletion triggers another reconcile.
      const problem = `cluster ${cluster} must first remove ManifestWork ${name}, which is being deleted`;
      errors.push(new NotDeliverableError(problem));
      continue;
    }
    try {
      const { changed } = await applier.ensure(manifestWorks, work, live, {
        exact: ['spec.workload'],
        createAndMergePatch: ownPlaces,
        signal,
      });
      isWritten ||= changed;
    } catch (error) {
      signal.throwIfAborted();
      if (isConflict(error)) {
        throw error;
      }
      errors.push(new Error(`ManifestWork ${cluster}/${name}: ${(error as Error).message}`, { cause: error }));
    }
  }
  if (errors[0]) {
    throw errors[0];
  }
  const areApplied = rendered.every(({ part, index, spec }) =>
    isApplied(caches.works.get({ namespace: cluster, name: partWorkName(part, index) }), spec),
  );
  for (const work of caches.works.list(cluster)) {
    if (desired.has(work.metadata.name) || work.metadata.labels?.[keys.part] === formerWork.part) {
      continue;
    }
    // What it shares with ours, such as the ArgoCD, stays on the cluster only if ours have it already.
    if (isOriginal(work) && !areApplied) {
      continue;
    }
    await applier.remove(manifestWorks, work, signal);
    isWritten = true;
  }
  return isWritten;
}

/** Fields of a work that are removed when they are no longer desired. */
const ownPlaces = [
  ['metadata', 'annotations', versionKeys.updatedAt],
  ['metadata', 'annotations', versionKeys.reconnects],
  ['metadata', 'annotations', versionKeys.isOver],
  ['spec', 'workload'],
  ['spec', 'manifestConfigs'],
  ['spec', 'deleteOption'],
] as const;

/** Whether a cluster has applied a work with exactly this content. */
export function isApplied(work: ManifestWork | undefined, spec: ManifestWork['spec']): boolean {
  return work !== undefined && isDeepStrictEqual(work.spec.workload, spec.workload) && appliedNow(work) === 'True';
}
