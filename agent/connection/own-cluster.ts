import { annotations, clusterUrl } from '../../lib/argocd/index.ts';
import { type Logger, wellKnown } from '../../lib/base/index.ts';
import { type Informer, type KubeClient, type Secret, secrets } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';

/** Argo CD's URL of the cluster that it runs on. */
export const ownServer = 'https://kubernetes.default.svc';

/**
 * The cluster Secret of the agent's own cluster in its Argo CD. Most clusters have none: Argo CD needs none for the cluster that it runs
 * on. Only through it can Argo CD be asked to drop its cache of that cluster.
 */
export class OwnCluster {
  readonly #client: Pick<KubeClient, 'mergePatch'>;
  readonly #secrets: Pick<Informer<Secret>, 'list' | 'subscribe'>;
  readonly #fieldManager: string;
  readonly #logger: Logger;
  #isDropping = false;

  constructor(options: {
    client: Pick<KubeClient, 'mergePatch'>;
    /** Of Argo CD's namespace. */
    secrets: Pick<Informer<Secret>, 'list' | 'subscribe'>;
    fieldManager: string;
    logger: Logger;
  }) {
    this.#client = options.client;
    this.#secrets = options.secrets;
    this.#fieldManager = options.fieldManager;
    this.#logger = options.logger;
  }

  /** Whether the Secret is there. */
  get isKnown(): boolean {
    return this.#found().length > 0;
  }

  /** Calls back when {@link isKnown} may have changed. */
  onChanged(listener: () => void): void {
    this.#secrets.subscribe({ added: listener, updated: listener, deleted: listener });
  }

  /** Asks Argo CD to drop its cache, as its API server does. What is asked for meanwhile is the same request. Failures are logged. */
  async dropCache(signal: AbortSignal): Promise<void> {
    if (this.#isDropping) {
      return;
    }
    this.#isDropping = true;
    try {
      // This cluster's clock: Argo CD compares it with the time of its own last reading.
      const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
      const patch = { metadata: { annotations: { [annotations.refresh]: now } } };
      for (const { metadata } of this.#found()) {
        const { namespace, name } = metadata;
        const options = { fieldManager: this.#fieldManager, signal };
        await this.#client.mergePatch(secrets, { namespace, name }, patch, options);
        this.#logger.info({ secret: name }, 'Argo CD is asked to drop its cache of the cluster');
      }
    } catch (error) {
      if (!signal.aborted) {
        this.#logger.warn({ error }, 'Argo CD cannot be asked to drop its cache of the cluster');
      }
    } finally {
      this.#isDropping = false;
    }
  }

  #found(): Secret[] {
    return this.#secrets
      .list()
      .filter(
        (secret) =>
          secret.metadata.labels?.[wellKnown.secretTypeLabel] === 'cluster' &&
          clusterUrl(decodeSecret(secret).server ?? '') === ownServer,
      );
  }
}
