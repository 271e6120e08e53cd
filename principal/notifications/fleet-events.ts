import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { CloudEvent } from 'cloudevents';
import type { Registry } from 'prom-client';
import { BoundedMap, type Logger, TokenBucket } from '../../lib/base/index.ts';
import { FatalError, HttpSink, instruments, type SinkRequest } from '../../lib/ops/index.ts';
import type { PrincipalFlags } from '../flags.ts';

/** What an event of the fleet is about; its type on the wire has {@link typePrefix} in front. */
export type FleetEventType =
  | 'agent-connected'
  | 'agent-lost'
  | 'agent-refused'
  | 'agent-out-of-step'
  | 'cluster-enrolled'
  | 'cluster-left'
  | 'certificate-expiring'
  | 'events-dropped';

/** Start of the types of all events. */
export const typePrefix = 'io.argoproj.argocd-agent.fleet.';

/** An event before it is sent. */
interface Notice {
  readonly id: string;
  readonly time: string;
  readonly type: FleetEventType;
  readonly subject: string;
  readonly data: object;
}

/** Reports what happens to the fleet. */
export interface FleetNotifications {
  /** Never waits and never throws. Events of one type about one subject are limited to some a minute. */
  report(type: FleetEventType, subject: string, data: object): void;
  /** Sends until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/** An agent that comes and goes, or is refused, again and again does not push out the events of others. */
const rate = { burst: 5, perSecond: 1 / 60 };
const remembered = 10_000;

/**
 * The CloudEvents that the flags ask for, each at least once while the process lives; undefined without a sink. The package
 * `cloudevents` is loaded with the first event.
 * @param capacity events that wait for the sink; further ones are dropped
 * @throws FatalError when the file with the token cannot be read
 */
export function fleetEvents(
  flags: Pick<PrincipalFlags, 'namespace' | 'events-sink-url' | 'events-sink-token-path' | 'events-mode'>,
  registry: Registry,
  logger: Logger,
  capacity = 1_000,
): FleetNotifications | undefined {
  const { 'events-sink-url': url, 'events-mode': mode, namespace } = flags;
  if (url === '') {
    return undefined;
  }
  const notice = (type: FleetEventType, subject: string, data: object): Notice => ({
    id: randomUUID(),
    time: new Date().toISOString(),
    type,
    subject,
    data,
  });
  const sink = new HttpSink<Notice>({
    what: 'events of the fleet',
    url,
    headers: authorizationFrom(flags['events-sink-token-path']),
    encode: async ([first]) => encode(first as Notice, `/argocd-agent/principal/${namespace}`, mode),
    capacity,
    resumed: (dropped) => notice('events-dropped', 'events', { dropped }),
    logger,
  });
  const { counter, gauge } = instruments(registry);
  const reported = counter('argocd_principal_fleet_events_total', 'Events of the fleet, by type', ['type']);
  gauge('argocd_principal_fleet_events_pending', 'Events of the fleet that wait for the sink', () => sink.pending);
  gauge(
    'argocd_principal_fleet_events_lost',
    'Events of the fleet since the start that could not be delivered',
    () => sink.dropped,
  );
  const buckets = new BoundedMap<string, TokenBucket>(remembered);
  return {
    report(type, subject, data) {
      const key = `${type}\n${subject}`;
      const bucket = buckets.get(key) ?? new TokenBucket(rate);
      buckets.set(key, bucket);
      if (bucket.tryTake()) {
        reported.inc({ type });
        sink.add(notice(type, subject, data));
      }
    },
    run: (signal) => sink.run(signal),
  };
}

async function encode({ id, time, type, subject, data }: Notice, source: string, mode: string): Promise<SinkRequest> {
  const { CloudEvent: Event, HTTP } = await import('cloudevents');
  const event: CloudEvent<object> = new Event({ id, time, type: `${typePrefix}${type}`, source, subject, data });
  const { headers, body } = mode === 'structured' ? HTTP.structured(event) : HTTP.binary(event);
  return { headers: headers as Record<string, string>, body: String(body) };
}

function authorizationFrom(path: string): Record<string, string> {
  if (path === '') {
    return {};
  }
  try {
    return { authorization: `Bearer ${readFileSync(path, 'utf8').trim()}` };
  } catch (cause) {
    throw new FatalError(`--events-sink-token-path cannot be read: ${(cause as Error).message}`, { cause });
  }
}
