import { type Logger, wellKnown } from '../../lib/base/index.ts';
import {
  type Informer,
  isConflict,
  type KubeClient,
  type Lease,
  leases,
  rfc3339Micro,
  WorkQueue,
  type WorkQueueObserver,
} from '../../lib/kube/index.ts';
import type { AgentRecords, ConnectedAgent } from './agent-records.ts';

/** The labels of a connection record; watch with them. */
export const connectionLabels = {
  [wellKnown.partOfLabel]: 'argocd-agent',
  'app.kubernetes.io/component': 'connection',
} as const;

const prefix = 'argocd-agent-';
const writeTimeoutMs = 2_000;
/** No other program corrects the records of a principal that stops, so a busy API server gets more time. */
const closeTimeoutMs = 10_000;
/** Annotations of a connection record, besides the mode. */
export const connectionAnnotations = {
  connected: wellKnown.connectedAnnotation,
  version: wellKnown.agentVersionAnnotation,
} as const;

type Connected = ConnectedAgent & { readonly since: Date };

/**
 * Records each agent's connection in a Lease `argocd-agent-<agent>` of the principal's namespace, so that others (the fleet
 * controller, kubectl) see and can watch it: annotation `connected`, holder, since when. Written when it changes only.
 */
export class ConnectionRecords implements AgentRecords {
  readonly #client: KubeClient;
  readonly #namespace: string;
  readonly #identity: string;
  readonly #logger: Logger;
  readonly #informer: Informer<Lease>;
  readonly #queue: WorkQueue;
  readonly #startedAt = new Date();
  readonly #connected = new Map<string, Connected>();
  /** When the last connection to this process ended. */
  readonly #ended = new Map<string, Date>();
  /** Agents whose state this process records: they connected to it, or had enough time to. */
  readonly #known = new Set<string>();
  /** Agents that this process has recorded, or begun to record, as connected. */
  readonly #held = new Set<string>();
  /** What this process wrote last, since the cache may be behind it. */
  readonly #written = new Map<string, { readonly connected: boolean; readonly resourceVersion: string | undefined }>();
  /** The mode of each agent's last connection; undefined when it is not to be remembered any more. */
  readonly #modes = new Map<string, string | undefined>();

  constructor(options: {
    client: KubeClient;
    namespace: string;
    identity: string;
    informer: Informer<Lease>;
    observer?: WorkQueueObserver;
    logger: Logger;
  }) {
    this.#client = options.client;
    this.#namespace = options.namespace;
    this.#identity = options.identity;
    this.#informer = options.informer;
    this.#logger = options.logger;
    this.#queue = new WorkQueue({
      name: 'connections',
      // Not aborted with the queue: an aborted write may still be executed, after the one of "disconnected".
      handler: (agent) => this.#write(agent, AbortSignal.timeout(writeTimeoutMs)),
      concurrency: 4,
      observer: options.observer,
      logger: options.logger,
    });
  }

  connected(agent: string, details: ConnectedAgent): true {
    this.#connected.set(agent, { ...details, since: new Date() });
    this.#ended.delete(agent);
    this.#modes.set(agent, details.mode);
    this.#known.add(agent);
    this.#held.add(agent);
    this.#queue.add(agent);
    return true;
  }

  disconnected(agent: string): void {
    this.#connected.delete(agent);
    this.#ended.set(agent, new Date());
    this.#queue.add(agent);
  }

  /** The mode in which the agent was last connected, to this process or a former one; undefined when it never was. */
  modeOf(agent: string): string | undefined {
    if (this.#modes.has(agent)) {
      return this.#modes.get(agent);
    }
    return this.#recorded(agent)?.metadata.annotations?.[wellKnown.agentModeAnnotation];
  }

  /** When a managed agent that is not connected was last, to this process or a former one; undefined when it never was. */
  managedLastSeen(agent: string): Date | undefined {
    return this.modeOf(agent) === 'managed' ? this.lastSeen(agent) : undefined;
  }

  /**
   * When an agent that is not connected was last, to this process or a former one; undefined when it never was. The record
   * has the same time, so a later process gives the same answer.
   */
  lastSeen(agent: string): Date | undefined {
    const ended = this.#ended.get(agent);
    if (ended !== undefined) {
      return ended;
    }
    const { metadata, spec } = this.#recorded(agent) ?? {};
    if (metadata?.annotations?.[wellKnown.connectedAnnotation] === 'true') {
      // A former process did not live to record the end: it was before this start.
      return this.#startedAt;
    }
    const at = spec?.renewTime ?? spec?.acquireTime;
    return at === undefined ? undefined : new Date(at);
  }

  /** The agent has left the fleet: the mode of its last connection is not remembered. */
  forget(agent: string): void {
    if (this.modeOf(agent) === undefined) {
      return;
    }
    this.#modes.set(agent, undefined);
    this.#held.add(agent);
    this.#known.add(agent);
    this.#queue.add(agent);
  }

  /** Forgets the mode of agents that left the fleet while no principal ran. Call it when the cache is filled. */
  forgetAllBut(isMember: (agent: string) => boolean): void {
    for (const lease of this.#informer.list()) {
      const agent = lease.metadata.labels?.[wellKnown.agentNameLabel];
      if (agent !== undefined && !isMember(agent)) {
        this.forget(agent);
      }
    }
  }

  /**
   * Writes records until aborted. Records of a former process with "connected" are corrected after `graceMs`, the
   * time that agents have to come back.
   */
  async run(signal: AbortSignal, graceMs = 30_000): Promise<void> {
    const grace = setTimeout(() => {
      for (const lease of this.#informer.list()) {
        const agent = lease.metadata.labels?.[wellKnown.agentNameLabel];
        if (agent === undefined || this.#known.has(agent)) {
          continue;
        }
        this.#known.add(agent);
        this.#queue.add(agent);
      }
    }, graceMs);
    await this.#queue.run(signal);
    clearTimeout(grace);
  }

  /**
   * Marks all agents that were connected to this process as disconnected, except those that have gone to another one in the
   * meantime; for a clean shutdown, after `run` has ended. Gives up after `timeoutMs`.
   */
  async close(timeoutMs = closeTimeoutMs): Promise<void> {
    for (const agent of this.#connected.keys()) {
      this.#ended.set(agent, new Date());
    }
    this.#connected.clear();
    const signal = AbortSignal.timeout(timeoutMs);
    const agents = [...this.#held];
    const results = await Promise.allSettled(agents.map((agent) => this.#write(agent, signal)));
    const failed = agents.filter((_, index) => results[index]?.status === 'rejected');
    if (failed.length > 0) {
      this.#logger.warn({ agents: failed }, 'not recorded as disconnected');
    }
  }

  async #write(agent: string, signal: AbortSignal): Promise<void> {
    if (!this.#known.has(agent)) {
      return;
    }
    const now = this.#connected.get(agent);
    const written = this.#written.get(agent);
    if (now === undefined && !this.#held.has(agent) && !(written?.connected ?? this.#isRecorded(agent))) {
      return;
    }
    const connected = now !== undefined;
    let lease: Lease | undefined;
    try {
      lease = await this.#client.apply(leases, this.#record(agent, now, written?.resourceVersion), {
        fieldManager: 'argocd-agent-principal',
        force: true,
        signal,
      });
    } catch (error) {
      if (now !== undefined || !isConflict(error)) {
        throw error;
      }
      const found = await this.#client.get(leases, { namespace: this.#namespace, name: agentLeaseName(agent) }, signal);
      if (found?.spec?.holderIdentity === this.#identity) {
        this.#written.set(agent, { connected: true, resourceVersion: found.metadata.resourceVersion });
        return this.#write(agent, signal);
      }
      this.#logger.debug({ agent }, 'the agent is connected to another principal');
    }
    if (!connected) {
      this.#held.delete(agent);
    }
    this.#written.set(agent, { connected, resourceVersion: lease?.metadata.resourceVersion });
    this.#logger.debug({ agent, connected }, 'connection recorded');
  }

  /** The record of the agent, as last seen. */
  #recorded(agent: string): Lease | undefined {
    const cached = this.#informer.get({ namespace: this.#namespace, name: agentLeaseName(agent) });
    return cached?.metadata.labels?.[wellKnown.agentNameLabel] === agent ? cached : undefined;
  }

  /** Whether the record of a former process has a state other than "disconnected". */
  #isRecorded(agent: string): boolean {
    const cached = this.#informer.get({ namespace: this.#namespace, name: agentLeaseName(agent) })?.metadata
      .annotations;
    return cached?.[wellKnown.connectedAnnotation] !== 'false';
  }

  /** The end of a connection replaces only what this process wrote: `resourceVersion` sees to that. */
  #record(agent: string, now: Connected | undefined, resourceVersion: string | undefined): Lease {
    const renewTime = rfc3339Micro((now === undefined ? this.lastSeen(agent) : undefined) ?? new Date());
    const mode = this.modeOf(agent);
    const modeNote = mode === undefined ? {} : { [wellKnown.agentModeAnnotation]: mode };
    const metadata = {
      namespace: this.#namespace,
      name: agentLeaseName(agent),
      labels: { ...connectionLabels, [wellKnown.agentNameLabel]: agent },
    };
    if (now === undefined) {
      return {
        metadata: {
          ...metadata,
          ...(resourceVersion === undefined ? {} : { resourceVersion }),
          annotations: { [wellKnown.connectedAnnotation]: 'false', ...modeNote },
        },
        spec: { holderIdentity: '', renewTime },
      };
    }
    return {
      metadata: {
        ...metadata,
        annotations: {
          [wellKnown.connectedAnnotation]: 'true',
          ...modeNote,
          [wellKnown.agentVersionAnnotation]: now.version,
        },
      },
      spec: { holderIdentity: this.#identity, renewTime, acquireTime: rfc3339Micro(now.since) },
    };
  }
}

/** Name of an agent's Lease. */
export function agentLeaseName(agent: string): string {
  return (prefix + agent).slice(0, 253);
}

/** Index of the connection records by the agent's name. */
export const recordsByAgent = { agent: ({ metadata }: Lease) => [metadata.labels?.[wellKnown.agentNameLabel] ?? ''] };
