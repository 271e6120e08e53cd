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
  /** Ids by name, the last one last. */
  readonly #received = new Map<string, string[]>();
  readonly #inUse: () => number;

  constructor(options: { isInUse: (name: string) => boolean; inUse: () => number }) {
    this.#isInUse = options.isInUse;
    this.#inUse = options.inUse;
  }

  /** What a message is: a new one, one that is to be processed again, or an earlier one, which is not processed. */
  is(message: ApplicationMessage): 'new' | 'again' | 'late' {
    const ids = this.#received.get(message.object.metadata.name);
    const id = stateId(message);
    if (ids?.includes(id) !== true) {
      return 'new';
    }
    // That there is no such Application may be found time and again.
    return ids.at(-1) === id || message.type === 'delete' ? 'again' : 'late';
  }

  /**
   * Notes a message that is going to be processed. A copy of an earlier one, which comes while this one still waits, is late by
   * then and does not take its place.
   */
  received(message: ApplicationMessage): void {
    const { name } = message.object.metadata;
    const id = stateId(message);
    const earlier = (this.#received.get(name) ?? []).filter((one) => one !== id);
    this.#received.set(name, [...earlier.slice(1 - mostPerName), id]);
    if (this.#received.size > 2 * this.#inUse() + mostUnused) {
      for (const other of this.#received.keys()) {
        if (!this.#isInUse(other)) {
          this.#received.delete(other);
        }
      }
    }
  }
}

/** Equal for two copies of one message. */
export function messageId({ type, resourceId, eventId }: ApplicationMessage): string {
  return `${type}/${resourceId}/${eventId}`;
}

/** Equal for messages with the same content: a Go agent calls one state a creation first and an update later. */
function stateId({ type, resourceId, eventId }: ApplicationMessage): string {
  return `${type === 'delete' ? type : ''}/${resourceId}/${eventId}`;
}
