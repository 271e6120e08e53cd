import { z } from 'zod';

// What principals ask agents for live data, and what agents answer: argocd-agent's payloads. Keys marked as ours are additions
// that peers of the original neither send nor look at.

const id = z.string().min(1).max(128);
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value ?? false);
const count = z
  .number()
  .int()
  .nullish()
  .transform((value) => value ?? undefined);
/** Base64 of any length: a value of the cache has megabytes, on which a regular expression would take long. */
const bytes = z
  .string()
  .transform((text, context) => {
    const value = Buffer.from(text, 'base64');
    const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
    // Decoding skips what is no base64.
    if (value.length !== (text.length / 4) * 3 - padding) {
      context.addIssue({ code: 'custom', message: 'is no base64' });
    }
    return value;
  })
  .nullish()
  .transform((value) => value ?? undefined);

/**
 * Whether a user is a service account, by the name that Kubernetes gives it: the only users that requests may be executed
 * as.
 */
export function isServiceAccount(user: string): boolean {
  return /^system:serviceaccount:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/.test(user);
}

/**
 * The type of a request that is to be executed as another user (target `resource`). An extension. Agents that do not know
 * it refuse it: to agents of this project the type is no HTTP method (405), to those of argocd-agent the empty `method`
 * of the payload is none (500).
 */
export const impersonatedType = 'io.argoproj.argocd-agent.event.impersonated-request';

/** A request to the API server of the agent's cluster (target `resource`, the event's type is the HTTP method). */
export const resourceRequest = z.object({
  uuid: id,
  namespace: text,
  name: text,
  subresource: text,
  method: text,
  body: bytes,
  /** The query: of a repeated key the first value. */
  params: z
    .record(z.string(), z.string())
    .nullish()
    .transform((value) => value ?? {}),
  group: text,
  version: text,
  resource: text,
  /** Ours: the path of a discovery document (`isDiscoveryPath`), instead of a resource. */
  document: z.string().max(1_024).optional(),
  /** Ours: the query as it came, without `?`. */
  query: z
    .string()
    .max(64 * 1024)
    .optional(),
  /** Ours: headers that change the answer (`accept`, `content-type`), names in lower case. */
  headers: z.record(z.string(), z.string()).optional(),
  /** Ours: the principal takes an answer of any length over a live stream of logs that carries the same UUID. */
  streams: z.boolean().optional(),
  /** Ours, with {@link impersonatedType} only: the HTTP method, and the user to execute the request as. */
  impersonated: z.object({ method: z.string().max(16), user: z.string().max(400).refine(isServiceAccount) }).optional(),
});

/** See {@link resourceRequest}. */
export type ResourceRequest = z.output<typeof resourceRequest>;

/** The answer to a {@link resourceRequest} (type `response`). */
export const resourceResponse = z.object({
  uuid: id,
  /** HTTP status. A status below 200 announces another answer, so a client would wait for ever. */
  status: z.number().int().min(200).max(599),
  /** The body; originals send it only with status 200, and look at it only then. */
  resource: text,
  /** Extension: the body's media type. An agent that sends it also understands `cancel` events. */
  contentType: z.string().max(256).optional(),
  /** Ours: the body follows over a live stream of logs with the same UUID, which ends where the body ends. */
  streamed: z.boolean().optional(),
  /** Ours: the agent knows {@link impersonatedType}, so the request was not executed with its own rights. */
  impersonated: z.boolean().optional(),
});

/** See {@link resourceResponse}. */
export type ResourceResponse = z.output<typeof resourceResponse>;

/** Extension: cancels the request of this UUID (target `resource`, type {@link cancelType}). */
export const cancelRequest = z.object({ uuid: id });

/** The type of events that cancel a request. An extension; sent only to agents that understand it. */
export const cancelType = 'io.argoproj.argocd-agent.event.cancel';

/** A command for the Redis of the agent's Argo CD (type `redis-request`). */
export const redisRequest = z.object({
  uuid: id,
  /** Identifies the client's connection to the principal; its subscriptions end with it. */
  connectionUuid: z.string().max(128),
  body: z.object({
    get: z.object({ key: z.string().max(8_192) }).nullish(),
    subscribe: z.object({ channel: z.string().max(8_192) }).nullish(),
    ping: z.object({}).nullish(),
  }),
});

/** See {@link redisRequest}. */
export type RedisRequest = z.output<typeof redisRequest>;

/** The answer to a {@link redisRequest}, or a message on a subscribed channel (type `redis-response`). */
export const redisResponse = z.object({
  uuid: id,
  connectionUuid: z.string().max(128),
  body: z.object({
    get: z.object({ bytes, cacheHit: flag, error: text }).nullish(),
    subscribeResponse: z.object({ error: text }).nullish(),
    pushFromSubscribe: z.object({ channelName: text }).nullish(),
    pong: z.object({}).nullish(),
  }),
});

/** See {@link redisResponse}. */
export type RedisResponse = z.output<typeof redisResponse>;

/** Asks for the log of a container (target `containerlog`, the event's type is the HTTP method). */
export const logRequest = z.object({
  uuid: id,
  namespace: z.string().min(1).max(253),
  podName: z.string().min(1).max(253),
  container: text,
  follow: flag,
  tailLines: count,
  sinceSeconds: count,
  sinceTime: text,
  timestamps: flag,
  previous: flag,
  insecureSkipTLSVerifyBackend: flag,
  limitBytes: count,
});

/** See {@link logRequest}. */
export type LogRequest = z.output<typeof logRequest>;

/** Asks for a terminal in a container (target `terminal`, type `terminal-request`). */
export const terminalRequest = z.object({
  uuid: id,
  namespace: z.string().min(1).max(253),
  podName: z.string().min(1).max(253),
  containerName: text,
  command: z
    .array(z.string().max(4_096))
    .max(256)
    .nullish()
    .transform((value) => value ?? []),
  tty: flag,
  stdin: flag,
  stdout: flag,
  stderr: flag,
});

/** See {@link terminalRequest}. */
export type TerminalRequest = z.output<typeof terminalRequest>;
