import type { TokenAuthority } from '../../lib/auth/index.ts';
import { isDnsLabel, type Logger } from '../../lib/base/index.ts';
import {
  agentClusterSecretName,
  type ClusterEntry,
  newClusterSecret,
  outdatedFields,
  type ProxyIdentity,
  selfRegisteredAgent,
  tokenOf,
} from '../../lib/clusters/index.ts';
import {
  type Informer,
  isAlreadyExists,
  isConflict,
  type KubeClient,
  type Secret,
  secrets,
  WorkQueue,
  type WorkQueueObserver,
} from '../../lib/kube/index.ts';
import type { Reloadable } from '../../lib/ops/index.ts';
import type { MappedAgents } from './mapped-agents.ts';

/** What {@link SelfRegistration} works with. */
export interface SelfRegistrationOptions {
  readonly client: Pick<KubeClient, 'create' | 'mergePatch'>;
  readonly secrets: Pick<Informer<Secret>, 'get' | 'subscribe'>;
  readonly agents: Pick<MappedAgents, 'has'>;
  /** Argo CD's namespace on the hub. */
  readonly namespace: string;
  /** host:port at which Argo CD reaches the resource proxy. */
  readonly address: string;
  /** The client certificate that all self-registered clusters share. */
  readonly identity: Pick<Reloadable<ProxyIdentity>, 'value' | 'origin' | 'problem' | 'subscribe'>;
  readonly observer?: WorkQueueObserver;
  readonly logger: Logger;
}

/** The tokens of the cluster Secrets. */
export type ClusterTokens = Pick<TokenAuthority, 'issueResourceProxy' | 'isLastingResourceProxy'>;

/** Clusters that may register themselves: who can make up names must not fill the hub's etcd. */
const mostClusters = 5_000;
const fieldManager = 'argocd-agent-principal';

/**
 * Makes the cluster Secret of an agent that logs in and has none, and keeps those that were made this way up to date: address of
 * the proxy, shared certificate, token. Secrets of others are never touched, and none is ever removed: the cluster of an agent that
 * stays away remains known, as with argocd-agent.
 *
 * Unlike there, an agent is let in while its Secret cannot be written; it gets its Applications when it is.
 */
export class SelfRegistration {
  readonly #options: SelfRegistrationOptions;
  readonly #queue: WorkQueue;
  /** Agents whose Secrets were made this way. */
  readonly #registered = new Set<string>();
  /** Agents that have logged in and have no Secret yet. */
  readonly #newcomers = new Set<string>();
  #tokens: ClusterTokens | undefined;

  constructor(options: SelfRegistrationOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      name: 'self-registration',
      handler: (agent, signal) => this.#bring(agent, signal),
      concurrency: 4,
      backoff: { initialMs: 200, maxMs: 60_000 },
      onFailure: (agent, failures, error) => {
        const fields = { agent, failures, error };
        // Another writer was faster; the cache will have it at the next attempt.
        if (failures < 3 && (isConflict(error) || isAlreadyExists(error))) {
          options.logger.debug(fields, 'a cluster Secret has changed meanwhile');
        } else {
          options.logger.warn(fields, "an agent's cluster Secret cannot be written");
        }
      },
      ...(options.observer === undefined ? {} : { observer: options.observer }),
    });
    const { secrets: cache, identity } = options;
    cache.subscribe({
      added: (secret) => this.#seen(secret),
      updated: (old, now) => {
        this.#gone(old);
        this.#seen(now);
      },
      deleted: (last) => this.#gone(last),
    });
    identity.subscribe(() => this.renew());
  }

  /** An agent has proved who it is. */
  loggedIn(agent: string): void {
    const { agents, namespace, logger } = this.#options;
    // An agent of that name may not connect either; and a name becomes part of the Secret's.
    if (!isDnsLabel(agent) || agent === namespace) {
      return;
    }
    if (!agents.has(agent) && !this.#registered.has(agent)) {
      if (this.#newcomers.size + this.#registered.size >= mostClusters) {
        const hint = 'remove cluster Secrets of agents that are gone, or make its cluster Secret by hand';
        logger.error({ agent, hint }, `an agent cannot register itself: ${mostClusters} clusters have already`);
        return;
      }
      this.#newcomers.add(agent);
    }
    this.#queue.add(agent);
  }

  /** Looks at every Secret that was made this way again: key of the tokens or shared certificate have changed. */
  renew(): void {
    for (const agent of [...this.#registered, ...this.#newcomers]) {
      this.#queue.add(agent);
    }
  }

  /** Works until aborted. */
  async run(tokens: ClusterTokens, signal: AbortSignal): Promise<void> {
    this.#tokens = tokens;
    this.renew();
    await this.#queue.run(signal);
  }

  #seen(secret: Secret): void {
    const agent = selfRegisteredAgent(secret);
    if (agent === undefined) {
      return;
    }
    this.#registered.add(agent);
    this.#newcomers.delete(agent);
  }

  #gone(secret: Secret): void {
    const agent = selfRegisteredAgent(secret);
    if (agent !== undefined) {
      this.#registered.delete(agent);
    }
  }

  async #bring(agent: string, signal: AbortSignal): Promise<void> {
    const { namespace, secrets: cache, agents, client, logger } = this.#options;
    const name = agentClusterSecretName(agent);
    const existing = cache.get({ namespace, name });
    if (existing === undefined) {
      // A Secret of another name is enough; an agent that has never logged in gets none.
      if (agents.has(agent)) {
        this.#newcomers.delete(agent);
      }
      if (!this.#newcomers.has(agent)) {
        return;
      }
      const entry = await this.#entry(agent, '');
      if (entry === undefined) {
        return;
      }
      await client.create(secrets, newClusterSecret(namespace, entry), { fieldManager, signal });
      logger.info({ agent, secret: name }, 'an agent has registered its cluster');
      return;
    }
    if (selfRegisteredAgent(existing) !== agent) {
      this.#newcomers.delete(agent);
      if (agents.has(agent)) {
        return;
      }
      const hint = 'rename or delete it, or label it as the cluster Secret of this agent';
      logger.warn(
        { agent, secret: name, hint },
        'an agent cannot register itself: somebody else has a Secret of that name',
      );
      return;
    }
    const entry = await this.#entry(agent, tokenOf(existing));
    const data = entry && outdatedFields(existing, entry);
    if (data === undefined) {
      return;
    }
    const { uid, resourceVersion } = existing.metadata;
    const patch = { metadata: { uid, resourceVersion }, data };
    await client.mergePatch(secrets, { namespace, name }, patch, { fieldManager, signal });
    logger.info(
      { agent, secret: name, fields: Object.keys(data) },
      'the cluster Secret of an agent was brought up to date',
    );
  }

  /** The desired Secret, with its present token if that is valid; undefined without the shared certificate. */
  async #entry(agent: string, token: string): Promise<ClusterEntry | undefined> {
    const { identity, address, logger } = this.#options;
    const tokens = this.#tokens;
    if (identity.value === undefined || tokens === undefined) {
      const { origin, problem } = identity;
      logger.warn(
        { agent, origin, problem },
        'an agent cannot register itself before the shared client certificate is there',
      );
      return undefined;
    }
    const isGood = token !== '' && (await tokens.isLastingResourceProxy(token, agent));
    return {
      agent,
      address,
      identity: identity.value,
      token: isGood ? token : await tokens.issueResourceProxy(agent),
    };
  }
}
