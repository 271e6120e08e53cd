import {
  Inbox,
  type ObjectRef,
  type Runtime,
  type Store,
  type StoreChange,
  type Tuning,
  type View,
} from '../../sync/index.ts';
import type { Copy, CopySync, ObjectMessage } from '../peer/kind-sync.ts';
import type { PeerConnection, RequestUpdate } from '../peer/messages.ts';
import type { SyncStats } from '../peer/stats.ts';
import { CopyKeeper } from './copy-keeper.ts';
import type { ReplicaKind, ReplicaObject } from './kinds.ts';
import type { ReplicaRules } from './replica-rules.ts';

/** A message about an object of a {@link ReplicaKind}. */
export type ReplicaMessage = Exclude<ObjectMessage, { readonly target: 'application' }>;

/** How a {@link Replica} works. */
export interface ReplicaOptions<T extends ReplicaObject> {
  readonly kind: ReplicaKind<T>;
  readonly rules: ReplicaRules<T>;
  readonly store: Store<T>;
  /** What is here, followed by the owner, which passes changes on to {@link Replica.localChange}. */
  readonly view: View<T>;
  readonly namespace: string;
  /** Stands in every log line. */
  readonly peer: object;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
  /** Hears what cannot be had here and why, once per reason. */
  readonly onFailure?: (name: string, message: string) => void;
}

type Work =
  | { readonly is: 'message'; readonly name: string; readonly message: ReplicaMessage; readonly connection: number }
  | { readonly is: 'reconcile'; readonly name: string; readonly id: string; readonly doubtful: boolean };

/**
 * Copies of one source's objects: made what the source says, put back when others change them, taken away when the source
 * takes away its own. Level-triggered: every message, local change and retry leads to one look at what is wanted and what
 * is there, in the object's own lane.
 */
export class Replica<T extends ReplicaObject> implements CopySync {
  readonly kind;
  readonly #options: ReplicaOptions<T>;
  readonly #keeper: CopyKeeper<T>;
  readonly #inbox: Inbox<Work>;
  #connection: PeerConnection | undefined;
  #connections = 0;
  #requestUpdate: (ref: ObjectRef) => void = () => undefined;

  /** @param signal ends all work */
  constructor(options: ReplicaOptions<T>, signal: AbortSignal) {
    this.kind = options.kind.kind;
    this.#options = options;
    const { kind, peer } = options;
    const { log } = options.runtime;
    this.#keeper = new CopyKeeper({ ...options, reconcile: (name) => this.reconcile(name) });
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, aborted) => this.#apply(work, aborted),
        acknowledge: (work) => {
          if (work.is === 'message') {
            this.#connection?.acknowledge(work.message);
          }
        },
        laneOf: ({ name }) => name,
        idOf: (work) =>
          work.is === 'reconcile' ? work.id : `${work.message.type}/${work.message.resourceId}/${work.message.eventId}`,
        supersedes,
        onError: (error, { name }, attempt) =>
          log.warn({ ...peer, [kind.field]: name, attempt, err: error }, `${kind.noun} not written, will retry`),
        runtime: options.runtime,
        tuning: options.tuning,
      },
      signal,
    );
    signal.addEventListener('abort', () => this.close());
  }

  /** Takes what is there for what is wanted, until the source says something else: it is protected meanwhile. */
  adoptFound(): void {
    this.#keeper.adoptFound();
  }

  connected(connection: PeerConnection): void {
    this.#connection = connection;
    this.#connections++;
    this.#inbox.reconnected();
  }

  disconnected(): void {
    this.#connection = undefined;
  }

  writable(): void {
    // Nothing is sent but acknowledgements.
  }

  acknowledged(): boolean {
    return false;
  }

  receive(message: ObjectMessage): boolean {
    if (message.target === 'application' || message.target !== this.#options.kind.target) {
      return false;
    }
    const name = this.#options.rules.localName(message.object.metadata.name);
    this.#inbox.receive({ is: 'message', name, message, connection: this.#connections });
    return true;
  }

  /** The owner's view changed. */
  localChange({ name }: ObjectRef, { now }: StoreChange<T>): void {
    this.#keeper.localChange(name, now);
  }

  /** Something may be out of step. `doubtful`: the cache may be wrong about it. */
  reconcile(name: string, doubtful = false): void {
    this.#inbox.receive({ is: 'reconcile', name, id: this.#options.runtime.newId(), doubtful });
  }

  copies(): Iterable<Copy> {
    return this.#keeper.copies();
  }

  holding(ref: ObjectRef): RequestUpdate {
    return this.#keeper.holding(ref, this.#inbox.isBusy(ref.name));
  }

  onDoubt(requestUpdate: (ref: ObjectRef) => void): void {
    this.#requestUpdate = requestUpdate;
  }

  localRef({ name }: { readonly name: string }): ObjectRef {
    return this.#keeper.refOf(this.#options.rules.localName(name));
  }

  sourceRestarted(): void {
    // It is told of all copies, and there is nothing else to tell.
  }

  stats(): SyncStats {
    return {
      pending: 0,
      inFlight: 0,
      queued: this.#inbox.queued,
      retrying: this.#inbox.retrying + this.#keeper.troubles,
    };
  }

  close(): void {
    this.#connection = undefined;
    this.#keeper.close();
  }

  async #apply(work: Work, signal: AbortSignal): Promise<'done' | 'retry'> {
    if (work.is === 'reconcile') {
      if (work.doubtful) {
        await this.#keeper.read(work.name, signal);
      }
      return this.#keeper.bringInStep(work.name, true, signal);
    }
    const { name, message, connection } = work;
    if (connection !== this.#connections) {
      // The source may have lost its memory since it said this, and then it cannot know that it did.
      this.#requestUpdate(this.#keeper.refOf(name));
    }
    if (message.type === 'delete') {
      return this.#keeper.remove(name, message.object.metadata.uid ?? '', signal);
    }
    return this.#keeper.want(name, message.object as unknown as T)
      ? this.#keeper.bringInStep(name, false, signal)
      : 'done';
  }
}

/** Whether the older work need not be done when the newer one is. */
function supersedes(newer: Work, older: Work): boolean {
  if (older.is === 'reconcile') {
    return newer.is === 'reconcile'
      ? newer.doubtful || !older.doubtful
      : newer.message.type !== 'delete' && !older.doubtful;
  }
  return newer.is === 'message' && newer.message.type !== 'delete' && older.message.type !== 'delete';
}
