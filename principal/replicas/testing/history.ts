import { Random } from '../../../e2e/random/index.ts';
import { LeaseServer, TestReplica } from './lease-server.ts';

/** How a history is told. */
export interface HistoryOptions {
  readonly seed: number;
  readonly steps: number;
  /** Lets this much time pass, in milliseconds. */
  readonly pass: (ms: number) => Promise<void>;
}

const agents = ['a', 'b', 'c'];
/** A write takes at most this long, and is executed at a random time of it. Less than the time between fence and deposing. */
const longestWriteMs = 300;

/**
 * A random history of replicas that come, are killed, cut off, healed and ended, while agents move between them and every one
 * writes for the agents that it thinks it has. Returns what went wrong: a write that was executed while the agent's
 * Lease named another one, an agent that is attached without that its Lease says so, or one that nobody serves in the end.
 */
export async function tellHistory({ seed, steps, pass }: HistoryOptions): Promise<string[]> {
  const random = new Random(seed);
  const faults: string[] = [];
  const server = new LeaseServer();
  const live: TestReplica[] = [];
  const places = new Map<string, TestReplica>();
  const holderOf = (agent: string) => server.stored.get(`argocd-agent-${agent}`)?.spec?.holderIdentity ?? '';
  let isOver = false;

  const start = () => {
    const replica = new TestReplica(server, {
      timing: { renewMs: 300, deadlineMs: 1_000, durationMs: 2_000 },
      held: (agent) => {
        if (holderOf(agent) !== replica.identity) {
          faults.push(`${agent} is served by one that its Lease does not name`);
        }
      },
    });
    live.push(replica);
    for (const agent of agents) {
      void write(replica, agent);
    }
  };
  /** Writes for an agent again and again, as an engine that has work for it, and stops only when its session does. */
  const write = async (replica: TestReplica, agent: string) => {
    while (!isOver && live.includes(replica)) {
      if (replica.attached.has(agent)) {
        const { identity } = replica;
        await replica.replicas.fence
          .run(agent, AbortSignal.timeout(5_000), async () => {
            const ms = random.integer(0, longestWriteMs);
            await sleep(ms);
            if (!replica.isAway && holderOf(agent) !== identity) {
              faults.push(`${agent} was written by ${identity} while its Lease named "${holderOf(agent)}"`);
            }
            // On its way when the connection was lost, and executed all the same.
            if (replica.isAway && ![identity, ''].includes(holderOf(agent))) {
              faults.push(`${agent} was written late by ${identity} while its Lease named "${holderOf(agent)}"`);
            }
          })
          .catch(() => undefined);
      }
      await sleep(50 + random.integer(0, 149));
    }
  };
  const move = (agent: string) => {
    const to = random.pick(live);
    const from = places.get(agent);
    // A connection that is lost without a word stays for a while.
    if (from !== undefined && random.chance(2 / 3)) {
      from.leave(agent);
    }
    places.set(agent, to);
    to.come(agent);
  };

  start();
  start();
  for (let step = 0; step < steps; step++) {
    await pass(20 + random.integer(0, 400));
    const one = random.pick(live);
    switch (random.integer(0, 7)) {
      case 0:
        if (live.length < 4) {
          start();
        }
        break;
      case 1:
        if (live.length > 1) {
          live.splice(live.indexOf(one), 1);
          one.kill();
        }
        break;
      case 2:
        if (live.length > 1) {
          live.splice(live.indexOf(one), 1);
          void one.close();
        }
        break;
      case 3:
        one.cut();
        if (random.chance(1 / 2) && live.length > 1) {
          // For so long that others depose it, while its agents have connected to another one.
          for (const agent of agents.filter((each) => places.get(each) === one)) {
            const to = random.pick(live.filter((each) => each !== one));
            places.set(agent, to);
            to.come(agent);
          }
          await pass(3_000);
        }
        break;
      case 4:
        for (const each of live) {
          each.heal();
        }
        break;
      default:
        move(random.pick(agents));
    }
  }
  for (const each of live) {
    each.heal();
  }
  await pass(5_000);
  for (const agent of agents) {
    for (const each of live) {
      each.leave(agent);
    }
    const last = random.pick(live);
    places.set(agent, last);
    last.come(agent);
  }
  await pass(6_000);
  for (const agent of agents) {
    const serving = live.filter(({ attached }) => attached.has(agent));
    if (serving.length !== 1 || serving[0] !== places.get(agent)) {
      faults.push(`${agent} is served by ${serving.length} in the end`);
    }
  }
  isOver = true;
  for (const each of live) {
    each.kill();
  }
  await pass(6_000);
  return faults;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
