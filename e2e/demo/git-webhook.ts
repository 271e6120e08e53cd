import { watch } from 'node:fs/promises';
import { join } from 'node:path';
import { isNotFound, type KubeClient } from '../../lib/kube/index.ts';
import { fleetApplications, guestbookRepository, type SharedFleet } from '../fleet/index.ts';

/**
 * Does for the guestbook's repository what Argo CD does when a Git host calls its webhook: after each commit the Applications
 * of the hub are refreshed. Argo CD's own webhook does not know repositories at `git://` addresses. Ends with the signal.
 */
export async function refreshOnCommit({ hub, git }: SharedFleet, signal: AbortSignal): Promise<void> {
  const changes = watch(join(git.folder(guestbookRepository), '.git/refs/heads'), { signal });
  try {
    for await (const { filename } of changes) {
      if (filename === 'main') {
        await refreshAll(hub.client);
      }
    }
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  }
}

async function refreshAll(hub: KubeClient): Promise<void> {
  const refresh = { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } };
  for (const { metadata } of await hub.list(fleetApplications)) {
    try {
      await hub.mergePatch(fleetApplications, metadata, refresh);
    } catch (error) {
      // It went meanwhile, with its cluster.
      if (!isNotFound(error)) {
        throw error;
      }
    }
  }
}
