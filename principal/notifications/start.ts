import { X509Certificate } from 'node:crypto';
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/base/index.ts';
import {
  type FleetNotifications,
  fleetEvents,
  type WatchedCertificate,
  watchCertificates,
} from '../../lib/ops/index.ts';
import type { MappedAgents } from '../clusters/mapped-agents.ts';
import type { PrincipalCredentials } from '../credentials.ts';
import type { PrincipalFlags } from '../flags.ts';
import type { OpenSessionsListener } from '../sessions/open-sessions.ts';
import { eventSubject, Presence } from './presence.ts';
import { type WatchedFleet, watchFleet } from './watch.ts';

/** The events of the fleet at work. */
export interface Notifications {
  readonly events: FleetNotifications;
  /** Has to learn which agents connect. */
  readonly presence: OpenSessionsListener;
  /** Resolves after the program's signal, when the last events were sent or given up. */
  readonly ended: Promise<void>;
}

/**
 * Starts the events of the fleet; undefined without `--events-sink-url`.
 * @throws FatalError when the file with the token cannot be read
 */
export function startNotifications(fleet: {
  readonly flags: PrincipalFlags;
  readonly registry: Registry;
  readonly agents: Pick<MappedAgents, 'subscribe' | 'has'>;
  readonly credentials: PrincipalCredentials;
  /** The version that an agent reported. */
  readonly versionOf: (agent: string) => string;
  /** The connected agents, and for how long the oldest change of each has waited. */
  readonly connected: WatchedFleet['agents'];
  /** The Applications of an agent whose changes have waited for long. */
  readonly lateApplications: WatchedFleet['lateApplications'];
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Notifications | undefined {
  const { flags, registry, agents, credentials, logger, signal } = fleet;
  const source = `/argocd-agent/principal/${flags.namespace}`;
  const events = fleetEvents({ flags, source, metrics: 'argocd_principal', registry, logger });
  if (events === undefined) {
    return undefined;
  }
  const presence = new Presence(events);
  agents.subscribe({
    mapped: (agent) => events.report('cluster-enrolled', eventSubject(agent), { agent }),
    unmapped: (agent) => events.report('cluster-left', eventSubject(agent), { agent }),
  });
  const watched = {
    agents: fleet.connected,
    lateApplications: fleet.lateApplications,
    outOfStepAfterMs: flags['events-out-of-step-after'],
  };
  return {
    events,
    presence: {
      connected: (agent, mode) => agents.has(agent) && presence.connected(agent, mode, fleet.versionOf(agent)),
      disconnected: (agent) => agents.has(agent) && presence.disconnected(agent),
    },
    ended: Promise.all([
      events.run(signal),
      watchFleet(events, watched, signal),
      watchCertificates(events, () => certificatesOf(credentials), signal),
    ]).then(() => presence.close()),
  };
}

/** The certificates that the principal shows to others. */
function certificatesOf({ server, resourceProxy, redisProxy }: PrincipalCredentials): WatchedCertificate[] {
  const pairs = { server, 'resource-proxy': resourceProxy, 'redis-proxy': redisProxy };
  return Object.entries(pairs).flatMap(([certificate, pair]) =>
    pair?.value === undefined ? [] : [{ certificate, notAfter: new X509Certificate(pair.value.cert).validToDate }],
  );
}
