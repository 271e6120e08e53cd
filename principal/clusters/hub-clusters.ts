import { wellKnown } from '../../lib/base/index.ts';
import type { Informer, Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';

/** All clusters of the hub's Argo CD, by name and by URL, whether an agent serves them or not. */
export class HubClusters {
  /** Name or URL → Secret → the agent that the Secret names; empty: none. */
  readonly #secrets = new Map<string, Map<string, string>>();
  readonly #changed: (nameOrUrl: string) => void;

  /** @param changed called with the name and the URL of a cluster that came, went or changed */
  constructor(changed: (nameOrUrl: string) => void) {
    this.#changed = changed;
  }

  /** Reads the cluster Secrets of an informer from now on. */
  follow(informer: Informer<Secret>): void {
    const move = (from: Secret | undefined, to: Secret | undefined) => {
      const [before, after] = [from && keysOf(from), to && keysOf(to)];
      for (const key of before ?? []) {
        this.#remove(key, from?.metadata.name ?? '');
      }
      for (const key of after ?? []) {
        this.#put(key, to?.metadata.name ?? '', to?.metadata.labels?.[wellKnown.agentNameLabel] ?? '');
      }
      for (const key of new Set([...(before ?? []), ...(after ?? [])])) {
        this.#changed(key);
      }
    };
    informer.subscribe({
      added: (now) => move(undefined, now),
      updated: move,
      deleted: (last) => move(last, undefined),
    });
  }

  /** The agent that serves the cluster of this name or URL; empty when none does; undefined when there is no such cluster. */
  agentOf(nameOrUrl: string): string | undefined {
    const agents = [...(this.#secrets.get(nameOrUrl)?.values() ?? [])];
    return agents.find((agent) => agent !== '') ?? agents[0];
  }

  #put(key: string, secret: string, agent: string): void {
    const secrets = this.#secrets.get(key) ?? new Map<string, string>();
    secrets.set(secret, agent);
    this.#secrets.set(key, secrets);
  }

  #remove(key: string, secret: string): void {
    const secrets = this.#secrets.get(key);
    secrets?.delete(secret);
    if (secrets?.size === 0) {
      this.#secrets.delete(key);
    }
  }
}

function keysOf(secret: Secret): string[] {
  if (secret.metadata.labels?.[wellKnown.secretTypeLabel] !== 'cluster') {
    return [];
  }
  const { name = '', server = '' } = decodeSecret(secret);
  return [name, server.replace(/\/+$/, '')].filter((key) => key !== '');
}
