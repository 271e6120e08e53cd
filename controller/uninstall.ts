import { setTimeout as delay } from 'node:timers/promises';
import { findCondition, KubeClient } from '../lib/kube/index.ts';
import { command, FatalError } from '../lib/ops/index.ts';
import { uninstallFlags } from './flags.ts';
import { connectionOf } from './main.ts';
import { gitOpsClusters } from './resources.ts';

/** Deletes a GitOpsCluster and waits until the running controller has cleaned up its clusters; for use before an uninstallation. */
export const uninstallCommand = command({
  name: 'uninstall',
  summary: 'Delete a GitOpsCluster and wait until its clusters are cleaned up',
  flags: uninstallFlags,
  run: async (flags, { signal, stdout }) => {
    const client = KubeClient.load(connectionOf(flags));
    const key = { namespace: flags.namespace, name: flags.name };
    const deadline = Date.now() + flags.timeout;
    try {
      await client.delete(gitOpsClusters, key, { signal });
      let said = '';
      for (;;) {
        const left = await client.get(gitOpsClusters, key, signal);
        if (left === undefined) break;
        const message =
          findCondition(left.status?.conditions, 'RemovedClustersCleanedUp')?.message ?? 'waiting for the controller';
        if (message !== said) stdout(`${message}\n`);
        said = message;
        if (Date.now() > deadline) {
          throw new FatalError(
            `GitOpsCluster ${key.namespace}/${key.name} is still there: ${message}. To go on without clusters that do not answer, annotate it with apps.open-cluster-management.io/force-detach=true`,
          );
        }
        await delay(500, undefined, { signal });
      }
      stdout(`GitOpsCluster ${key.namespace}/${key.name} is gone\n`);
    } finally {
      await client.close();
    }
  },
});
