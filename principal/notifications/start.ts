import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/base/index.ts';
import type { MappedAgents } from '../clusters/mapped-agents.ts';
import type { PrincipalCredentials } from '../credentials.ts';
import type { PrincipalFlags } from '../flags.ts';
import type { OpenSessionsListener } from '../sessions/open-sessions.ts';
import { type FleetNotifications, fleetEvents } from './fleet-events.ts';
import { eventSubject, Presence } from './presence.ts';
import { watchFleet } from './watch.ts';

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
  readonly connected: () => Iterable<{ readonly agent: string; readonly oldestMs: number }>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Notifications | undefined {
  const { flags, registry, agents, credentials, logger, signal } = fleet;
  const events = fleetEvents(flags, registry, logger);
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
    certificates: () => [
      { certificate: 'server', pem: credentials.server?.value?.cert },
      { certificate: 'resource-proxy', pem: credentials.resourceProxy?.value?.cert },
      { certificate: 'redis-proxy', pem: credentials.redisProxy?.value?.cert },
    ],
    outOfStepAfterMs: flags['events-out-of-step-after'],
  };
  return {
    events,
    presence: {
      connected: (agent, mode) => agents.has(agent) && presence.connected(agent, mode, fleet.versionOf(agent)),
      disconnected: (agent) => agents.has(agent) && presence.disconnected(agent),
    },
    ended: Promise.all([events.run(signal), watchFleet(events, watched, signal)]).then(() => presence.close()),
  };
}
