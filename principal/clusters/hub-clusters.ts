import { clusterUrl } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import type { Informer, Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';

/** The clusters with one name or URL: Secret → the agent that the Secret names; empty: none. */
type Secrets = Map<string, string>;

/** All clusters of the hub's Argo CD, by name and by URL, whether an agent serves them or not. */
export class HubClusters {
  readonly #byName = new Map<string, Secrets>();
  readonly #byUrl = new Map<string, Secrets>();
  readonly #changed: (nameOrUrl: string) => void;

  /** @param changed called with the name and the URL of a cluster that came, went or changed */
  constructor(changed: (nameOrUrl: string) => void) {
    this.#changed = changed;
  }

  /** Reads the cluster Secrets of an informer from now on. */
  follow(informer: Informer<Secret>): void {
    const move = (from: Secret | undefined, to: Secret | undefined) => {
      const [before, after] = [from && keysOf(from), to && keysOf(to)];
      const secret = (to ?? from)?.metadata.name ?? '';
      remove(this.#byName, before?.name, secret);
      remove(this.#byUrl, before?.url, secret);
      const agent = to?.metadata.labels?.[wellKnown.agentNameLabel] ?? '';
      put(this.#byName, after?.name, secret, agent);
      put(this.#byUrl, after?.url, secret, agent);
      for (const key of new Set([before?.name, before?.url, after?.name, after?.url])) {
        if (key !== undefined && key !== '') {
          this.#changed(key);
        }
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
    const agents = [this.#byName, this.#byUrl].flatMap((all) => [...(all.get(nameOrUrl)?.values() ?? [])]);
    return agents.find((agent) => agent !== '') ?? agents[0];
  }

  /** The same of the only cluster with this URL; undefined when there is none, or more than one. */
  agentOfUrl(url: string): string | undefined {
    const [agent, other] = this.#byUrl.get(url)?.values() ?? [];
    return other === undefined ? agent : undefined;
  }

  /** The names of the cluster Secrets with this URL, sorted. */
  secretsWithUrl(url: string): string[] {
    return [...(this.#byUrl.get(url)?.keys() ?? [])].sort();
  }
}

function put(all: Map<string, Secrets>, key: string | undefined, secret: string, agent: string): void {
  if (key !== undefined && key !== '') {
    all.set(key, (all.get(key) ?? new Map<string, string>()).set(secret, agent));
  }
}

function remove(all: Map<string, Secrets>, key = '', secret: string): void {
  const secrets = all.get(key);
  secrets?.delete(secret);
  if (secrets?.size === 0) {
    all.delete(key);
  }
}

function keysOf(secret: Secret): { readonly name: string; readonly url: string } | undefined {
  if (secret.metadata.labels?.[wellKnown.secretTypeLabel] !== 'cluster') {
    return undefined;
  }
  const { name = '', server = '' } = decodeSecret(secret);
  return { name, url: clusterUrl(server) };
}
