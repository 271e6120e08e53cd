import { boolFlag, command, createLogger, intFlag, stringFlag } from '../../lib/ops/index.ts';
import { runDaemon } from '../daemon.ts';
import { controllerFlags } from '../flags.ts';
import { BasicController } from './controller.ts';
import { leaseName } from './names.ts';

const {
  kubeconfig,
  kubecontext,
  concurrency,
  'log-level': logLevel,
  'log-format': logFormat,
  'metrics-bind-address': metricsAddress,
  'metrics-secure': metricsSecure,
  'health-probe-bind-address': healthAddress,
  'leader-elect': leaderElect,
  'leader-election-namespace': leaderNamespace,
  'leader-election-lease-duration': leaseDuration,
  'leader-election-renew-deadline': renewDeadline,
  'leader-election-retry-period': retryPeriod,
  'enable-http2': http2,
} = controllerFlags;

/** Flags of the basic pull model: names and defaults of the original's manager with `--mode=basic`, and a few of our own. */
const basicFlags = {
  kubeconfig,
  kubecontext,
  'log-level': logLevel,
  'log-format': logFormat,
  mode: stringFlag({
    usage: 'what to run: basic',
    default: 'basic',
    check: (value) => (value === 'basic' ? undefined : 'must be basic here'),
  }),
  'argocd-namespace': stringFlag({
    usage: "Argo CD's namespace on the hub, for cluster Secrets",
    default: 'argocd',
    env: 'ARGOCD_NAMESPACE',
  }),
  'manifestwork-cleanup-interval': intFlag({
    usage: 'accepted for compatibility; works without an Application are removed at once',
    default: 5,
  }),
  'metrics-bind-address': metricsAddress,
  'metrics-secure': metricsSecure,
  'health-probe-bind-address': healthAddress,
  'leader-elect': leaderElect,
  'leader-election-namespace': leaderNamespace,
  'leader-election-lease-duration': leaseDuration,
  'leader-election-renew-deadline': renewDeadline,
  'leader-election-retry-period': retryPeriod,
  concurrency,
  'enable-http2': boolFlag({ usage: http2.usage, hidden: true }),
};

/** Runs the basic pull model until aborted. */
export const basicCommand = command({
  name: 'basic',
  summary: 'Bring Applications to managed clusters in ManifestWorks (the basic pull model; also --mode=basic)',
  flags: basicFlags,
  run: async (flags, { signal, env, parsed }) => {
    const logger = createLogger({ level: flags['log-level'], format: flags['log-format'], name: 'gitops-controller' });
    for (const warning of parsed.warnings) logger.warn(warning);
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
