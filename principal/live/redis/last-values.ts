import type { Logger } from '../../../lib/base/index.ts';
import type { RedisLink } from '../../../lib/redis/index.ts';

/** How long a value outlives the connection to its agent. */
const lifetimeMs = 24 * 3_600_000;
/** Larger values are not kept. Compressed, the tree of an Application has some ten KiB. */
const mostValueBytes = 8 * 1024 * 1024;
/** All values of one agent: those of 2,000 Applications have about 60 MiB. */
const mostAgentBytes = 128 * 1024 * 1024;
/** What a value costs Redis, and its entry here, beyond its own bytes. */
const overheadBytes = 1_024;
const prefix = 'argocd-agent|last|';

/** Bytes by key, oldest first. */
type Sizes = Map<string, number>;

/**
 * The last values of the agents' caches. They are kept in the hub's Redis for a day, for the time in which their agent is not
 * connected. Each agent has a limited number of bytes; its oldest values make room.
 */
export class LastValues {
  readonly #link: Pick<RedisLink, 'get' | 'set' | 'delete' | 'sizes' | 'onReady'>;
  readonly #logger: Logger;
  readonly #agents = new Map<string, { readonly sizes: Sizes; bytes: number }>();

  constructor(link: Pick<RedisLink, 'get' | 'set' | 'delete' | 'sizes' | 'onReady'>, logger: Logger) {
    this.#link = link;
    this.#logger = logger;
    const load = () => {
      this.#load().catch((error: unknown) => {
        logger.debug({ error }, 'the kept values of agents cannot be counted; counted again with the next connection');
      });
    };
    // Values that an earlier process has kept count too, and Redis may have lost some.
    link.onReady(load);
    load();
  }

  /** The last value of a key; undefined when none is kept or Redis cannot be used. */
  async get(agent: string, key: string): Promise<Buffer | undefined> {
    try {
      return await this.#link.get(keyOf(agent, key));
    } catch {
      return undefined;
    }
  }

  /** Keeps a value, and removes those that it leaves no room for. Returns at once; without Redis nothing is kept. */
  keep(agent: string, key: string, value: Buffer): void {
    const stored = keyOf(agent, key);
    if (value.length > mostValueBytes) {
      // An older value must not stand for this one.
      this.#remove(agent, stored);
      this.#logger.debug({ agent, key, bytes: value.length }, 'a value of an agent is too large to be kept');
      return;
    }
    this.#count(agent, stored, value.length);
    this.#link.set(stored, value, lifetimeMs).catch(() => undefined);
  }

  #count(agent: string, stored: string, length: number): void {
    const known = this.#agents.get(agent) ?? { sizes: new Map<string, number>(), bytes: 0 };
    this.#agents.set(agent, known);
    const bytes = length + overheadBytes;
    known.bytes += bytes - (known.sizes.get(stored) ?? 0);
    known.sizes.delete(stored);
    known.sizes.set(stored, bytes);
    for (const [oldest] of known.sizes) {
      if (known.bytes <= mostAgentBytes) {
        break;
      }
      this.#remove(agent, oldest);
    }
  }

  #remove(agent: string, stored: string): void {
    const known = this.#agents.get(agent);
    if (known !== undefined) {
      known.bytes -= known.sizes.get(stored) ?? 0;
      known.sizes.delete(stored);
      if (known.sizes.size === 0) {
        this.#agents.delete(agent);
      }
    }
    this.#link.delete(stored).catch(() => undefined);
  }

  async #load(): Promise<void> {
    this.#agents.clear();
    for await (const [stored, length] of this.#link.sizes(prefix)) {
      const [agent = ''] = stored.slice(prefix.length).split('|');
      this.#count(agent, stored, length);
    }
  }
}

function keyOf(agent: string, key: string): string {
  return `${prefix}${agent}|${key}`;
}
