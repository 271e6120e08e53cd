import {
  appliedNow,
  fieldManager,
  hasLetGo,
  isLettingGo,
  isTemplateWork,
  keys,
  letGo,
  type ManifestWork,
  manifestWorks,
} from '../hub/index.ts';
import { NotDeliverableError } from './cluster-config.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';

/** Whether argocd-pull-integration made a work: it has no part. */
export function isOriginal({ metadata }: ManifestWork): boolean {
  return metadata.labels?.[keys.part] === undefined;
}

/**
 * Takes a cluster over from the works of argocd-pull-integration, so that at no time two works write the same object. The
 * cluster lets the objects go that ours go on with, such as the ArgoCD. The work with the add-on's program is deleted: the
 * program writes the agent's certificate and argocd-operator.
 * @throws NotDeliverableError until the cluster has done that
 */
export async function releaseOriginals(
  { applier, caches, client }: Pick<ClusterDeps, 'applier' | 'caches' | 'client'>,
  { cluster, signal }: Pick<Enrolment, 'cluster' | 'signal'>,
): Promise<void> {
  const writing: string[] = [];
  for (const work of caches.works.list(cluster).filter(isOriginal)) {
    const { name } = work.metadata;
    if (isTemplateWork(name) || hasLetGo(work)) {
      await applier.remove(manifestWorks, work, signal);
    } else if (!isLettingGo(work)) {
      await client.mergePatch(manifestWorks, work.metadata, letGo, { fieldManager, signal });
    } else if (appliedNow(work) === 'False') {
      // It writes nothing. Ours may bring what it lacks, such as the right to its objects.
      continue;
    }
    writing.push(name);
  }
  if (writing.length > 0) {
    throw new NotDeliverableError(
      `cluster ${cluster} must first let go of argocd-pull-integration's ManifestWork ${writing.sort().join(', ')}`,
    );
  }
}
