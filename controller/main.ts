import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Gauge } from 'prom-client';
import { KubeClient, runWithLease } from '../lib/kube/index.ts';
import {
  command,
  createLogger,
  createRegistry,
  type Endpoint,
  FatalError,
  serveHealth,
  serveMetrics,
  UsageError,
} from '../lib/ops/index.ts';
import { cleanUp } from './clean-up.ts';
import { Controller } from './controller.ts';
import type { DeliverySettings } from './delivery.ts';
import { controllerFlags } from './flags.ts';

/** Lease of the original's controller: the two never work on one hub at the same time. */
const leaseName = '7310a56a.open-cluster-management.io';

/** Runs the controller until aborted. */
export const controllerCommand = command({
  name: 'controller',
  summary: 'Enroll the managed clusters that GitOpsClusters select (the default command)',
  flags: controllerFlags,
  run: async (flags, { signal, env, parsed }) => {
    const logger = createLogger({ level: flags['log-level'], format: flags['log-format'], name: 'gitops-controller' });
    for (const warning of parsed.warnings) logger.warn(warning);
    const client = KubeClient.load(connectionOf(flags));
    if (flags.mode === 'cleanup') {
      const timeout = AbortSignal.timeout(flags['cleanup-timeout']);
      try {
        await cleanUp({
          client,
          namespace: flags['argocd-namespace'],
          otherNamespaces: flags['cleanup-namespaces'].split(',').filter(Boolean),
          logger,
          signal: AbortSignal.any([signal, timeout]),
        });
      } finally {
        await client.close();
      }
      return;
    }
    const instance = env.POD_NAME || `${hostname()}-${randomBytes(3).toString('hex')}`;
    let controller: Controller | undefined;
    const endpoints: Endpoint[] = [];
    try {
      const health = addressOf(flags['health-probe-bind-address'], 'health-probe-bind-address');
      if (health) {
        endpoints.push(
          await serveHealth({
            ...health,
            healthz: () => ({ ok: true }),
            readyz: () => {
              // A controller that waits for its turn is as ready as it can be.
              const missing = controller?.missing() ?? [];
              return missing.length === 0 ? { ok: true } : { ok: false, text: `waiting for ${missing.join(', ')}` };
            },
          }),
        );
      }
      const metrics = addressOf(flags['metrics-bind-address'], 'metrics-bind-address');
      if (metrics) endpoints.push(await serveMetrics({ ...metrics, registry: registryOf(() => controller) }));
      const lead = async (leading: AbortSignal, working: KubeClient) => {
        controller = new Controller({
          client: working,
          logger,
          delivery: deliveryOf(flags),
          instance,
          concurrency: flags.concurrency,
          drainMs: flags['drain-timeout'],
        });
        await controller.run(leading);
      };
      if (!flags['leader-elect']) {
        await lead(signal, client);
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
        // On connections of its own: however many requests the work has waiting, the lease is renewed in time.
        lead: async (leading, fence) => {
          const working = KubeClient.load({ ...connectionOf(flags), beforeWrite: fence });
          try {
            await lead(leading, working);
          } finally {
            await working.close();
          }
        },
        onLeader: (leader) => logger.info({ leader }, 'leader'),
        logger,
      });
    } finally {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
      await client.close();
    }
  },
});

/** How to reach the hub, from the flags. */
export function connectionOf(flags: { kubeconfig: string; kubecontext: string }): {
  kubeconfig?: string;
  context?: string;
} {
  return {
    ...(flags.kubeconfig ? { kubeconfig: flags.kubeconfig } : {}),
    ...(flags.kubecontext ? { context: flags.kubecontext } : {}),
  };
}

/** What is delivered, from the flags. */
export function deliveryOf(flags: {
  'agent-image': string;
  'argocd-image': string;
  'redis-image': string;
  'operator-image': string;
  'image-pull-policy': string;
}): DeliverySettings {
  if (!flags['agent-image']) {
    throw new UsageError('--agent-image (or CONTROLLER_IMAGE) must say which image the agents on managed clusters run');
  }
  return {
    agentImage: flags['agent-image'],
    pullPolicy: flags['image-pull-policy'],
    argoCdImage: flags['argocd-image'] || undefined,
    redisImage: flags['redis-image'] || undefined,
    operatorImage: flags['operator-image'] || undefined,
  };
}

/** A bind address as controller-runtime takes it: `:port`, `host:port`, `0` for none. */
export function addressOf(text: string, flag: string): { port: number; host?: string } | undefined {
  if (text === '0' || text === '') return undefined;
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65535)
    throw new UsageError(`--${flag}: ${JSON.stringify(text)} is no address like :8081, or 0 for none`);
  const host = match[1] ?? match[2];
  return { port, ...(host ? { host } : {}) };
}

function registryOf(controller: () => Controller | undefined) {
  const registry = createRegistry();
  const figures = {
    gitops_controller_reconciles_done: 'Reconciles that ended well',
    gitops_controller_reconciles_failed: 'Reconciles that failed and are tried again',
    gitops_controller_keys_retrying: 'Objects whose last reconcile failed',
  } as const;
  const field = { done: 'done', failed: 'failed', retrying: 'retrying' } as const;
  for (const [name, help] of Object.entries(figures)) {
    const which = Object.values(field).find((one) => name.endsWith(one)) ?? 'done';
    new Gauge({
      name,
      help,
      labelNames: ['queue'],
      registers: [registry],
      collect() {
        const stats = controller()?.stats;
        if (!stats) return;
        this.set({ queue: 'gitopsclusters' }, stats.fleets[which]);
        this.set({ queue: 'clusters' }, stats.clusters[which]);
      },
    });
  }
  return registry;
}
