import { randomUUID } from 'node:crypto';
import type { RedisRequest } from '../../../lib/live/index.ts';
import { eventTypes, messageEvent, principalSource, targets, type WireEvent } from '../../../lib/wire/index.ts';
import type { AgentRequests } from '../agent-requests.ts';

/** A command for an agent's Redis, of a client with this connection. */
export type RedisCommand = Omit<RedisRequest, 'uuid'>;

/**
 * Asks an agent's Redis; the answer is its event, unread.
 * @throws NoAnswerError, or the signal's reason
 */
export type AskRedis = (agent: string, command: RedisCommand, signal: AbortSignal) => Promise<WireEvent>;

/** Argo CD's client gives up after 5 s and comes again. */
const answerTimeoutMs = 4_000;

/** Asks agents that are connected to this replica. */
export function askOverStream(exchange: AgentRequests): AskRedis {
  return (agent, command, signal) => {
    const uuid = randomUUID();
    const payload = { uuid, ...command };
    const ids = { resourceId: uuid, eventId: uuid };
    const event = messageEvent(targets.redis, eventTypes.redisRequest, payload, { source: principalSource }, ids);
    return exchange.ask(agent, event, { timeoutMs: answerTimeoutMs, signal });
  };
}
