import type { Informer, Secret } from '../lib/kube/index.ts';
import type { Logger } from '../lib/ops/index.ts';

const secretType = 'argocd.argoproj.io/secret-type';
const agentName = 'argocd-agent.argoproj-labs.io/agent-name';

/**
 * The agents that have an Argo CD cluster Secret: only they get Applications and projects. The label
 * `argocd-agent.argoproj-labs.io/agent-name` of a cluster Secret names the agent. Several Secrets may name one agent; it
 * is mapped as long as one does.
 */
export class MappedAgents {
  readonly #secrets = new Map<string, Set<string>>();
  readonly #logger: Logger;
  readonly #listeners = new Set<{ mapped(agent: string): void; unmapped(agent: string): void }>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Reads the Secrets of an informer from now on. */
  follow(informer: Informer<Secret>): void {
    const move = (secret: string, from: string | undefined, to: string | undefined) => {
      if (from === to) return;
      if (to !== undefined) this.#add(to, secret);
      if (from !== undefined) this.#remove(from, secret);
    };
    informer.subscribe({
      added: (now) => move(now.metadata.name, undefined, agentOf(now)),
      updated: (old, now) => move(now.metadata.name, agentOf(old), agentOf(now)),
      deleted: (last) => move(last.metadata.name, agentOf(last), undefined),
    });
  }

  /** Tells of agents that become mapped or unmapped after this call. */
  subscribe(listener: { mapped(agent: string): void; unmapped(agent: string): void }): void {
    this.#listeners.add(listener);
  }

  has(agent: string): boolean {
    return this.#secrets.has(agent);
  }

  names(): string[] {
    return [...this.#secrets.keys()];
  }

  #add(agent: string, secret: string): void {
    const secrets = this.#secrets.get(agent);
    if (secrets !== undefined) {
      secrets.add(secret);
      this.#logger.warn({ agent, secrets: [...secrets] }, 'several cluster Secrets name the same agent');
      return;
    }
    this.#secrets.set(agent, new Set([secret]));
    this.#logger.info({ agent, secret }, 'agent is mapped to a cluster');
    for (const listener of this.#listeners) listener.mapped(agent);
  }

  #remove(agent: string, secret: string): void {
    const secrets = this.#secrets.get(agent);
    secrets?.delete(secret);
    if (secrets === undefined || secrets.size > 0) return;
    this.#secrets.delete(agent);
    this.#logger.info({ agent, secret }, 'agent is no longer mapped to a cluster');
    for (const listener of this.#listeners) listener.unmapped(agent);
  }
}

function agentOf(secret: Secret): string | undefined {
  const labels = secret.metadata.labels;
  return labels?.[secretType] === 'cluster' ? labels[agentName] || undefined : undefined;
}
