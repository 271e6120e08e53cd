import { type Logger, sleep } from '../../lib/base/index.ts';

/** What a replica knows of the fleet's spread. */
export interface RebalanceOptions {
  /** Agents that this replica serves. */
  readonly serving: () => ReadonlySet<string>;
  /** Agents that all live replicas serve. */
  readonly held: () => number;
  readonly live: () => number;
  /** Ends an agent's stream; it connects again, to whichever replica the Service gives it. */
  readonly send: (agent: string) => void;
  readonly logger: Logger;
  /** How often the spread is looked at. Default 5 s. */
  readonly lookMs?: number | undefined;
  /** Looks in a row that must see too many agents before the first one is sent. Default 6: a rollout is over by then. */
  readonly patience?: number;
}

/** Agents sent away per look: not more than this share of the excess, and this number. */
const share = 0.2;
const most = 20;

/** How many agents a replica has beyond what it keeps: a fifth above its share, and five. */
export function excess({ own, held, live }: { own: number; held: number; live: number }): number {
  return live < 2 ? 0 : Math.max(0, Math.ceil(own - (1.2 * held) / live - 5));
}

/**
 * Spreads the agents over the replicas after one was added: a replica with clearly more than its share ends the streams of some
 * of them, a few at a time. One with less does nothing, so agents do not go to and fro.
 */
export async function rebalance(options: RebalanceOptions, signal: AbortSignal): Promise<void> {
  const { serving, held, live, send, logger, lookMs = 5_000, patience = 6 } = options;
  let seen = 0;
  while (!signal.aborted) {
    await sleep(lookMs * (0.8 + Math.random() * 0.4), signal);
    const agents = [...serving()];
    const tooMany = excess({ own: agents.length, held: held(), live: live() });
    seen = tooMany > 0 ? seen + 1 : 0;
    if (seen < patience || signal.aborted) {
      continue;
    }
    const count = Math.min(most, Math.max(1, Math.ceil(tooMany * share)));
    logger.info({ agents: agents.length, excess: tooMany, sent: count }, 'agents are sent to other replicas');
    for (const agent of pick(agents, count)) {
      send(agent);
      await sleep((lookMs / most) * (0.5 + Math.random()), signal);
    }
  }
}

function pick(agents: string[], count: number): string[] {
  const picked: string[] = [];
  while (picked.length < count && agents.length > 0) {
    picked.push(...agents.splice(Math.floor(Math.random() * agents.length), 1));
  }
  return picked;
}
