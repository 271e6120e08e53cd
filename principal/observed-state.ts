import type { Registry } from 'prom-client';
import type { Application } from '../lib/argocd/index.ts';
import { propagationOf, statusTime } from '../lib/bridge/index.ts';
import type { KubeObject } from '../lib/kube/index.ts';
import { certificateMetrics } from '../lib/ops/index.ts';
import type { Delivered } from '../lib/sync/index.ts';
import { applicationMetrics } from './application-metrics.ts';
import type { PrincipalCaches } from './caches.ts';
import type { PrincipalCredentials } from './credentials.ts';
import type { PrincipalFlags } from './flags.ts';
import { fleetMetrics, type ObservedAgent } from './fleet-metrics.ts';
import type { HubSynchronisation } from './hub-sync.ts';
import type { PrincipalMetrics } from './metrics.ts';
import { principalFieldManager } from './namespaces.ts';
import type { AgentIntroductions } from './sessions/introductions.ts';
import type { OpenSessions } from './sessions/open-sessions.ts';
import type { PrincipalSettings } from './settings.ts';

/** A longer delay than this is a wrong clock. */
const longestDelayMs = 24 * 3_600_000;

/** Counts the delay of a state that an agent has acknowledged. */
export function countDelivery(metrics: PrincipalMetrics, delivery: Delivered): void {
  const arrived = propagationOf(delivery, principalFieldManager, Date.now());
  if (arrived !== undefined) {
    metrics.propagated('to_cluster', arrived.resourceType, arrived.seconds);
  }
}

/** Registers the metrics that are read from the principal's state at every scrape, and follows the statuses of agents. */
export function observeState(
  registry: Registry,
  sources: {
    readonly flags: PrincipalFlags;
    /** Where certificates for agents come from, unless from Secrets or files. */
    readonly spire: PrincipalSettings['spire'];
    readonly caches: Pick<PrincipalCaches, 'Applications'>;
    readonly credentials: PrincipalCredentials;
    readonly agents: () => readonly string[];
    readonly open: OpenSessions;
    readonly introductions: AgentIntroductions;
    readonly hub: Pick<HubSynchronisation, 'sync' | 'ownerOf'>;
    readonly metrics: PrincipalMetrics;
  },
): void {
  const { flags, spire, caches, credentials, open, introductions, hub, metrics } = sources;
  const ownerOf = (application: KubeObject) => hub.ownerOf(application as unknown as Application);
  fleetMetrics(registry, () =>
    sources.agents().map((agent): ObservedAgent => {
      const { version = '' } = introductions.of(agent) ?? {};
      const session = open.isConnected(agent) ? open.get(agent)?.session : undefined;
      const known = { agent, version, isConnected: session !== undefined, mode: session?.mode ?? '' };
      return session === undefined
        ? known
        : { ...known, certificate: session.peer.certificate, oldestMs: hub.sync.oldestMs(agent) };
    }),
  );
  certificateMetrics(registry, 'argocd_principal_certificate_expiration_timestamp_seconds', () => [
    // The SPIFFE Workload API replaces its short-lived ones itself.
    { certificate: 'server', pem: spire === undefined ? credentials.server?.value?.cert : undefined },
    { certificate: 'resource-proxy', pem: credentials.resourceProxy?.value?.cert },
    { certificate: 'redis-proxy', pem: credentials.redisProxy?.value?.cert },
    { certificate: 'authority', pem: spire === undefined ? credentials.clientTrust?.value : undefined, isTrust: true },
  ]);
  if (flags['application-metrics']) {
    applicationMetrics(registry, flags['application-metrics-labels'], () =>
      caches.Applications.list().map((one) => ({
        application: one as unknown as Application,
        agent: ownerOf(one),
      })),
    );
  }
  caches.Applications.subscribe({
    added: () => undefined,
    updated: (old, now) => {
      const [before = 0, at = 0] = [old, now].map((one) => statusTime((one as { status?: unknown }).status));
      const delayMs = Date.now() - at;
      if (at > before && Math.abs(delayMs) < longestDelayMs && ownerOf(now) !== undefined) {
        metrics.propagated('from_cluster', 'application', Math.max(0, delayMs - 1_000) / 1_000);
      }
    },
    deleted: () => undefined,
  });
}
