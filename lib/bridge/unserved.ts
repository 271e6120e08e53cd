import { z } from 'zod';
import type { Logger } from '../base/index.ts';
import { dataOf, eventTypes, messageEvent, targets, type WireEvent } from '../wire/index.ts';

/** A peer can make up kinds of events; beyond this number no further kind is logged as a warning. */
const mostKinds = 32;

const meanings: Readonly<Record<string, string>> = {
  [targets.resource]: 'live resources are not served by this version; the request is refused',
  [targets.containerLog]: 'logs are not served by this version; the request is refused',
  [targets.terminal]: 'terminals are not served by this version; the request is refused',
  [targets.redis]: "Argo CD's cache is not served by this version; the request is refused",
  [targets.applicationSet]: 'ApplicationSets are not replicated by this version; the event is skipped',
};

/** Logs events of one peer that this version does not handle: a warning once per kind, then only at level debug. */
export class UnservedEvents {
  readonly #logger: Pick<Logger, 'warn' | 'debug'>;
  readonly #logged = new Set<string>();

  constructor(logger: Pick<Logger, 'warn' | 'debug'>) {
    this.#logger = logger;
  }

  /** Logs the event. The caller acknowledges it. */
  report({ target, type }: WireEvent): void {
    // The types of requests are HTTP methods, which add nothing.
    const kind = target in meanings ? target : `${target}/${type}`;
    const fields = { event_target: target, event_type: type };
    const message = meanings[target] ?? 'an event of this kind is not for this version and is skipped';
    if (this.#logged.has(kind) || this.#logged.size >= mostKinds) {
      this.#logger.debug(fields, message);
      return;
    }
    this.#logged.add(kind);
    this.#logger.warn(fields, message);
  }
}

const uuid = z.string().min(1).max(128);
const resourceRequest = z.looseObject({ uuid });
const redisRequest = z.looseObject({
  uuid,
  connectionUuid: z.string().max(128),
  body: z.looseObject({
    get: z.looseObject({}).nullish(),
    subscribe: z.looseObject({}).nullish(),
    ping: z.looseObject({}).nullish(),
  }),
});

/**
 * The answer of an agent to a request of its principal that it does not serve, so that the caller there need not wait for a
 * timeout: HTTP status 501, or an error of the cache. Undefined for events that are not answered on the stream, and for
 * unreadable ones.
 */
export function refusalOf(event: WireEvent, source: string): WireEvent | undefined {
  try {
    switch (event.target) {
      case targets.resource: {
        const request = dataOf(event, resourceRequest);
        const payload = { uuid: request.uuid, status: 501, resource: JSON.stringify(notImplemented) };
        return messageEvent(targets.resource, eventTypes.response, payload, { source }, { eventId: request.uuid });
      }
      case targets.redis: {
        const request = dataOf(event, redisRequest);
        const { connectionUuid } = request;
        const payload = { uuid: request.uuid, connectionUuid, body: redisRefusal(request.body) };
        return messageEvent(targets.redis, eventTypes.redisResponse, payload, { source }, { eventId: request.uuid });
      }
      default:
        return undefined;
    }
  } catch {
    // An unreadable request names no sender to answer; it is acknowledged like every event.
    return undefined;
  }
}

const notServed = 'not served by this version of the agent';
const notImplemented = {
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  reason: 'NotImplemented',
  message: `live resources are ${notServed}`,
  code: 501,
};

function redisRefusal({ get, subscribe }: z.infer<typeof redisRequest>['body']): object {
  const error = `the cache is ${notServed}`;
  if (get) {
    return { get: { bytes: null, cacheHit: false, error } };
  }
  return subscribe ? { subscribeResponse: { error } } : { pong: {} };
}
