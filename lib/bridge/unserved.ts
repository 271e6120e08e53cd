import { z } from 'zod';
import type { Logger } from '../base/index.ts';
import { dataOf, eventTypes, messageEvent, targets, type WireEvent } from '../wire/index.ts';

/** Kinds of events that a peer may make up; beyond these it is told no more. */
const mostKinds = 32;

const meanings: Readonly<Record<string, string>> = {
  [targets.resource]: 'live resources are not served by this version; the request is refused',
  [targets.containerLog]: 'logs are not served by this version; the request is refused',
  [targets.terminal]: 'terminals are not served by this version; the request is refused',
  [targets.redis]: "Argo CD's cache is not served by this version; the request is refused",
  [targets.applicationSet]: 'ApplicationSets are not replicated by this version; the event is skipped',
};

/**
 * Events of one peer that this version does nothing about: said in the log once per kind, where operators see it, and
 * answered where somebody waits for an answer.
 */
export class Unserved {
  readonly #logger: Pick<Logger, 'warn' | 'debug'>;
  readonly #told = new Set<string>();

  constructor(logger: Pick<Logger, 'warn' | 'debug'>) {
    this.#logger = logger;
  }

  /** Says it; acknowledging is not its business. */
  met({ target, type }: WireEvent): void {
    // Types of requests are HTTP methods, which say nothing more.
    const kind = target in meanings ? target : `${target}/${type}`;
    const fields = { event_target: target, event_type: type };
    const message = meanings[target] ?? 'an event of this kind is not for this version and is skipped';
    if (this.#told.has(kind) || this.#told.size >= mostKinds) {
      this.#logger.debug(fields, message);
      return;
    }
    this.#told.add(kind);
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
 * What an agent answers to a request of its principal that it does not serve, so that whoever waits there hears it at once:
 * HTTP status 501, or an error of the cache. Undefined for events that want no answer on the stream, and for unreadable ones.
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
    // What cannot be read has no sender to answer to; it is acknowledged like everything else.
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
