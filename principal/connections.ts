import { type Informer, type KubeClient, type Lease, leases, rfc3339Micro, WorkQueue } from '../lib/kube/index.ts';
import type { Logger } from '../lib/ops/index.ts';

/** The labels of a connection record; watch with them. */
export const connectionLabels = {
  'app.kubernetes.io/part-of': 'argocd-agent',
  'app.kubernetes.io/component': 'connection',
} as const;

const prefix = 'argocd-agent-';
const annotation = (name: string) => `argocd-agent.argoproj-labs.io/${name}`;

/** Who is connected, and how it introduced itself. */
export interface ConnectedAgent {
  readonly mode: string;
  readonly version: string;
}

/**
 * Records each agent's connection in a Lease `argocd-agent-<agent>` of the principal's namespace, so that others (the fleet
 * controller, kubectl) see and can watch it: annotation `connected`, holder, since when. Written when it changes only.
 */
export class ConnectionRecords {
  readonly #client: KubeClient;
  readonly #namespace: string;
  readonly #identity: string;
  readonly #logger: Logger;
  readonly #informer: Informer<Lease>;
  readonly #queue: WorkQueue;
  readonly #connected = new Map<string, ConnectedAgent & { since: Date }>();
  /** Agents whose state is this process's to say: they connected to it, or had time enough to. */
  readonly #known = new Set<string>();
  /** What this process wrote last; the cache may be behind it. */
  readonly #written = new Map<string, boolean>();

  constructor(options: {
    client: KubeClient;
    namespace: string;
    identity: string;
    informer: Informer<Lease>;
    logger: Logger;
  }) {
    this.#client = options.client;
    this.#namespace = options.namespace;
    this.#identity = options.identity;
    this.#informer = options.informer;
    this.#logger = options.logger;
    this.#queue = new WorkQueue({
      name: 'connections',
      handler: (agent, signal) => this.#write(agent, signal),
      concurrency: 4,
      logger: options.logger,
    });
  }

  connected(agent: string, details: ConnectedAgent): void {
    this.#connected.set(agent, { ...details, since: new Date() });
    this.#known.add(agent);
    this.#queue.add(agent);
  }

  disconnected(agent: string): void {
    this.#connected.delete(agent);
    this.#queue.add(agent);
  }

  /**
   * Writes records until aborted. Records of a former process that say "connected" are corrected after `graceMs`, the
   * time that agents have to come back.
   */
  async run(signal: AbortSignal, graceMs = 30_000): Promise<void> {
    const grace = setTimeout(() => {
      for (const lease of this.#informer.list()) {
        const agent = lease.metadata.labels?.[annotation('agent-name')];
        if (agent === undefined || this.#known.has(agent)) continue;
        this.#known.add(agent);
        this.#queue.add(agent);
      }
    }, graceMs);
    await this.#queue.run(signal);
    clearTimeout(grace);
  }

  /** Marks all agents of this process as disconnected; for a clean shutdown. Gives up after `timeoutMs`. */
  async close(timeoutMs = 2_000): Promise<void> {
    const agents = [...this.#connected.keys()];
    this.#connected.clear();
    const signal = AbortSignal.timeout(timeoutMs);
    await Promise.allSettled(agents.map((agent) => this.#write(agent, signal)));
  }

  async #write(agent: string, signal: AbortSignal): Promise<void> {
    if (!this.#known.has(agent)) return;
    const now = this.#connected.get(agent);
    const name = (prefix + agent).slice(0, 253);
    const wanted = {
      labels: { ...connectionLabels, [annotation('agent-name')]: agent },
      annotations: {
        [annotation('connected')]: String(now !== undefined),
        ...(now === undefined
          ? {}
          : { [annotation('agent-mode')]: now.mode, [annotation('agent-version')]: now.version }),
      },
    };
    const holder = now === undefined ? '' : this.#identity;
    const cached = this.#informer.get({ namespace: this.#namespace, name })?.metadata.annotations;
    const recorded = this.#written.get(agent) ?? cached?.[annotation('connected')] !== 'false';
    if (now === undefined && !recorded) return;
    await this.#client.apply(
      leases,
      {
        metadata: { namespace: this.#namespace, name, ...wanted },
        spec: {
          holderIdentity: holder,
          renewTime: rfc3339Micro(new Date()),
          ...(now === undefined ? {} : { acquireTime: rfc3339Micro(now.since) }),
        },
      },
      { fieldManager: 'argocd-agent-principal', force: true, signal },
    );
    this.#written.set(agent, now !== undefined);
    this.#logger.debug({ agent, connected: now !== undefined }, 'connection recorded');
  }
}
