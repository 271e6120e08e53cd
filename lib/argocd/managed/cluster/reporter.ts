import { type ObjectRef, Outbox, type Runtime, refOf, type Tuning, type View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { copiedFrom } from '../../copied-from.ts';
import { annotations } from '../../names.ts';
import { isInProgress } from '../../operation-state.ts';
import type { PeerConnection } from '../../peer/messages.ts';
import { ReliableMessages } from '../../peer/reliable-messages.ts';
import { placeOf } from '../../place.ts';
import type { AgentNamespaces } from './agent-namespaces.ts';
import { applicationKey } from './copy-work.ts';
import { isManaged } from './desired-copy.ts';
import { type ReportAdditions, ReportSource } from './report-source.ts';

/** An operation that has ended. */
interface End {
  readonly place: string;
  readonly startedAt: string;
}

/** What a {@link Reporter} needs of its agent. */
export interface ReporterOptions {
  readonly view: View<Application>;
  readonly namespaces: AgentNamespaces;
  /** What the agent adds to the status of a copy. */
  readonly additionsFor: (ref: ObjectRef) => ReportAdditions;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** Reports the copies of managed mode to the principal: the status of each, that one is gone, that one cannot be made. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #source: ReportSource;
  readonly #reports: Outbox<Application>;
  readonly #messages: ReliableMessages;
  /** The ended operations that the reports on their way tell of, by resource: each has one report on its way. */
  readonly #endsOnTheirWay = new Map<string, Partial<End> & { readonly eventId: string }>();
  /** When the last operation began whose end the principal has acknowledged, by place. */
  readonly #reportedEnds = new Map<string, string>();

  constructor(options: ReporterOptions) {
    this.#options = options;
    const { view, additionsFor } = options;
    this.#source = new ReportSource(options.runtime.today, (copy) => view.versionOf(copy));
    this.#messages = new ReliableMessages(options.runtime, options.tuning);
    this.#reports = new Outbox<Application>({
      runtime: options.runtime,
      tuning: options.tuning,
      source: {
        read: (key) => {
          const copy = view.get(key);
          return copy !== undefined && isManaged(copy) ? this.#source.of(copy, additionsFor(key)) : undefined;
        },
      },
      // That an Application is gone is reported only to a principal that waits for it (see `gone`).
      sendsDeletes: false,
    });
  }

  /** Reports that are not sent or not acknowledged. */
  get pending(): number {
    return this.#reports.pending + this.#messages.pending;
  }

  /** Reports on their way. */
  get inFlight(): number {
    return this.#reports.inFlight;
  }

  /** For how long the oldest report that the principal has not acknowledged has waited, in milliseconds. */
  get oldestMs(): number {
    return this.#reports.oldestMs;
  }

  connected(connection: PeerConnection): void {
    this.#messages.connected(connection);
    this.#reports.connected({
      send: (delivery) => {
        if (!('snapshot' in delivery)) {
          return true;
        }
        const { resourceId, eventId, snapshot } = delivery;
        const object = this.#options.namespaces.asReported(snapshot.object);
        const isSent = connection.send({ target: 'application', type: 'status-update', resourceId, eventId, object });
        if (isSent) {
          this.#endsOnTheirWay.set(resourceId, { ...endOf(snapshot.object), eventId });
        }
        return isSent;
      },
    });
  }

  disconnected(): void {
    this.#messages.disconnected();
    this.#endsOnTheirWay.clear();
    this.#reports.disconnected();
  }

  writable(): void {
    this.#messages.writable();
    this.#reports.writable();
  }

  /** The principal acknowledged an event; false when it was none of these. */
  acknowledged({ resourceId, eventId }: { readonly resourceId: string; readonly eventId: string }): boolean {
    const sent = this.#endsOnTheirWay.get(resourceId);
    if (sent?.eventId === eventId) {
      this.#endsOnTheirWay.delete(resourceId);
      if (sent.place !== undefined && sent.startedAt !== undefined) {
        this.#reportedEnds.set(sent.place, sent.startedAt);
      }
    }
    return this.#messages.acknowledged(resourceId, eventId) || this.#reports.acknowledged(resourceId, eventId);
  }

  /** When the last operation began whose end the principal has acknowledged; undefined when it has acknowledged none. */
  reportedEnd(ref: ObjectRef): string | undefined {
    return this.#reportedEnds.get(placeOf(ref));
  }

  /** The copy, or what is remarked on it, may have changed. */
  changed(ref: ObjectRef): void {
    this.#reports.changed(applicationKey(ref));
  }

  /** Reports the copy once more, as it is now. */
  repeat(ref: ObjectRef): void {
    this.#reports.repeat(applicationKey(ref));
  }

  /** The principal has lost every report. */
  repeatAll(): void {
    this.#reportedEnds.clear();
    this.#reports.repeatAll();
    for (const application of this.#options.view.values()) {
      this.changed(refOf(application));
    }
  }

  /** Whether the principal has received a report of the copy. */
  hasReported(ref: ObjectRef): boolean {
    return this.#reports.held(applicationKey(ref)) !== undefined;
  }

  /** There is no copy of this source any more: the principal keeps its deleted object until it receives this. */
  gone(ref: ObjectRef, sourceUid: string): void {
    const { namespaces } = this.#options;
    const { log } = this.#options.runtime;
    log.info({ application: placeOf(ref) }, 'Application is gone');
    this.#reportedEnds.delete(placeOf(ref));
    const metadata = { ...ref, annotations: { [annotations.sourceUid]: sourceUid } };
    // With a uid of its own: the hub's stands in the ids of the principal's events, the copy's in those of reports.
    this.#messages.post(`gone-${placeOf(ref)}`, (uid) => ({
      target: 'application',
      type: 'delete',
      object: namespaces.asReported({ metadata: { ...metadata, uid }, spec: {} }),
    }));
  }

  /**
   * A copy cannot be what is desired: the hub shows why.
   * @param sourceUid the hub's object that it is about. Default: that of the copy
   */
  problem(ref: ObjectRef, message: string, sourceUid?: string): void {
    const { view, namespaces } = this.#options;
    const copy = view.get(ref);
    if (isManaged(copy) && copiedFrom(copy) === (sourceUid ?? copiedFrom(copy))) {
      // The copy has not changed: as the same version of it the report would pass for one that was made.
      this.repeat(ref);
    } else {
      const error = () => ({ ...namespaces.hubNameOf(ref), message });
      this.#messages.post(`error-${placeOf(ref)}`, () => ({ target: 'application', type: 'error', error: error() }));
    }
  }

  /** Nothing stands in the way any more. */
  solved(ref: ObjectRef): void {
    this.#messages.withdraw(`error-${placeOf(ref)}`);
    this.repeat(ref);
  }

  /** Stops all timers. */
  close(): void {
    this.#reports.close();
    this.#messages.close();
  }
}

function endOf(copy: Application): End | undefined {
  const state = copy.status?.operationState;
  const startedAt = isInProgress(state) || copy.operation !== undefined ? undefined : state?.startedAt;
  return typeof startedAt === 'string' ? { place: placeOf(refOf(copy)), startedAt } : undefined;
}
