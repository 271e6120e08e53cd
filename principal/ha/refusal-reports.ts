import { Backoff, type Logger, sleep } from '../../lib/base/index.ts';
import type { PrimaryConnection } from '../../lib/wire/index.ts';
import type { IncomingChanges } from './incoming-changes.ts';

/**
 * Tells the active hub which objects this hub cannot write, whenever that changes. Then an acknowledgement does not stand for
 * them, and waits for them no more. argocd-agent's principal does not know this, and waits for no acknowledgement.
 */
export class RefusalReports {
  readonly #connection: Pick<PrimaryConnection, 'reportRefused'>;
  readonly #changes: IncomingChanges;
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  #isDue = false;
  #isReporting = false;
  #isUnderstood = true;

  constructor(options: {
    readonly connection: Pick<PrimaryConnection, 'reportRefused'>;
    readonly changes: IncomingChanges;
    readonly logger: Logger;
    readonly signal: AbortSignal;
  }) {
    this.#connection = options.connection;
    this.#changes = options.changes;
    this.#logger = options.logger;
    this.#signal = options.signal;
  }

  /** Other objects are refused than before. */
  changed(): void {
    this.#isDue = true;
    if (!this.#isReporting) {
      void this.#report();
    }
  }

  async #report(): Promise<void> {
    const backoff = new Backoff({ initialMs: 500, maxMs: 15_000 });
    this.#isReporting = true;
    while (this.#isDue && this.#isUnderstood && !this.#signal.aborted) {
      this.#isDue = false;
      const refused = new Map(this.#changes.refused);
      this.#changes.excuseOnly(refused.keys());
      try {
        this.#isUnderstood = await this.#connection.reportRefused(
          [...refused.values()].map(({ kind, ref: { namespace = '', name } }) => ({
            kind: kind.name,
            namespace,
            name,
            uid: '',
            specChecksum: Buffer.alloc(0),
            data: Buffer.alloc(0),
          })),
        );
        if (this.#isUnderstood) {
          this.#changes.excuse(refused.keys());
          backoff.reset();
        }
      } catch (error) {
        if (!this.#signal.aborted) {
          this.#isDue = true;
          this.#logger.warn({ error }, 'the active hub cannot be told which of its objects are refused here');
          await sleep(backoff.next(), this.#signal);
        }
      }
    }
    // In the same turn as the look at whether more is due.
    this.#isReporting = false;
  }
}
