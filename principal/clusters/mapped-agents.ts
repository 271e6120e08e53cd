import { clusterUrl } from '../../lib/argocd/index.ts';
import { type AgentMode, isAgentMode } from '../../lib/auth/index.ts';
import { type Logger, wellKnown } from '../../lib/base/index.ts';
import type { Informer, Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';

const { secretTypeLabel, agentNameLabel, agentModeAnnotation } = wellKnown;

/** The data of a cluster Secret about its agent. */
export interface MappedCluster {
  readonly secret: Secret;
  /** What Argo CD calls the cluster. */
  readonly name: string;
  /** The server's URL as Argo CD reads it: without slashes at its end. */
  readonly server: string;
  /** The mode that the operator requires of the agent; undefined without the annotation. */
  readonly mode: AgentMode | undefined;
}

/** Receives changes of {@link MappedAgents}. */
export interface MappedAgentsListener {
  mapped?(agent: string): void;
  unmapped?(agent: string): void;
  /** The agent's cluster Secrets, or their number, have changed. Called after the other two as well. */
  changed?(agent: string): void;
  /** A cluster Secret of the agent was written, whatever has changed in it. Called last. */
  written?(agent: string): void;
}

/**
 * The agents that have an Argo CD cluster Secret: only they get Applications and projects. The label
 * `argocd-agent.argoproj-labs.io/agent-name` of a cluster Secret names the agent. Several Secrets may name one agent; it
 * is mapped as long as one does.
 */
export class MappedAgents {
  readonly #clusters = new Map<string, Map<string, MappedCluster>>();
  readonly #logger: Logger;
  readonly #listeners = new Set<MappedAgentsListener>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Reads the Secrets of an informer from now on. */
  follow(informer: Informer<Secret>): void {
    const move = (from: Secret | undefined, to: Secret | undefined) => {
      const [before, after] = [from && agentOf(from), to && agentOf(to)];
      if (to !== undefined && after !== undefined) {
        this.#put(after, to);
      }
      if (from !== undefined && before !== undefined && before !== after) {
        this.#remove(before, from.metadata.name);
      }
      if (after !== undefined) {
        for (const listener of this.#listeners) {
          listener.written?.(after);
        }
      }
    };
    informer.subscribe({
      added: (now) => move(undefined, now),
      updated: move,
      deleted: (last) => move(last, undefined),
    });
  }

  /** Reports changes after this call. */
  subscribe(listener: MappedAgentsListener): void {
    this.#listeners.add(listener);
  }

  has(agent: string): boolean {
    return this.#clusters.has(agent);
  }

  names(): string[] {
    return [...this.#clusters.keys()];
  }

  /** The agent's clusters, ordered by the names of their Secrets; mostly one. */
  clustersOf(agent: string): MappedCluster[] {
    return [...(this.#clusters.get(agent)?.values() ?? [])].sort((a, b) =>
      a.secret.metadata.name < b.secret.metadata.name ? -1 : 1,
    );
  }

  #put(agent: string, secret: Secret): void {
    const { name } = secret.metadata;
    const known = this.#clusters.get(agent);
    const fields = decodeSecret(secret);
    const server = clusterUrl(fields.server ?? '');
    const cluster = {
      secret,
      // As Argo CD reads it.
      name: fields.name || server,
      server,
      mode: this.#modeOf(agent, secret),
    };
    if (known === undefined) {
      this.#clusters.set(agent, new Map([[name, cluster]]));
      this.#logger.info({ agent, secret: name }, 'agent is mapped to a cluster');
      for (const listener of this.#listeners) {
        listener.mapped?.(agent);
      }
    } else {
      const before = known.get(name);
      known.set(name, cluster);
      if (before === undefined) {
        this.#logger.warn({ agent, secrets: [...known.keys()] }, 'several cluster Secrets name the same agent');
      } else if (isEqual(before, cluster)) {
        return;
      }
    }
    this.#changed(agent);
  }

  #remove(agent: string, secret: string): void {
    const clusters = this.#clusters.get(agent);
    if (clusters?.delete(secret) !== true) {
      return;
    }
    if (clusters.size === 0) {
      this.#clusters.delete(agent);
      this.#logger.info({ agent, secret }, 'agent is no longer mapped to a cluster');
      for (const listener of this.#listeners) {
        listener.unmapped?.(agent);
      }
    }
    this.#changed(agent);
  }

  #modeOf(agent: string, secret: Secret): AgentMode | undefined {
    const mode = secret.metadata.annotations?.[agentModeAnnotation] ?? '';
    if (isAgentMode(mode)) {
      return mode;
    }
    if (mode !== '') {
      const hint = 'it must be managed or autonomous';
      this.#logger.warn(
        { agent, secret: secret.metadata.name, mode, hint },
        `annotation ${agentModeAnnotation} is ignored`,
      );
    }
    return undefined;
  }

  #changed(agent: string): void {
    for (const listener of this.#listeners) {
      listener.changed?.(agent);
    }
  }
}

function isEqual(a: MappedCluster, b: MappedCluster): boolean {
  return a.server === b.server && a.name === b.name && a.mode === b.mode;
}

function agentOf(secret: Secret): string | undefined {
  const labels = secret.metadata.labels;
  return labels?.[secretTypeLabel] === 'cluster' ? labels[agentNameLabel] || undefined : undefined;
}
