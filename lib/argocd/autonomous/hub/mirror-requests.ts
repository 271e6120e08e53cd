import { BoundedSet, digestOf, type MergePatch } from '../../../base/index.ts';
import { Outbox, type ResourceKey, type Runtime, type Tuning, type View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { ReportContext } from '../../managed/status.ts';
import { annotations } from '../../names.ts';
import { isRunning, isSameOperation } from '../../operation-state.ts';
import type { LateObject } from '../../peer/kind-sync.ts';
import type { Message, PeerConnection } from '../../peer/messages.ts';
import { lateObjects } from '../../peer/source-peer.ts';
import { triggersOf } from '../../triggers.ts';

/** What the agent had received of the requests on a mirror when it sent a report: the report can answer only these. */
export interface ReceivedRequests {
  /** The mark of the operation, 0 when there was none; undefined: it has not received what is there. */
  readonly operation: number | undefined;
  /** The same of the triggers. */
  readonly triggers: number | undefined;
  /** It does not know yet that the operation is to end. */
  readonly terminating: boolean;
}

/** How {@link MirrorRequests} work. */
export interface MirrorRequestsOptions {
  readonly agent: string;
  readonly principalUid: string;
  /** The hub's Applications. */
  readonly view: Pick<View<Application>, 'versionOf'>;
  /** The mirror of this name as it is now. */
  readonly read: (name: string) => Application | undefined;
  /** UID of the agent's Application that it shows, whatever users made of it. */
  readonly sourceUid: (name: string) => string | undefined;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

interface Known {
  readonly uid: string;
  readonly digest: string;
  /** Its number among all that were seen: a user may ask for the same again, which a report about the first time does not answer. */
  readonly mark: number;
  /** The agent has told of it. */
  readonly isReported?: boolean;
}

/** Attempts to remove the triggers of one mirror that are remembered while no watch has shown that they are gone. */
const mostRemovals = 100;

/** The mark where no request is. */
const nothing = 0;

type IntentType = 'spec-update' | 'set-operation' | 'terminate-operation';

/**
 * What users ask of Argo CD on the mirrors of one agent: seen on the mirror, sent to the agent until it acknowledges,
 * across disconnections. Nothing but requests is sent: the agent owns the rest.
 */
export class MirrorRequests {
  readonly #options: MirrorRequestsOptions;
  readonly #outbox: Outbox<Application>;
  /** A separate outbox: an operation that waits for the end of another one must not delay the termination of that one. */
  readonly #terminations: Outbox<Application>;
  /** The operation on a mirror that the agent has received or is about to receive, or reported itself. */
  readonly #operations = new Map<string, Known>();
  readonly #triggers = new Map<string, Known>();
  /**
   * Times of writes that remove a mirror's triggers, as they stand on the mirror afterwards. A trigger beside such a time was set
   * after that write, whose answer was lost, however much it looks like the answered one.
   */
  readonly #removals = new Map<string, BoundedSet<string>>();
  /** Mirror → uid of those whose termination the agent knows or is about to know. */
  readonly #terminating = new Map<string, string>();
  #lastMark = nothing;

  constructor(options: MirrorRequestsOptions) {
    this.#options = options;
    this.#outbox = outboxOf(options);
    this.#terminations = outboxOf(options);
  }

  get pending(): number {
    return this.#outbox.pending + this.#terminations.pending;
  }

  /** For how long the oldest request that the agent has not acknowledged has waited, in milliseconds. */
  get oldestMs(): number {
    return Math.max(this.#outbox.oldestMs, this.#terminations.oldestMs);
  }

  /** Some mirrors whose requests have waited for longer than `afterMs`, at most `most`. */
  late(afterMs: number, most: number): readonly LateObject[] {
    return lateObjects(this.#outboxes, afterMs, most);
  }

  get inFlight(): number {
    return this.#outbox.inFlight + this.#terminations.inFlight;
  }

  connected(connection: PeerConnection): void {
    for (const outbox of this.#outboxes) {
      outbox.connected({
        send: (delivery) => {
          if (delivery.type === 'intent') {
            const { resourceId, eventId, snapshot, intent } = delivery;
            return connection.send(this.#message(intent as IntentType, { resourceId, eventId }, snapshot.object));
          }
          // The agent knows the state, it is its own.
          outbox.acknowledged(delivery.resourceId, delivery.eventId);
          return true;
        },
      });
    }
  }

  disconnected(): void {
    for (const outbox of this.#outboxes) {
      outbox.disconnected();
    }
  }

  writable(): void {
    for (const outbox of this.#outboxes) {
      outbox.writable();
    }
  }

  acknowledged({ resourceId, eventId }: { readonly resourceId: string; readonly eventId: string }): boolean {
    return this.#outboxes.some((outbox) => outbox.acknowledged(resourceId, eventId));
  }

  /** Detects new requests on a mirror as it is now. */
  follow(name: string, mirror: Application | undefined): void {
    if (mirror === undefined) {
      const wasKnown = [this.#operations, this.#triggers, this.#terminating, this.#removals].map((known) =>
        known.delete(name),
      );
      if (wasKnown.includes(true)) {
        for (const outbox of this.#outboxes) {
          outbox.changed(this.#key(name));
        }
      }
      return;
    }
    if (this.#options.sourceUid(name) === undefined) {
      // Not known yet whose mirror it is.
      return;
    }
    this.#followOperation(name, mirror);
    this.#followTermination(name, mirror);
    this.#followTriggers(name, mirror);
  }

  /** What the agent has received at this moment. */
  received(name: string): ReceivedRequests {
    const mirror = this.#options.read(name);
    const key = this.#key(name);
    return {
      operation: this.#outbox.requested(key, 'set-operation') ? undefined : this.#operationMark(mirror),
      triggers: this.#outbox.requested(key, 'spec-update') ? undefined : this.#triggerMark(mirror),
      terminating: this.#terminations.requested(key, 'terminate-operation'),
    };
  }

  /** What a report can answer, given what the agent had received when it sent it. */
  context(mirror: Application, received: ReceivedRequests): ReportContext {
    const operation = this.#operationMark(mirror);
    const triggers = this.#triggerMark(mirror);
    // A report that came before the operation stood here may be of a later time than the one that brought it.
    const known = this.#operations.get(mirror.metadata.name);
    const isOwn = known?.isReported === true && known.mark === operation;
    return {
      operationDelivered: (operation !== undefined && received.operation === operation) || isOwn,
      triggersDelivered: triggers !== undefined && received.triggers === triggers,
      terminating: received.terminating,
      hasShown: (startedAt) => mirror.metadata.annotations?.[annotations.reportedOperation] === startedAt,
    };
  }

  /** A report is about to be written: it must not count as a user's request when the hub shows it. */
  expect(name: string, mirror: Application, source: Application, patch: MergePatch): void {
    const uid = mirror.metadata.uid ?? '';
    // What the user asked for may stay where it is, and then is still the request.
    if (source.operation !== undefined && patch.operation !== undefined) {
      this.#operations.set(name, { ...this.#seen(uid, digestOf(source.operation)), isReported: true });
    }
    if (source.status?.operationState?.phase === 'Terminating') {
      this.#terminating.set(name, uid);
    }
    const written = (patch.metadata as { readonly annotations?: MergePatch } | undefined)?.annotations ?? {};
    const at = written[annotations.lastUpdated];
    if (typeof at === 'string' && Object.keys(triggersOf(mirror)).some((trigger) => written[trigger] === null)) {
      const removals = this.#removals.get(name) ?? new BoundedSet<string>(mostRemovals);
      this.#removals.set(name, removals.add(at));
    }
  }

  /** Stops all timers. */
  close(): void {
    for (const outbox of this.#outboxes) {
      outbox.close();
    }
  }

  get #outboxes(): readonly Outbox<Application>[] {
    return [this.#outbox, this.#terminations];
  }

  #followOperation(name: string, { metadata, operation, status }: Application): void {
    const { uid = '' } = metadata;
    const key = this.#key(name);
    if (operation === undefined) {
      this.#operations.delete(name);
      this.#outbox.withdraw(key, 'set-operation');
      return;
    }
    const digest = digestOf(operation);
    const known = this.#operations.get(name);
    if (known?.uid === uid && known.digest === digest) {
      return;
    }
    const isInProgress = isRunning({ metadata, spec: {}, ...(status === undefined ? {} : { status }) });
    const isSame = isSameOperation(status?.operationState?.operation, operation);
    if (isInProgress && !isSame) {
      // Argo CD forgets an operation that is set while another runs: this one's turn is after that.
      return;
    }
    this.#operations.set(name, this.#seen(uid, digest));
    // Seen for the first time, after a restart: when the agent reports progress of it, the agent has it.
    if (known?.uid === uid || !isInProgress) {
      this.#outbox.request(key, 'set-operation');
    }
  }

  #followTermination(name: string, { metadata, status }: Application): void {
    if (status?.operationState?.phase !== 'Terminating') {
      this.#terminating.delete(name);
    } else if (this.#terminating.get(name) !== metadata.uid) {
      this.#terminating.set(name, metadata.uid ?? '');
      this.#terminations.request(this.#key(name), 'terminate-operation');
    }
  }

  #followTriggers(name: string, mirror: Application): void {
    const { uid = '' } = mirror.metadata;
    const digest = this.#triggerDigest(mirror);
    const known = this.#triggers.get(name);
    if (digest === '') {
      this.#triggers.delete(name);
      this.#removals.delete(name);
      this.#outbox.withdraw(this.#key(name), 'spec-update');
    } else if (known?.uid !== uid || known.digest !== digest) {
      this.#triggers.set(name, this.#seen(uid, digest));
      this.#outbox.request(this.#key(name), 'spec-update');
    }
  }

  #message(type: IntentType, address: { resourceId: string; eventId: string }, mirror: Application): Message {
    const { principalUid } = this.#options;
    // argocd-agent's principal names itself in everything but operations.
    const stamp = type === 'set-operation' ? {} : { principalUid };
    const common = { target: 'application', type, ...address, ...stamp } as const;
    const { operation, ...others } = mirror;
    const { metadata } = mirror;
    const sourceUid = this.#options.sourceUid(metadata.name) ?? '';
    const object = {
      ...others,
      metadata: { ...metadata, annotations: { ...metadata.annotations, [annotations.sourceUid]: sourceUid } },
    };
    return { ...common, object: type === 'spec-update' || operation === undefined ? object : { ...object, operation } };
  }

  /** A request that was not there before. */
  #seen(uid: string, digest: string): Known {
    return { uid, digest, mark: ++this.#lastMark };
  }

  /** The mark of the operation that stands on a mirror; undefined when it is not known yet. */
  #operationMark(mirror: Application | undefined): number | undefined {
    return markOf(this.#operations, mirror, mirror?.operation === undefined ? '' : digestOf(mirror.operation));
  }

  #triggerMark(mirror: Application | undefined): number | undefined {
    return markOf(this.#triggers, mirror, mirror === undefined ? '' : this.#triggerDigest(mirror));
  }

  /** Of the triggers that stand on a mirror; empty: there are none. */
  #triggerDigest(mirror: Application): string {
    const triggers = triggersOf(mirror);
    if (Object.keys(triggers).length === 0) {
      return '';
    }
    const { name, annotations: { [annotations.lastUpdated]: at = '' } = {} } = mirror.metadata;
    return digestOf(this.#removals.get(name)?.has(at) ? { triggers, at } : triggers);
  }

  #key(name: string): ResourceKey {
    return { kind: 'Application', namespace: this.#options.agent, name };
  }
}

function outboxOf({ read, view, runtime, tuning }: MirrorRequestsOptions): Outbox<Application> {
  return new Outbox<Application>({
    source: {
      read: ({ name }) => {
        const object = read(name);
        return object && { uid: object.metadata.uid ?? '', version: view.versionOf(object), digest: '', object };
      },
    },
    sendsDeletes: false,
    runtime,
    tuning,
  });
}

function markOf(
  requests: ReadonlyMap<string, Known>,
  mirror: Application | undefined,
  digest: string,
): number | undefined {
  if (mirror === undefined || digest === '') {
    return nothing;
  }
  const known = requests.get(mirror.metadata.name);
  return known?.uid === mirror.metadata.uid && known?.digest === digest ? known.mark : undefined;
}
