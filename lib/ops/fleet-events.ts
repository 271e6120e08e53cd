import { randomUUID } from 'node:crypto';
import type { CloudEvent } from 'cloudevents';
import type { Registry } from 'prom-client';
import { BoundedMap, type Logger, TokenBucket } from '../base/index.ts';
import { bearerTokenFrom } from './bearer-token.ts';
import { httpUrl, oneOf } from './checks.ts';
import { stringFlag } from './flags.ts';
import { HttpSink, type SinkRequest } from './http-sink.ts';
import { instruments } from './instruments.ts';

/** What an event of the fleet is about; its type on the wire has {@link fleetEventPrefix} in front. */
export type FleetEventType =
  | 'agent-connected'
  | 'agent-lost'
  | 'agent-refused'
  | 'agent-out-of-step'
  | 'application-out-of-step'
  | 'cluster-enrolled'
  | 'cluster-left'
  | 'cluster-failing'
  | 'cluster-recovered'
  | 'rollout-stopped'
  | 'certificate-expiring'
  | 'events-dropped';

/** Start of the types of all events. */
export const fleetEventPrefix = 'io.argoproj.argocd-agent.fleet.';

/** The flags of a program that has events. `env`: the variable of each, from its name without the program's prefix. */
export function eventSinkFlags(env: (name: string) => { readonly env: string }) {
  return {
    'events-sink-url': stringFlag({
      usage: 'URL that gets what happens to the fleet as CloudEvents over HTTP; empty for none',
      ...env('EVENTS_SINK_URL'),
      check: httpUrl,
    }),
    'events-sink-token-path': stringFlag({
      usage: 'file with the bearer token for --events-sink-url',
      ...env('EVENTS_SINK_TOKEN_PATH'),
    }),
    'events-mode': stringFlag({
      usage: 'how CloudEvents are sent: binary (attributes are headers) or structured (all is one JSON object)',
      default: 'binary',
      ...env('EVENTS_MODE'),
      check: oneOf('binary', 'structured'),
    }),
  };
}

/** An event before it is sent. */
interface Notice {
  readonly id: string;
  readonly time: string;
  readonly type: FleetEventType;
  readonly subject: string;
  readonly data: object;
}

/** Who learns what happens to the fleet. */
export interface FleetReporter {
  /** Never waits and never throws. Events of one type about one subject are limited to some a minute. */
  report(type: FleetEventType, subject: string, data: object): void;
}

/** A message as it stands in the data of an event: the beginning of a long one. */
export function eventMessage(message: string): string {
  return message.slice(0, 1_024);
}

/** Reports what happens to the fleet. */
export interface FleetNotifications extends FleetReporter {
  /** Sends until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/** An agent that comes and goes, or is refused, again and again does not push out the events of others. */
const rate = { burst: 5, perSecond: 1 / 60 };
const remembered = 10_000;

/**
 * The CloudEvents that the flags ask for, each at least once while the process lives; undefined without a sink. The package
 * `cloudevents` is loaded with the first event.
 * @param options.source the CloudEvents attribute: `/argocd-agent/<program>/<namespace>`
 * @param options.metrics start of the names of the program's metrics
 * @param options.capacity events that wait for the sink; further ones are dropped
 * @throws FatalError when the file with the token cannot be read
 */
export function fleetEvents(options: {
  readonly flags: {
    readonly 'events-sink-url': string;
    readonly 'events-sink-token-path': string;
    readonly 'events-mode': string;
  };
  readonly source: string;
  readonly metrics: string;
  readonly registry: Registry;
  readonly logger: Logger;
  readonly capacity?: number;
}): FleetNotifications | undefined {
  const { source, metrics, registry, logger, capacity = 1_000 } = options;
  const { 'events-sink-url': url, 'events-mode': mode, 'events-sink-token-path': tokenPath } = options.flags;
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
    headers: bearerTokenFrom(tokenPath, 'events-sink-token-path'),
    encode: async ([first]) => encode(first as Notice, source, mode),
    capacity,
    resumed: (dropped) => notice('events-dropped', 'events', { dropped }),
    logger,
  });
  const { counter, gauge } = instruments(registry);
  const reported = counter(`${metrics}_fleet_events_total`, 'Events of the fleet, by type', ['type']);
  gauge(`${metrics}_fleet_events_pending`, 'Events of the fleet that wait for the sink', () => sink.pending);
  gauge(
    `${metrics}_fleet_events_lost`,
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
  const event: CloudEvent<object> = new Event({ id, time, type: `${fleetEventPrefix}${type}`, source, subject, data });
  const { headers, body } = mode === 'structured' ? HTTP.structured(event) : HTTP.binary(event);
  return { headers: headers as Record<string, string>, body: String(body) };
}
