import type { AgentCertificates } from './pki.ts';
import type { Counts, LoadReport, LoadSetting } from './protocol.ts';
import { SimulatedAgent } from './simulated-agent.ts';

const resendTickMs = 1_000;

/** How a {@link LoadFleet} is made. */
export interface LoadFleetOptions extends Omit<LoadSetting, 'pki'> {
  readonly certificates: AgentCertificates;
  readonly report: (report: LoadReport) => void;
}

/** All simulated agents of the process. */
export class LoadFleet {
  readonly #agents: SimulatedAgent[];
  readonly #resend: NodeJS.Timeout;
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

  /** Connects all agents at once. */
  start(): void {
    for (const agent of this.#agents) {
      agent.start();
    }
  }

  /** Ends all connections. */
  async stop(): Promise<void> {
    clearInterval(this.#resend);
    await Promise.all(this.#agents.map((agent) => agent.stop()));
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
    };
  }

  #sum(figure: (agent: SimulatedAgent) => number): number {
    return this.#agents.reduce((sum, agent) => sum + figure(agent), 0);
  }
}
