import { resourceListChecksum } from '../checksums.ts';
import type { Listed, SourceSync } from './kind-sync.ts';
import type { RequestUpdate, ResyncMessage } from './messages.ts';
import type { Resync, ResyncContext } from './peer-sync.ts';

/** How long a peer that is new to this process may take to report what it holds, before everything is sent to it. */
const introductionMs = 2_000;
/**
 * How long a peer may go on telling after it has acknowledged the question. Agents of the original send what they have to
 * send in any order, 100 ms apart; ours acknowledge when they have told everything.
 */
const shuffleMs = 250;
/**
 * A timer that comes so much too late shows that this process has more to do than it can do at once, as when a fleet comes
 * back to a principal that was restarted: what the peer has said may not have been read yet. To tell it everything would
 * only add to that. It is waited for again, so often at most.
 */
const busyMs = 500;
const mostExtensions = 5;
/** Reported objects that are remembered for the comparison with the list. What comes on top is sent once more. */
const mostReported = 100_000;

/**
 * The resync conversation of the side that owns the objects. A peer that is new to this process is asked what it holds
 * (`request-resource-resync`), and is told nothing before it has answered, so that a restart costs only the differences.
 * What the peer says it holds goes to the part of that kind; what it does not hold is told to the part when the peer has
 * said that it told everything, or asked for at the peer (`response-synced-resource`) when it has not.
 */
export class SourceResync implements Resync {
  readonly #context: ResyncContext<SourceSync>;
  /** What the peer said to hold on this connection. */
  readonly #reported = new Set<string>();
  #introduced = false;
  /** The peer acknowledged the question what it holds. */
  #answered = false;
  /** The peer speaks as the originals do not: its acknowledgement comes last. */
  #acknowledgesLast = false;
  #cancelIntroduction: (() => void) | undefined;
  #extensions = 0;

  constructor(context: ResyncContext<SourceSync>) {
    this.#context = context;
  }

  connected(): void {
    this.#reported.clear();
    this.#answered = false;
    if (this.#introduced) {
      return;
    }
    this.#context.messages.post('introduction', () => ({
      target: 'resourceResync',
      type: 'request-resource-resync',
      payload: {},
    }));
    this.#waitForIntroduction();
  }

  disconnected(): void {
    this.#cancelIntroduction?.();
    // It is asked anew on the next connection.
    this.#context.messages.withdraw('introduction');
  }

  delivered(): void {
    if (this.#introduced || this.#answered || this.#context.messages.has('introduction')) {
      return;
    }
    this.#answered = true;
    this.#proceed();
  }

  receive(message: ResyncMessage): 'done' | 'refused' {
    switch (message.type) {
      case 'request-update':
        this.#hear(message.payload);
        return 'done';
      case 'request-synced-resource-list':
        this.#compare(message.payload.checksum, message.payload.complete === true);
        if (message.payload.complete === true) {
          this.#acknowledgesLast = true;
          this.#proceed();
        }
        return 'done';
      default:
        return 'refused';
    }
  }

  close(): void {
    this.#cancelIntroduction?.();
  }

  #hear(update: RequestUpdate): void {
    this.#acknowledgesLast ||= update.digest !== undefined;
    if (!this.#introduced) {
      this.#waitForIntroduction();
    }
    const id = this.#context.kinds.find(({ kind }) => kind === update.kind)?.peerReported(update);
    if (id !== undefined && this.#reported.size < mostReported) {
      this.#reported.add(across(update.kind, id));
    }
  }

  #compare(checksum: string | null, complete: boolean): void {
    const all = this.#list();
    const sum = resourceListChecksum(all.map(({ sync: { kind }, name, uid }) => ({ kind, name, uid })));
    if (sum === (checksum === '' ? null : checksum)) {
      return;
    }
    for (const { sync, id, name, namespace, uid } of all) {
      const { kind } = sync;
      if (this.#reported.has(across(kind, id))) {
        continue;
      }
      if (complete) {
        sync.peerLacks(id);
      } else {
        this.#context.messages.post(`synced-${kind}-${id}`, () => ({
          target: 'resourceResync',
          type: 'response-synced-resource',
          payload: { kind, name, namespace, uid },
        }));
      }
    }
  }

  #list(): (Listed & { sync: SourceSync })[] {
    return this.#context.kinds.flatMap((sync) => Array.from(sync.list(), (listed) => ({ ...listed, sync })));
  }

  #proceed(): void {
    if (this.#introduced || !this.#answered) {
      return;
    }
    if (this.#acknowledgesLast) {
      this.#introduce();
    } else {
      this.#waitForIntroduction();
    }
  }

  #waitForIntroduction(): void {
    this.#cancelIntroduction?.();
    const { clock } = this.#context;
    const waitMs = this.#answered ? shuffleMs : introductionMs;
    const dueAt = clock.now() + waitMs;
    this.#cancelIntroduction = clock.after(waitMs, () => {
      if (clock.now() > dueAt + busyMs && this.#extensions < mostExtensions) {
        this.#extensions++;
        this.#waitForIntroduction();
      } else {
        this.#introduce();
      }
    });
  }

  #introduce(): void {
    this.#cancelIntroduction?.();
    this.#introduced = true;
    for (const sync of this.#context.kinds) {
      sync.open();
    }
  }
}

/** Names an object among those of all kinds. */
function across(kind: string, id: string): string {
  return `${kind}/${id}`;
}
