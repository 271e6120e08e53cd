import { command, printableLines, UsageError } from '../../lib/ops/index.ts';
import { migrateFlags } from './migrate-flags.ts';

/** `argocd-agent migrate --cluster NAME`: moves a cluster's Applications from the hub's application controller to the agent. */
export const migrateCommand = command({
  name: 'migrate',
  summary: "Move a cluster's Applications from the hub's application controller to its agent, or back",
  flags: migrateFlags,
  run: async (flags, { signal, stdout }) => {
    if (flags.cluster === '') {
      throw new UsageError("--cluster is missing: the cluster's name or URL in the hub's Argo CD");
    }
    if (flags['cluster-kubeconfig'] !== '' && flags['cluster-kubecontext'] === '') {
      throw new UsageError('--cluster-kubeconfig needs --cluster-kubecontext');
    }
    const { migrate } = await import('./migrate.ts');
    await migrate(flags, { signal, say: (line) => stdout(`${printableLines(line)}\n`) });
  },
});
