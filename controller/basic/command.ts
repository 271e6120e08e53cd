import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Gauge } from 'prom-client';
import { KubeClient, runWithLease, type WorkQueueStats } from '../../lib/kube/index.ts';
import {
  boolFlag,
  command,
  createLogger,
  createRegistry,
  type Endpoint,
  FatalError,
  intFlag,
  serveHealth,
  serveMetrics,
  stringFlag,
} from '../../lib/ops/index.ts';
import { controllerFlags } from '../flags.ts';
import { addressOf, connectionOf } from '../main.ts';
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
    const client = KubeClient.load(connectionOf(flags));
    const instance = env.POD_NAME || `${hostname()}-${randomBytes(3).toString('hex')}`;
    let controller: BasicController | undefined;
    const endpoints: Endpoint[] = [];
    try {
      const health = addressOf(flags['health-probe-bind-address'], 'health-probe-bind-address');
      if (health) {
        const readyz = () => {
          // A controller that waits for its turn is as ready as it can be.
          const missing = controller?.missing() ?? [];
          return missing.length === 0 ? { ok: true } : { ok: false, text: `waiting for ${missing.join(', ')}` };
        };
        endpoints.push(await serveHealth({ ...health, healthz: () => ({ ok: true }), readyz }));
      }
      const metrics = addressOf(flags['metrics-bind-address'], 'metrics-bind-address');
      if (metrics) endpoints.push(await serveMetrics({ ...metrics, registry: registryOf(() => controller?.stats) }));
      const lead = async (leading: AbortSignal) => {
        controller = new BasicController({
          client,
          logger,
          instance,
          argoCdNamespace: flags['argocd-namespace'],
          concurrency: flags.concurrency,
        });
        await controller.run(leading);
      };
      if (!flags['leader-elect']) {
        await lead(signal);
        return;
      }
      const namespace = flags['leader-election-namespace'] || client.namespace;
      if (!namespace) throw new FatalError('leader election needs --leader-election-namespace or POD_NAMESPACE');
      await runWithLease({
        client,
        namespace,
        name: leaseName,
        identity: `${instance}_${randomBytes(4).toString('hex')}`,
        leaseDurationMs: flags['leader-election-lease-duration'],
        renewDeadlineMs: flags['leader-election-renew-deadline'],
        retryPeriodMs: flags['leader-election-retry-period'],
        signal,
        lead,
        onLeader: (leader) => logger.info({ leader }, 'leader'),
        logger,
      });
    } finally {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
      await client.close();
    }
  },
});

function registryOf(stats: () => Readonly<Record<string, WorkQueueStats>> | undefined) {
  const registry = createRegistry();
  const figures = {
    done: 'Reconciles that ended well',
    failed: 'Reconciles that failed and are tried again',
    retrying: 'Objects whose last reconcile failed',
  } as const;
  for (const [field, help] of Object.entries(figures) as [keyof typeof figures, string][]) {
    new Gauge({
      name: `gitops_controller_${field === 'retrying' ? 'keys' : 'reconciles'}_${field}`,
      help,
      labelNames: ['queue'],
      registers: [registry],
      collect() {
        for (const [queue, now] of Object.entries(stats() ?? {})) this.set({ queue }, now[field]);
      },
    });
  }
  return registry;
}
