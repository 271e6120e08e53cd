import { resourceListChecksum } from '../checksums.ts';
import type { Listed, SourceSync } from './kind-sync.ts';
import type { RequestUpdate, ResyncMessage } from './messages.ts';
import type { Resync, ResyncContext } from './peer-sync.ts';

/**
 * Time for a peer that is new to this process to acknowledge the request for its copies, counted anew from each report,
 * before everything is sent to it. Every agent acknowledges it, argocd-agent's too; one that is busy, as when a fleet moves
 * to another principal, takes seconds. Only a peer that does not know the request waits for all of this.
 */
const introductionMs = 30_000;
/**
 * Time for further reports after the peer has acknowledged the request. argocd-agent's agents send their messages in any
 * order, 100 ms apart; ours acknowledge after their last report.
 */
const shuffleMs = 250;
/**
 * A timer that fires later than this shows that the process is overloaded, as when a fleet reconnects to a restarted
 * principal: the peer's reports may not have been read yet, and sending everything would add to the load. The wait is
 * extended at most {@link mostExtensions} times.
 */
const busyMs = 500;
const mostExtensions = 5;
/** Reported objects that are kept for the comparison with the list. Further ones are sent once more. */
const mostReported = 100_000;

/**
 * The resync protocol on the side that owns the objects. A peer that is new to this process is asked for its copies
 * (`request-resource-resync`), and nothing is sent before it has answered, so that a restart costs only the differences.
 * Each report goes to the kind's source. When the peer has marked its reports as complete, the source learns which objects
 * were missing; otherwise the peer is asked about each of these (`response-synced-resource`).
 */
export class SourceResync implements Resync {
  readonly #context: ResyncContext<SourceSync>;
  /** Objects that the peer reported on this connection. */
  readonly #reported = new Set<string>();
  #introduced = false;
  /** The peer acknowledged it on this connection. */
  #answered = false;
  /** The same on any connection. One that is silent may not know yet that it is broken: then the next one is asked, too. */
  #hasAnswered = false;
  /** The peer acknowledges the request after its last report, unlike argocd-agent's. */
  #acknowledgesLast = false;
  #cancelIntroduction: (() => void) | undefined;
  #extensions = 0;

  constructor(context: ResyncContext<SourceSync>) {
    this.#context = context;
  }

  connected(): void {
    this.#reported.clear();
    this.#answered = false;
    if (this.#introduced && this.#hasAnswered) {
      return;
    }
    this.#context.messages.post('introduction', () => ({
      target: 'resourceResync',
      type: 'request-resource-resync',
      payload: {},
    }));
    if (!this.#introduced) {
      this.#waitForIntroduction();
    }
  }

  disconnected(): void {
    this.#cancelIntroduction?.();
    // It is asked anew on the next connection.
    this.#context.messages.withdraw('introduction');
  }

  delivered(): void {
    if (this.#answered || this.#context.messages.has('introduction')) {
      return;
    }
    this.#answered = true;
    this.#hasAnswered = true;
    this.#proceed();
  }

  receive(message: ResyncMessage): 'done' | 'refused' {
    switch (message.type) {
      case 'request-update':
        this.#recordReport(message.payload);
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

  #recordReport(update: RequestUpdate): void {
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
      sync.open(this.#acknowledgesLast);
    }
  }
}

/** A key that is unique over all kinds. */
function across(kind: string, id: string): string {
  return `${kind}/${id}`;
}
