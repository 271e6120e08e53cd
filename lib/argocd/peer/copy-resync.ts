import type { ObjectRef } from '../../sync/index.ts';
import { resourceListChecksum } from '../checksums.ts';
import type { MirrorPart } from './kind-sync.ts';
import type { ResyncMessage } from './messages.ts';
import type { Resync, ResyncContext } from './peer-sync.ts';

/** Answers that wait to be acknowledged. A peer that asks for more without hearing what it asked for gets none. */
const mostAnswers = 50_000;

/**
 * The resync conversation of the side that keeps copies. At the first connection of this process it tells the source
 * of every copy (`request-update`) and then that this was all (`request-synced-resource-list`), so that the source says what
 * should be different; when the source starts anew it asks to be told again.
 */
export class MirrorResync implements Resync {
  readonly #context: ResyncContext<MirrorPart>;
  /** The source's wish to be told everything, to be acknowledged when it is. */
  #asked: ResyncMessage | undefined;
  /** Everything was told on this connection, or is being told. */
  #told = false;
  /** That everything was told has to be said, is said, is known. */
  #list: 'due' | 'posted' | 'done' = 'due';

  constructor(context: ResyncContext<MirrorPart>) {
    this.#context = context;
    for (const part of context.parts) {
      part.onDoubt?.((ref) => this.#tell(part, ref));
    }
  }

  connected(): void {
    this.#told = false;
    if (this.#list !== 'done') {
      this.#tellAll();
      this.#advance();
    }
  }

  disconnected(): void {
    // The source asks again on the next connection.
    this.#asked = undefined;
    if (this.#list === 'posted') {
      // What was told counts for one connection, so that it was all would be no truth on the next.
      this.#context.errands.withdraw('list');
      this.#list = 'due';
    }
  }

  delivered(): void {
    this.#advance();
  }

  receive(message: ResyncMessage): 'done' | 'later' | 'refused' {
    switch (message.type) {
      case 'request-resource-resync':
        if (this.#asked !== undefined) {
          this.#context.acknowledge(this.#asked);
        }
        this.#asked = message;
        this.#tellAll();
        for (const part of this.#context.parts) {
          part.sourceRestarted();
        }
        this.#advance();
        return 'later';
      case 'response-synced-resource': {
        const { kind, name, namespace = '' } = message.payload;
        const part = this.#context.parts.find((one) => one.kind === kind);
        if (part !== undefined && this.#context.errands.pending < mostAnswers) {
          this.#tell(part, part.localRef({ name, namespace }));
        }
        return 'done';
      }
      default:
        return 'refused';
    }
  }

  close(): void {
    this.#asked = undefined;
  }

  #tellAll(): void {
    if (this.#told) {
      return;
    }
    this.#told = true;
    for (const part of this.#context.parts) {
      for (const { ref } of part.copies()) {
        this.#tell(part, ref);
      }
    }
  }

  #tell(part: MirrorPart, ref: ObjectRef): void {
    this.#context.errands.post(`update-${part.kind}-${ref.namespace}/${ref.name}`, () => ({
      target: 'resourceResync',
      type: 'request-update',
      payload: part.holding(ref),
    }));
  }

  /** Goes on when everything said so far is acknowledged: the source then knows of every copy. */
  #advance(): void {
    const { errands, acknowledge } = this.#context;
    if (errands.pending > 0) {
      return;
    }
    if (this.#asked !== undefined) {
      acknowledge(this.#asked);
      this.#asked = undefined;
    }
    if (this.#list === 'due') {
      this.#list = 'posted';
      errands.post('list', () => ({
        target: 'resourceResync',
        type: 'request-synced-resource-list',
        payload: { checksum: this.#checksum(), complete: true },
      }));
    } else if (this.#list === 'posted') {
      this.#list = 'done';
    }
  }

  #checksum(): string | null {
    const { parts } = this.#context;
    return resourceListChecksum(
      parts.flatMap((part) => Array.from(part.copies(), ({ name, uid }) => ({ kind: part.kind, name, uid }))),
    );
  }
}
