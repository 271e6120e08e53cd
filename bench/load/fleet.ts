import { percentile } from '../figures.ts';
import type { AgentCertificates } from './pki.ts';
import type { Changes, Counts, LoadReport } from './protocol.ts';
import { SimulatedAgent } from './simulated-agent.ts';

/** How finely status changes are spread over time. */
const changeTickMs = 20;
const resendTickMs = 1_000;

/** How a {@link LoadFleet} is made. */
export interface LoadFleetOptions {
  readonly server: string;
  readonly agents: readonly string[];
  readonly applications: number;
  readonly version: string;
  readonly certificates: AgentCertificates;
  readonly report: (report: LoadReport) => void;
}

/** All simulated agents of the process. */
export class LoadFleet {
  readonly #agents: SimulatedAgent[];
  readonly #resend: NodeJS.Timeout;
  readonly #intervals = new Map<string, NodeJS.Timeout[]>();
  #reportMs: number[] = [];
  #changesReceived = 0;
  #losses = 0;

  constructor({ server, agents, applications, version, certificates, report }: LoadFleetOptions) {
    const now = () => performance.timeOrigin + performance.now();
    const listener = {
      inSync: ({ name: agent }: SimulatedAgent) => report({ is: 'in-sync', agent, at: now() }),
      lost: ({ name: agent }: SimulatedAgent, error: Error) => {
        this.#losses++;
        report({ is: 'lost', agent, why: error.message });
      },
      changed: () => {
        this.#changesReceived++;
      },
      reported: (milliseconds: number) => {
        this.#reportMs.push(milliseconds);
      },
    };
    const { ca } = certificates;
    this.#agents = agents.map((name) => {
      const certificate = certificates.of(name);
      return new SimulatedAgent({ name, server, ca, certificate, version, applications, listener });
    });
    this.#resend = setInterval(() => {
      const now = performance.now();
      for (const agent of this.#agents) {
        agent.resend(now);
      }
    }, resendTickMs);
  }

  get size(): number {
    return this.#agents.length;
  }

  /** Status changes that the principal has not acknowledged. */
  get unreported(): number {
    return this.#sum(({ unreported }) => unreported);
  }

  /** Connects all agents at once. */
  start(): void {
    for (const agent of this.#agents) {
      agent.start();
    }
  }

  /** Ends all connections. */
  async stop(): Promise<void> {
    clearInterval(this.#resend);
    for (const what of this.#intervals.keys()) {
      this.#repeat(what, 0, () => undefined);
    }
    await Promise.all(this.#agents.map((agent) => agent.stop()));
  }

  /** Lets every agent report its cluster cache every so often, each at a moment of its own; 0 stops it. */
  sendClusterCacheInfo(everySeconds: number): void {
    this.#repeat('cache-info', everySeconds, (agent) => agent.sendClusterCacheInfo());
  }

  /** The same for heartbeats. */
  sendHeartbeats(everySeconds: number): void {
    this.#repeat('heartbeat', everySeconds, (agent) => agent.sendHeartbeat());
  }

  /**
   * Changes statuses, one agent and one Application after the other. The message of each new health is the time of its
   * change, in milliseconds since the epoch. Resolves when all are acknowledged or superseded.
   */
  async change(perSecond: number, seconds: number): Promise<Changes> {
    const sentBefore = this.#sum(({ reports }) => reports);
    const supersededBefore = this.#sum(({ superseded }) => superseded);
    this.#reportMs = [];
    const total = Math.round(perSecond * seconds);
    const began = performance.now();
    let made = 0;
    await this.#poll(changeTickMs, () => {
      const due = Math.min(total, Math.floor(((performance.now() - began) / 1000) * perSecond));
      for (; made < due; made++) {
        const message = String(performance.timeOrigin + performance.now());
        this.#agents[made % this.size]?.changeHealth(Math.floor(made / this.size), message);
      }
      return made === total;
    });
    await this.#poll(changeTickMs, () => this.unreported === 0);
    return {
      made,
      superseded: this.#sum(({ superseded }) => superseded) - supersededBefore,
      sent: this.#sum(({ reports }) => reports) - sentBefore,
      acknowledgedMs: [50, 90, 99, 100].map((percent) => percentile(this.#reportMs, percent)),
    };
  }

  /** How things stand. */
  counts(): Counts {
    const { user, system } = process.cpuUsage();
    return {
      connected: this.#sum(({ isConnected }) => Number(isConnected)),
      inSync: this.#sum(({ isInSync }) => Number(isInSync)),
      applications: this.#sum(({ applications }) => applications),
      changesReceived: this.#changesReceived,
      losses: this.#losses,
      cpuSeconds: (user + system) / 1e6,
      rssBytes: process.memoryUsage.rss(),
    };
  }

  #sum(figure: (agent: SimulatedAgent) => number): number {
    return this.#agents.reduce((sum, agent) => sum + figure(agent), 0);
  }

  #repeat(what: string, everySeconds: number, act: (agent: SimulatedAgent) => void): void {
    for (const timer of this.#intervals.get(what) ?? []) {
      clearTimeout(timer);
    }
    if (everySeconds === 0) {
      return;
    }
    const timers: NodeJS.Timeout[] = [];
    this.#intervals.set(what, timers);
    for (const [index, agent] of this.#agents.entries()) {
      const again = () => {
        if (agent.isConnected) {
          act(agent);
        }
        timers[index] = setTimeout(again, everySeconds * 1000);
      };
      timers[index] = setTimeout(again, Math.random() * everySeconds * 1000);
    }
  }

  #poll(everyMs: number, isDone: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const timer = setInterval(() => {
        if (!isDone()) {
          return;
        }
        clearInterval(timer);
        resolve();
      }, everyMs);
    });
  }
}
