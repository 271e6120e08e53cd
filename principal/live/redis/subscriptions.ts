/** Commands that begin or end subscriptions. Redis confirms each name of an accepted command on its own. */
const commands = {
  subscribe: { list: 'channels', isBegin: true },
  unsubscribe: { list: 'channels', isBegin: false },
  psubscribe: { list: 'patterns', isBegin: true },
  punsubscribe: { list: 'patterns', isBegin: false },
  ssubscribe: { list: 'shardChannels', isBegin: true },
  sunsubscribe: { list: 'shardChannels', isBegin: false },
} as const;

/** A command that begins or ends subscriptions, in lower case. */
export type SubscriptionCommand = keyof typeof commands;

const messages: ReadonlySet<string> = new Set(['message', 'pmessage', 'smessage']);

/** Whether a command begins or ends subscriptions. */
export function isSubscriptionCommand(name: string): name is SubscriptionCommand {
  return Object.hasOwn(commands, name);
}

/** The subscriptions of one connection to Redis, as Redis has confirmed them. */
export class Subscriptions {
  readonly #lists = { channels: new Set<string>(), patterns: new Set<string>(), shardChannels: new Set<string>() };

  get size(): number {
    const { channels, patterns, shardChannels } = this.#lists;
    return channels.size + patterns.size + shardChannels.size;
  }

  /**
   * How many confirmations Redis sends if it accepts the command: one for each name. A command that ends all subscriptions
   * names none: one for each of these, and at least one.
   */
  confirmations(command: SubscriptionCommand, names: readonly string[]): number {
    return names.length > 0 ? names.length : Math.max(1, this.#lists[commands[command].list].size);
  }

  /** How many subscriptions there will be at most if Redis confirms the command. */
  sizeAfter(command: SubscriptionCommand, names: readonly string[]): number {
    return this.size + (commands[command].isBegin ? names.length : 0);
  }

  /** Redis has confirmed the command. */
  confirmed(command: SubscriptionCommand, names: readonly string[]): void {
    const { list, isBegin } = commands[command];
    if (!isBegin && names.length === 0) {
      this.#lists[list].clear();
    }
    for (const name of names) {
      if (isBegin) {
        this.#lists[list].add(name);
      } else {
        this.#lists[list].delete(name);
      }
    }
  }

  /** Whether a RESP2 array with this first element is a message instead of a reply. */
  isMessage(firstElement: string): boolean {
    return this.size > 0 && messages.has(firstElement);
  }
}
