import { jsonSize } from '../../../base/index.ts';
import { failureOf, isAnswer, type ResourceKey, type Runtime } from '../../../sync/index.ts';
import { placeOf } from '../../place.ts';
import { failureText } from '../../writing/failure-text.ts';
import { Failures } from '../../writing/failures.ts';
import { LastingFailures } from '../../writing/lasting-failures.ts';
import type { AgentReport } from './agent-report.ts';

/** How {@link RefusedReports} work. */
export interface RefusedReportsOptions {
  readonly agent: string;
  /** Whether something newer about this Application waits to be written. */
  readonly isOutdated: (key: ResourceKey) => boolean;
  /** Has a report processed once more. It is acknowledged. */
  readonly again: (report: AgentReport) => void;
  /** A report has been refused for a while, for this reason; undefined: it is not refused any more. */
  readonly told: (key: ResourceKey, reason: string | undefined) => void;
  readonly runtime: Runtime;
}

/** Reports that are kept of one agent, and their bytes ({@link jsonSize}). Further ones stay with the agent, unacknowledged. */
const most = 1_000;
const mostBytes = 16 * 1024 * 1024;

/**
 * Reports of one agent that the hub's API server refuses: a policy may deny them for a while, the hub's CRD may be older than
 * the cluster's, a quota may be full. The last one of each Application is kept and tried again ever more rarely, until it is
 * written or a newer one is. It counts as processed, so that neither the agent nor a newer report waits for it: a principal
 * that restarts has all reports sent again. The report of a deletion is never sent again, so it is not acknowledged before it is
 * written.
 */
export class RefusedReports {
  readonly #options: RefusedReportsOptions;
  readonly #failures: Failures;
  readonly #lasting: LastingFailures;
  /** Reasons that were told, by Application. */
  readonly #told = new Map<string, string>();

  constructor(options: RefusedReportsOptions) {
    this.#options = options;
    this.#failures = new Failures(options.runtime);
    this.#lasting = new LastingFailures(options.runtime.clock);
  }

  /** Reports that are kept. */
  get size(): number {
    return this.#failures.size;
  }

  /** A report could not be written. True when it is kept here: then it counts as processed. */
  keeps(report: AgentReport, error: unknown): boolean {
    const reason = failureText(error);
    this.#tell(report, error, reason);
    const bytes = jsonSize(report.message);
    const hasRoom = this.#failures.size < most && this.#failures.bytes + bytes <= mostBytes;
    if (failureOf(error) !== 'rejected' || report.message.type === 'delete' || !hasRoom) {
      return false;
    }
    this.#keep(report, reason, bytes);
    return true;
  }

  /** A report cannot be read. It is told once, until one can: a peer could have something written with each. */
  unreadable(key: ResourceKey, reason: string): void {
    if (!this.#told.has(placeOf(key))) {
      this.#told.set(placeOf(key), reason);
      this.#options.told(key, reason);
    }
  }

  /** A report is written, or there is nothing to write. */
  written({ key }: AgentReport): void {
    const place = placeOf(key);
    this.#failures.solved(place);
    this.#lasting.solved(place);
    if (this.#told.delete(place)) {
      this.#options.told(key, undefined);
    }
  }

  /** Stops all timers. */
  close(): void {
    this.#failures.close();
  }

  #keep(report: AgentReport, reason: string, bytes: number): void {
    const { agent, isOutdated, again, runtime } = this.#options;
    const { key, message } = report;
    const retry = () => (isOutdated(key) ? this.#keep(report, reason, bytes) : again(report));
    if (this.#failures.met(placeOf(key), reason, retry, bytes)) {
      runtime.log.error(
        { agent, application: placeOf(key), report: message.type, reason },
        'the API server refuses what is to be written, it is kept and tried again',
      );
    }
  }

  #tell({ key }: AgentReport, error: unknown, reason: string): void {
    const place = placeOf(key);
    if (isAnswer(error) && this.#lasting.isLasting(place) && this.#told.get(place) !== reason) {
      this.#told.set(place, reason);
      this.#options.told(key, reason);
    }
  }
}
