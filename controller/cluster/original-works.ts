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
 * cluster lets the objects go that ours go on with, such as the ArgoCD. Then the work with the add-on's program is deleted:
 * the program writes the agent's certificate and argocd-operator.
 * @throws NotDeliverableError until the cluster has done that
 */
export async function releaseOriginals(
  { applier, caches, client }: Pick<ClusterDeps, 'applier' | 'caches' | 'client'>,
  { cluster, signal }: Pick<Enrolment, 'cluster' | 'signal'>,
): Promise<void> {
  const writing: string[] = [];
  const originals = caches.works.list(cluster).filter(isOriginal);
  const isTemplate = ({ metadata }: ManifestWork) => isTemplateWork(metadata.name);
  for (const work of originals.filter((one) => !isTemplate(one))) {
    if (hasLetGo(work)) {
      await applier.remove(manifestWorks, work, signal);
    } else if (!isLettingGo(work)) {
      await client.mergePatch(manifestWorks, work.metadata, letGo, { fieldManager, signal });
    } else if (appliedNow(work) === 'False') {
      // It writes nothing. Ours may bring what it lacks, such as the right to its objects.
      continue;
    }
    writing.push(work.metadata.name);
  }
  // The add-on's work may have the right to the other works' objects. Without it they could not be let go, and would be
  // written again as soon as ours bring it back.
  for (const work of writing.length > 0 ? [] : originals.filter(isTemplate)) {
    await applier.remove(manifestWorks, work, signal);
    writing.push(work.metadata.name);
  }
  if (writing.length > 0) {
    throw new NotDeliverableError(
      `cluster ${cluster} must first let go of argocd-pull-integration's ManifestWork ${writing.sort().join(', ')}`,
    );
  }
}
