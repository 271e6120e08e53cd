import { type Application, routingUrl } from '../lib/argocd/index.ts';
import type { Unkindness } from './unkindness.ts';
import type { VirtualTime } from './virtual-time.ts';

/** About how long a cluster Secret is away. */
const someMs = 3_000;

/** The URL of an agent's cluster. */
export function urlOfCluster(agent: string): string {
  return `https://${agent}.example`;
}

/** The agent of the cluster with this URL. */
export function agentOfUrl(url: string): string | undefined {
  return /^https:\/\/(.+)\.example$/.exec(url)?.[1];
}

interface SecretScene {
  readonly unkind: Unkindness;
  readonly time: VirtualTime;
  readonly sites: readonly { readonly name: string }[];
}

/** The cluster Secrets of the hub by their URLs. Some are away for a while, or another one has the same URL: it is the same to principals. */
export class ClusterSecrets {
  readonly #scene: SecretScene;
  readonly #away = new Set<string>();
  readonly #listeners = new Set<(url: string, isAway: boolean) => void>();

  constructor(scene: SecretScene) {
    this.#scene = scene;
  }

  /** The URL by which users name an agent's cluster in an Application of this name; undefined: they name the agent. */
  urlFor(name: string, agent: string): string | undefined {
    return this.#scene.unkind.has('clusterSecrets') && name === 'web' ? urlOfCluster(agent) : undefined;
  }

  /** Calls the listener for what is away, and then after each change, until the signal is aborted. */
  follow(listener: (url: string, isAway: boolean) => void, signal: AbortSignal): void {
    for (const url of this.#away) {
      listener(url, true);
    }
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#listeners.delete(listener));
  }

  /** Somebody changes a cluster Secret on the hub; undefined: nobody does, this time. */
  change(): string | undefined {
    const { unkind, time, sites } = this.#scene;
    const name = unkind.strikes('clusterSecrets', 0.1) ? unkind.dice.pick(sites)?.name : undefined;
    if (name === undefined) {
      return undefined;
    }
    const url = urlOfCluster(name);
    this.#away.add(url);
    this.#tell(url, true);
    time.after(unkind.dice.delay(someMs), () => this.#back(url));
    return `user on hub: no cluster Secret has ${url}`;
  }

  /** Every Secret is there again. */
  calm(): void {
    for (const url of this.#away) {
      this.#back(url);
    }
  }

  #back(url: string): void {
    if (this.#away.delete(url)) {
      this.#tell(url, false);
    }
  }

  #tell(url: string, isAway: boolean): void {
    for (const listener of this.#listeners) {
      listener(url, isAway);
    }
  }
}

/** What one principal makes of the Secrets' URLs for the Applications of the hub. */
export class UrlsOfPrincipal {
  readonly #agentOf: (application: Application) => string | undefined;
  readonly #away = new Set<string>();

  /** @param agentOf the agent of an Application while all Secrets are there */
  constructor(agentOf: (application: Application) => string | undefined) {
    this.#agentOf = agentOf;
  }

  agentOf(application: Application): string | undefined {
    return this.#isAway(application) ? undefined : this.#agentOf(application);
  }

  isUndecided(application: Application): boolean {
    return this.#isAway(application) && this.#agentOf(application) !== undefined;
  }

  /** A Secret went, or is back. */
  set(url: string, isAway: boolean): void {
    if (isAway) {
      this.#away.add(url);
    } else {
      this.#away.delete(url);
    }
  }

  #isAway(application: Application): boolean {
    const url = this.#away.size === 0 ? undefined : routingUrl(application);
    return url !== undefined && this.#away.has(url);
  }
}
