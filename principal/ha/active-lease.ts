import { randomBytes } from 'node:crypto';
import { annotations } from '../../lib/argocd/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import { KubeClient, LeadershipLostError, type LeaseOptions, runWithLease } from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import type { LeaseSettings } from './settings.ts';

/** How a turn of {@link ActiveLease.hold} has ended. */
export type LeaseEnd = 'returned' | 'lost' | 'other-hub';

/**
 * The Lease in a third cluster that one of two hubs holds while it is active. Principals that share the agents of a hub hold it
 * together: each renews it, and counts its own renewals alone.
 */
export class ActiveLease {
  readonly #settings: LeaseSettings;
  readonly #client: KubeClient;
  readonly #hub: string;
  readonly #identity: string;
  readonly #logger: Logger;
  #holder = '';
  #isOurs = false;
  /** Another hub that was active last. */
  #last = '';

  /**
   * @param hub the identity of this hub, which survives restarts
   * @param isShared whether this is one of several principals of the hub
   * @throws FatalError when the kubeconfig cannot be read
   */
  constructor(settings: LeaseSettings, hub: string, isShared: boolean, logger: Logger) {
    const { kubeconfig, kubecontext } = settings;
    this.#settings = settings;
    this.#hub = hub;
    this.#identity = isShared ? hub : `${hub}_${randomBytes(5).toString('hex')}`;
    this.#logger = logger;
    try {
      this.#client = KubeClient.fromKubeconfig(kubeconfig, kubecontext || undefined, {
        userAgent: 'argocd-agent',
        requestTimeoutMs: settings.renewDeadlineMs,
      });
    } catch (cause) {
      const { message } = cause as Error;
      throw new FatalError(`--ha-lease-kubeconfig (ARGOCD_PRINCIPAL_HA_LEASE_KUBECONFIG): ${message}`, { cause });
    }
  }

  /** In words, for the status. */
  get description(): string {
    const where = `Lease ${this.#namespace}/${this.#settings.name} at ${this.#client.server}`;
    if (this.#isOurs) {
      return `${where}, held by this hub`;
    }
    const last = this.#last && `; the hub ${this.#last} was active last`;
    return `${where}, held by ${this.#holder || 'nobody that was seen'}${last}`;
  }

  /**
   * Takes the Lease for this hub, whichever was active last, once its holder has not renewed it for its duration, and leaves it
   * for {@link hold}. False when the signal is aborted before.
   */
  async take(signal: AbortSignal): Promise<boolean> {
    let isTaken = false;
    await this.#run(signal, {
      mayRelease: () => false,
      lead: async () => {
        isTaken = true;
      },
    });
    return isTaken;
  }

  /**
   * Waits for the Lease, then runs the work until it returns, the signal is aborted or the Lease is lost. Gives up as soon as
   * another hub is seen to hold it, although that may not renew it any more, or to have been the last to hold it.
   * @param mayRelease whether the Lease is given back at the end
   */
  async hold(
    signal: AbortSignal,
    lead: (signal: AbortSignal, fence: () => void) => Promise<void>,
    mayRelease: () => boolean,
  ): Promise<LeaseEnd> {
    const other = new AbortController();
    let hasLed = false;
    try {
      await this.#run(AbortSignal.any([signal, other.signal]), {
        mayRelease,
        mayTake: ({ metadata }) => {
          const last = metadata.annotations?.[annotations.lastActiveHub] ?? this.#hub;
          if (!hasLed && last !== this.#hub) {
            this.#last = last;
            other.abort();
            return false;
          }
          return true;
        },
        onLeader: (holder) => {
          if (!hasLed && !this.#isThisHub(holder)) {
            other.abort();
          }
        },
        lead: async (leading, fence) => {
          hasLed = true;
          this.#isOurs = true;
          this.#last = '';
          await lead(leading, fence);
        },
      });
      return other.signal.aborted ? 'other-hub' : 'returned';
    } catch (error) {
      if (error instanceof LeadershipLostError) {
        return 'lost';
      }
      throw error;
    } finally {
      this.#isOurs = false;
    }
  }

  #run(
    signal: AbortSignal,
    { onLeader, ...rest }: Pick<LeaseOptions, 'lead' | 'mayRelease' | 'mayTake' | 'onLeader'>,
  ): Promise<void> {
    const { durationMs, renewDeadlineMs, name } = this.#settings;
    return runWithLease({
      client: this.#client,
      namespace: this.#namespace,
      name,
      identity: this.#identity,
      leaseDurationMs: durationMs,
      renewDeadlineMs,
      retryPeriodMs: Math.min(2_000, renewDeadlineMs / 5),
      signal,
      annotations: { [annotations.lastActiveHub]: this.#hub },
      onLeader: (holder) => {
        this.#holder = holder;
        onLeader?.(holder);
      },
      ...rest,
      logger: this.#logger,
    });
  }

  #isThisHub(holder: string): boolean {
    return holder === this.#hub || holder.startsWith(`${this.#hub}_`);
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  get #namespace(): string {
    return this.#settings.namespace || this.#client.namespace || 'default';
  }
}
