import type { ApplicationMessage } from '../../peer/messages.ts';

/** Names not in use whose last message may be remembered. */
const mostUnused = 4_096;
/** Words about one name that are remembered. */
const mostPerName = 8;

/**
 * An agent's last message about each name. Asked about it, a Go agent repeats the last under the same id, which is then
 * an answer and no copy; of anything earlier it is a copy that comes late.
 */
export class MessageHistory {
  readonly #isInUse: (name: string) => boolean;
  readonly #received = new Map<string, Received>();
  readonly #inUse: () => number;

  constructor(options: { isInUse: (name: string) => boolean; inUse: () => number }) {
    this.#isInUse = options.isInUse;
    this.#inUse = options.inUse;
  }

  /** What a message is: a new one, one that is to be processed again, or an earlier one, which is not processed. */
  is(message: ApplicationMessage): 'new' | 'again' | 'late' {
    const received = this.#received.get(message.object.metadata.name);
    const id = stateId(message);
    if (received?.ids.includes(id) !== true) {
      return 'new';
    }
    // That there is no such Application may be the answer time and again, whatever the agent has said in between.
    const isAnswer = message.type === 'delete' && received.isAsked;
    return received.ids.at(-1) === id || isAnswer ? 'again' : 'late';
  }

  /** Whether the agent has sent a message about a name that is in use. */
  has(name: string): boolean {
    return this.#received.has(name);
  }

  /**
   * A late copy came. An agent whose cluster was restored sends an earlier state under the id that it had then, so it has to be
   * asked. True when it was asked already.
   */
  doubted(name: string): boolean {
    const received = this.#received.get(name);
    const wasDoubted = received?.isDoubted === true;
    if (received !== undefined) {
      received.isDoubted = true;
    }
    return wasDoubted;
  }

  /** The agent is asked about a name. */
  asked(name: string): void {
    const received = this.#received.get(name);
    if (received !== undefined) {
      received.isAsked = true;
    }
  }

  /**
   * Notes a message that is going to be processed. A copy of an earlier one, which comes while this one still waits, is late by
   * then and does not take its place.
   */
  received(message: ApplicationMessage): void {
    const { name } = message.object.metadata;
    const id = stateId(message);
    const earlier = (this.#received.get(name)?.ids ?? []).filter((one) => one !== id);
    this.#received.set(name, { ids: [...earlier.slice(1 - mostPerName), id], isAsked: false, isDoubted: false });
    if (this.#received.size > 2 * this.#inUse() + mostUnused) {
      for (const other of this.#received.keys()) {
        if (!this.#isInUse(other)) {
          this.#received.delete(other);
        }
      }
    }
  }
}

interface Received {
  /** Ids of messages, the last one last. */
  readonly ids: readonly string[];
  /** The agent was asked about the name since the last message. */
  isAsked: boolean;
  /** A late copy came since the last message. */
  isDoubted: boolean;
}

/** Equal for two copies of one message. */
export function messageId({ type, resourceId, eventId }: ApplicationMessage): string {
  return `${type}/${resourceId}/${eventId}`;
}

/** Equal for messages with the same content: a Go agent calls one state a creation first and an update later. */
function stateId({ type, resourceId, eventId }: ApplicationMessage): string {
  return `${type === 'delete' ? type : ''}/${resourceId}/${eventId}`;
}
