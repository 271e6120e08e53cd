import { randomBytes } from 'node:crypto';
import { annotations } from '../../lib/argocd/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import { KubeClient, LeadershipLostError, runWithLease } from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import type { LeaseSettings } from './settings.ts';

/** How a turn of {@link ActiveLease.hold} has ended. */
export type LeaseEnd = 'returned' | 'lost' | 'other-hub';

/** The Lease in a third cluster that one of two principals holds while it is active. */
export class ActiveLease {
  readonly #settings: LeaseSettings;
  readonly #client: KubeClient;
  readonly #hub: string;
  readonly #logger: Logger;
  #holder = '';
  #isOurs = false;
  /** Another hub that was active last. */
  #last = '';

  /**
   * @param hub the identity of this hub, which survives restarts
   * @throws FatalError when the kubeconfig cannot be read
   */
  constructor(settings: LeaseSettings, hub: string, logger: Logger) {
    const { kubeconfig, kubecontext } = settings;
    this.#settings = settings;
    this.#hub = hub;
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
   * Waits for the Lease, then runs the work until it returns, the signal is aborted or the Lease is lost.
   * @param yields give up as soon as another hub is seen to hold it, although that may not renew it any more, or to have been
   *   the last to hold it
   */
  async hold(
    signal: AbortSignal,
    yields: boolean,
    lead: (signal: AbortSignal, fence: () => void) => Promise<void>,
  ): Promise<LeaseEnd> {
    const { durationMs, renewDeadlineMs, name } = this.#settings;
    const other = new AbortController();
    let hasLed = false;
    try {
      await runWithLease({
        client: this.#client,
        namespace: this.#namespace,
        name,
        identity: `${this.#hub}_${randomBytes(5).toString('hex')}`,
        leaseDurationMs: durationMs,
        renewDeadlineMs,
        retryPeriodMs: Math.min(2_000, renewDeadlineMs / 5),
        signal: AbortSignal.any([signal, other.signal]),
        annotations: { [annotations.lastActiveHub]: this.#hub },
        mayTake: ({ metadata }) => {
          const last = metadata.annotations?.[annotations.lastActiveHub] ?? this.#hub;
          if (yields && !hasLed && last !== this.#hub) {
            this.#last = last;
            other.abort();
            return false;
          }
          return true;
        },
        onLeader: (holder) => {
          this.#holder = holder;
          if (yields && !hasLed && !holder.startsWith(`${this.#hub}_`)) {
            other.abort();
          }
        },
        lead: async (leading, fence) => {
          hasLed = true;
          this.#isOurs = true;
          this.#last = '';
          await lead(leading, fence);
        },
        logger: this.#logger,
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

  close(): Promise<void> {
    return this.#client.close();
  }

  get #namespace(): string {
    return this.#settings.namespace || this.#client.namespace || 'default';
  }
}
