import { type ObjectRef, Outbox, type Runtime, refOf, type Tuning, type View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { annotations } from '../../names.ts';
import type { PeerConnection } from '../../peer/messages.ts';
import { ReliableMessages } from '../../peer/reliable-messages.ts';
import { placeOf } from '../../place.ts';
import type { AgentNamespaces } from './agent-namespaces.ts';
import { applicationKey } from './copy-work.ts';
import { isManaged } from './desired-copy.ts';
import { type ReportAdditions, ReportSource } from './report-source.ts';

/** What a {@link Reporter} needs of its agent. */
export interface ReporterOptions {
  readonly view: View<Application>;
  readonly namespaces: AgentNamespaces;
  /** What the agent adds to what a copy says of itself. */
  readonly additionsFor: (ref: ObjectRef) => ReportAdditions;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** Tells the principal of the copies of managed mode: how each is, that one is gone, that one cannot be made. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #source: ReportSource;
  readonly #reports: Outbox<Application>;
  readonly #messages: ReliableMessages;

  constructor(options: ReporterOptions) {
    this.#options = options;
    const { view, additionsFor } = options;
    this.#source = new ReportSource(options.runtime.today);
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
      // That an Application is gone is said only to a principal that waits for it (see `gone`).
      sendsDeletes: false,
    });
  }

  /** What is to be said, and what of it is not acknowledged. */
  get pending(): number {
    return this.#reports.pending + this.#messages.pending;
  }

  /** Reports on their way. */
  get inFlight(): number {
    return this.#reports.inFlight;
  }

  connected(connection: PeerConnection): void {
    this.#messages.connected(connection);
    this.#reports.connected({
      send: (delivery) =>
        !('snapshot' in delivery) ||
        connection.send({
          target: 'application',
          type: 'status-update',
          resourceId: delivery.resourceId,
          eventId: delivery.eventId,
          object: this.#options.namespaces.asReported(delivery.snapshot.object),
        }),
    });
  }

  disconnected(): void {
    this.#messages.disconnected();
    this.#reports.disconnected();
  }

  writable(): void {
    this.#messages.writable();
    this.#reports.writable();
  }

  /** The principal has heard something; false when it was nothing of this. */
  acknowledged({ resourceId, eventId }: { readonly resourceId: string; readonly eventId: string }): boolean {
    return this.#messages.acknowledged(resourceId, eventId) || this.#reports.acknowledged(resourceId, eventId);
  }

  /** The copy, or what is remarked on it, may have changed. */
  changed(ref: ObjectRef): void {
    this.#reports.changed(applicationKey(ref));
  }

  /** The principal has to hear of the copy once more, as it is now. */
  repeat(ref: ObjectRef): void {
    this.#reports.repeat(applicationKey(ref));
  }

  /** The principal knows nothing any more. */
  repeatAll(): void {
    this.#reports.repeatAll();
    for (const application of this.#options.view.values()) {
      this.changed(refOf(application));
    }
  }

  /** Whether the principal has heard of the copy. */
  hasReported(ref: ObjectRef): boolean {
    return this.#reports.held(applicationKey(ref)) !== undefined;
  }

  /** There is no copy of this source any more: the principal keeps its deleted object until it hears this. */
  gone(ref: ObjectRef, sourceUid: string): void {
    const { namespaces } = this.#options;
    const { log } = this.#options.runtime;
    log.info({ application: placeOf(ref) }, 'Application is gone');
    const metadata = { ...ref, annotations: { [annotations.sourceUid]: sourceUid } };
    // With a uid of its own: the hub's stands in the ids of the principal's events, the copy's in those of reports.
    this.#messages.post(`gone-${placeOf(ref)}`, (uid) => ({
      target: 'application',
      type: 'delete',
      object: namespaces.asReported({ metadata: { ...metadata, uid }, spec: {} }),
    }));
  }

  /** Something stands in the way of a copy: the principal's user must hear it. */
  problem(ref: ObjectRef, message: string): void {
    const { view, namespaces } = this.#options;
    if (isManaged(view.get(ref))) {
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
