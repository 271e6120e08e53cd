import { command, createLogger, intFlag, stringFlag } from '../../lib/ops/index.ts';
import { daemonFlags, runDaemon } from '../daemon/index.ts';
import { BasicController } from './controller.ts';
import { leaseName } from './names.ts';

/** Flags of the basic pull model: those of argocd-pull-integration's manager with `--mode=basic`, and some of our own. */
const basicFlags = {
  ...daemonFlags,
  mode: stringFlag({
    usage: 'what to run: basic',
    default: 'basic',
    check: (value) => (value === 'basic' ? undefined : 'must be basic here'),
  }),
  'argocd-namespace': stringFlag({
    usage: "Argo CD's namespace on the hub, which contains the cluster Secrets",
    default: 'argocd',
    env: 'ARGOCD_NAMESPACE',
  }),
  'manifestwork-cleanup-interval': intFlag({
    usage: 'accepted for compatibility; ManifestWorks without an Application are removed at once',
    default: 5,
  }),
};

/** The command that runs the basic pull model until aborted. */
export const basicCommand = command({
  name: 'basic',
  summary: 'Deliver Applications to managed clusters in ManifestWorks (the basic pull model; also --mode=basic)',
  flags: basicFlags,
  run: async (flags, { signal, env, parsed }) => {
    const logger = createLogger({ level: flags['log-level'], format: flags['log-format'], name: 'gitops-controller' });
    for (const warning of parsed.warnings) {
      logger.warn(warning);
    }
    await runDaemon({
      flags,
      env,
      logger,
      leaseName,
      signal,
      make: (client, instance) => {
        const { concurrency: limit, 'argocd-namespace': argoCdNamespace } = flags;
        const controller = new BasicController({ client, logger, instance, argoCdNamespace, concurrency: limit });
        return {
          run: (until) => controller.run(until),
          missing: () => controller.missing(),
          stats: () => controller.stats,
        };
      },
    });
  },
});
