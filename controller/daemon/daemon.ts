import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/base/index.ts';
import { KubeClient, runWithLease } from '../../lib/kube/index.ts';
import {
  FatalError,
  type FleetNotifications,
  type FleetReporter,
  type HttpEndpoint,
  serveHealth,
  serveMetrics,
  UsageError,
} from '../../lib/ops/index.ts';
import { controllerRegistry, type ObservedState } from './metrics.ts';

/** A program that runs until aborted, or while it is the leader. */
export interface Daemon extends ObservedState {
  run(signal: AbortSignal): Promise<void>;
  /** Kinds whose cache is not complete yet. Empty once reconciles run. */
  missing(): string[];
}

/** The flags that all daemons have in common. */
export interface DaemonFlags {
  kubeconfig: string;
  kubecontext: string;
  'metrics-bind-address': string;
  'health-probe-bind-address': string;
  'leader-elect': boolean;
  'leader-election-namespace': string;
  'leader-election-lease-duration': number;
  'leader-election-renew-deadline': number;
  'leader-election-retry-period': number;
}

/** Options of {@link runDaemon}. */
export interface DaemonOptions {
  readonly flags: DaemonFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  readonly leaseName: string;
  readonly signal: AbortSignal;
  /** Makes the daemon when this process becomes the leader. `instance` is the name of the process. */
  readonly make: (client: KubeClient, instance: string, fleetEvents: FleetReporter | undefined) => Daemon;
  /** The events of the fleet, if they are wanted. Default: there are none. */
  readonly fleetEvents?: (registry: Registry, namespace: string) => FleetNotifications | undefined;
}

/** Runs a daemon until aborted, with health and metrics servers, and with leader election if the flags enable it. */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { flags, env, logger, signal } = options;
  const client = KubeClient.load(connectionOf(flags));
  const instance = env.POD_NAME || `${hostname()}-${randomBytes(3).toString('hex')}`;
  let daemon: Daemon | undefined;
  const endpoints: HttpEndpoint[] = [];
  const registry = controllerRegistry(() => daemon);
  const namespace = flags['leader-election-namespace'] || client.namespace;
  const fleetEvents = options.fleetEvents?.(registry, namespace ?? '');
  const ended = new AbortController();
  const sending = fleetEvents?.run(ended.signal);
  const run = async (working: KubeClient, until: AbortSignal) => {
    daemon = options.make(working, instance, fleetEvents);
    await daemon.run(until);
  };
  try {
    const health = parseBindAddress(flags['health-probe-bind-address'], 'health-probe-bind-address');
    if (health) {
      const readyz = () => {
        // A process that waits to become the leader is ready.
        const missing = daemon?.missing() ?? [];
        return missing.length === 0 ? { ok: true } : { ok: false, text: `waiting for ${missing.join(', ')}` };
      };
      endpoints.push(await serveHealth({ ...health, logger, healthz: () => ({ ok: true }), readyz }));
    }
    const metrics = parseBindAddress(flags['metrics-bind-address'], 'metrics-bind-address');
    if (metrics) {
      endpoints.push(await serveMetrics({ ...metrics, registry, logger }));
    }
    if (!flags['leader-elect']) {
      await run(client, signal);
      return;
    }
    if (!namespace) {
      throw new FatalError('leader election needs --leader-election-namespace or POD_NAMESPACE');
    }
    await runWithLease({
      client,
      namespace,
      name: options.leaseName,
      identity: `${instance}_${randomBytes(4).toString('hex')}`,
      leaseDurationMs: flags['leader-election-lease-duration'],
      renewDeadlineMs: flags['leader-election-renew-deadline'],
      retryPeriodMs: flags['leader-election-retry-period'],
      signal,
      // The Lease has its own connections: queued requests of the reconciles must not delay its renewal.
      lead: async (leading, fence) => {
        const working = KubeClient.load({ ...connectionOf(flags), beforeWrite: fence });
        try {
          await run(working, leading);
        } finally {
          await working.close();
        }
      },
      onLeader: (leader) => logger.info({ leader }, 'a leader is elected'),
      logger,
    });
  } finally {
    ended.abort();
    await Promise.all([sending, ...endpoints.map((endpoint) => endpoint.close())]);
    await client.close();
  }
}

/** Connection settings for the hub, from the flags. */
export function connectionOf(flags: { kubeconfig: string; kubecontext: string }): {
  kubeconfig?: string;
  context?: string;
} {
  return {
    ...(flags.kubeconfig ? { kubeconfig: flags.kubeconfig } : {}),
    ...(flags.kubecontext ? { context: flags.kubecontext } : {}),
  };
}

/** Parses a bind address as controller-runtime does: `:port`, `host:port`, or `0` for none (undefined). */
export function parseBindAddress(text: string, flag: string): { port: number; host?: string } | undefined {
  if (text === '0' || text === '') {
    return undefined;
  }
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65535) {
    throw new UsageError(`--${flag}: ${JSON.stringify(text)} is no address like :8081, or 0 for none`);
  }
  const host = match[1] ?? match[2];
  return { port, ...(host ? { host } : {}) };
}
