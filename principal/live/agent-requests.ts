import { onAbort } from '../../lib/base/index.ts';
import type { WireEvent } from '../../lib/wire/index.ts';

/** Why there is no answer. */
export type NoAnswer =
  /** The agent is not connected, or its connection ended before it answered. */
  | 'disconnected'
  | 'timeout'
  /** The connection to the replica that holds the agent ended before the answer. */
  | 'lost'
  /** Too many requests to this agent are open. */
  | 'busy';

/** An agent did not answer a request. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly reason: NoAnswer;

  constructor(reason: NoAnswer, agent: string, options?: ErrorOptions) {
    super(texts[reason](agent), options);
    this.reason = reason;
  }
}

const texts: Readonly<Record<NoAnswer, (agent: string) => string>> = {
  disconnected: (agent) => `agent ${agent} is not connected`,
  timeout: (agent) => `agent ${agent} is connected, but did not answer in time`,
  lost: (agent) => `the connection to the principal that has agent ${agent} ended before the answer`,
  busy: (agent) => `too many requests to agent ${agent} are under way`,
};

/** Whether a text is one of the reasons. */
export function isNoAnswer(text: unknown): text is NoAnswer {
  return typeof text === 'string' && Object.hasOwn(texts, text);
}

/** Requests to one agent that may wait for their answers at the same time. */
const mostPerAgent = 1_000;

interface Pending {
  readonly agent: string;
  readonly settle: (answer: WireEvent | NoAnswerError) => void;
}

/**
 * Requests to agents and their answers, matched by the request's UUID, which is its event id. A request is sent once, on the
 * current stream of the agent. When that stream ends its result is unknown, and executing it twice could be worse than not
 * at all. An answer counts only when it comes from the agent that was asked.
 */
export class AgentRequests {
  readonly #send: (agent: string, event: WireEvent) => boolean;
  readonly #pending = new Map<string, Pending>();
  readonly #underWay = new Map<string, Set<string>>();

  /** @param send puts an event on the agent's stream; false when it has none */
  constructor(send: (agent: string, event: WireEvent) => boolean) {
    this.#send = send;
  }

  /** How many requests to the agent wait for their answer. */
  underWay(agent: string): number {
    return this.#underWay.get(agent)?.size ?? 0;
  }

  /**
   * Sends a request and waits for the answer.
   * @throws NoAnswerError, or the signal's reason
   */
  ask(agent: string, request: WireEvent, options: { timeoutMs: number; signal: AbortSignal }): Promise<WireEvent> {
    const { signal, timeoutMs } = options;
    const { eventId } = request;
    signal.throwIfAborted();
    const underWay = this.#underWay.get(agent) ?? new Set();
    if (underWay.size >= mostPerAgent) {
      return Promise.reject(new NoAnswerError('busy', agent));
    }
    return new Promise((resolve, reject) => {
      const finish = () => {
        clearTimeout(timer);
        unlisten();
        this.#pending.delete(eventId);
        underWay.delete(eventId);
        if (underWay.size === 0) {
          this.#underWay.delete(agent);
        }
      };
      const settle = (answer: WireEvent | NoAnswerError) => {
        finish();
        if (answer instanceof NoAnswerError) {
          reject(answer);
        } else {
          resolve(answer);
        }
      };
      const timer = setTimeout(() => settle(new NoAnswerError('timeout', agent)), timeoutMs);
      const unlisten = onAbort(signal, () => {
        finish();
        reject(signal.reason);
      });
      this.#pending.set(eventId, { agent, settle });
      underWay.add(eventId);
      this.#underWay.set(agent, underWay);
      if (!this.#send(agent, request)) {
        settle(new NoAnswerError('disconnected', agent));
      }
    });
  }

  /** Takes an answer, without reading it. False when no request waits for it: it is late, or comes from another agent. */
  answered(agent: string, answer: WireEvent): boolean {
    const pending = this.#pending.get(answer.eventId);
    if (pending?.agent !== agent) {
      return false;
    }
    pending.settle(answer);
    return true;
  }

  /** The agent's stream has ended: its open requests fail. */
  disconnected(agent: string): void {
    for (const id of [...(this.#underWay.get(agent) ?? [])]) {
      this.#pending.get(id)?.settle(new NoAnswerError('disconnected', agent));
    }
  }
}
