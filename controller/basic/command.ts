import { warnOfUnreadableEntries } from '../../lib/argocd/index.ts';
import { command, createLogger, intFlag, listFlag, stringFlag } from '../../lib/ops/index.ts';
import { daemonFlags, logOptionsOf, runDaemon } from '../daemon/index.ts';
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
  'application-namespaces': listFlag({
    usage:
      "other namespaces whose Applications are delivered (names, globs, /regular expressions/), as in Argo CD's application.namespaces; their AppProjects must admit namespace and destination",
    env: 'ARGOCD_APPLICATION_NAMESPACES',
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
  ignoresArguments: true,
  run: async (flags, { signal, env, parsed }) => {
    const logger = createLogger({ ...logOptionsOf(flags), name: 'gitops-controller' });
    for (const warning of parsed.warnings) {
      logger.warn(warning);
    }
    warnOfUnreadableEntries('application-namespaces', flags['application-namespaces'], logger);
    await runDaemon({
      flags,
      env,
      logger,
      leaseName,
      signal,
      make: (client, instance) => {
        const controller = new BasicController({
          client,
          logger,
          instance,
          argoCdNamespace: flags['argocd-namespace'],
          applicationNamespaces: flags['application-namespaces'],
          concurrency: flags.concurrency,
        });
        return {
          run: (until) => controller.run(until),
          missing: () => controller.missing(),
          stats: () => controller.stats,
        };
      },
    });
  },
});
