import type { ObjectRef } from '../../sync/index.ts';
import { resourceListChecksum } from '../checksums.ts';
import type { CopySync } from './kind-sync.ts';
import type { ResyncMessage } from './messages.ts';
import type { Resync, ResyncContext } from './peer-sync.ts';

/** Reports that wait for their acknowledgement. A peer that asks for more without acknowledging gets no answer. */
const mostAnswers = 50_000;

/**
 * The resync protocol on the side that keeps copies. On the first connection of this process it reports every copy
 * (`request-update`) and then the end of the list (`request-synced-resource-list`), so that the source sends the
 * differences. A source that restarted requests the reports again, and a restore of this side's storage begins them anew.
 */
export class CopyResync implements Resync {
  readonly #context: ResyncContext<CopySync>;
  /** The source's `request-resource-resync`. It is acknowledged when everything is reported. */
  #asked: ResyncMessage | undefined;
  /** Every copy was reported on this connection, or is being reported: these. */
  #reported: Set<string> | undefined;
  /** The `request-synced-resource-list`, which marks the end of the reports: to be sent, sent, acknowledged. */
  #list: 'due' | 'posted' | 'done' = 'due';

  constructor(context: ResyncContext<CopySync>) {
    this.#context = context;
    for (const sync of context.kinds) {
      sync.onDoubt?.((ref) => this.#requestUpdate(sync, ref));
    }
  }

  connected(): void {
    this.#reported = undefined;
    if (this.#list !== 'done') {
      this.#requestAll();
      this.#advance();
    }
  }

  restored(isConnected: boolean): void {
    this.#withdrawList();
    this.#list = 'due';
    if (isConnected) {
      this.connected();
    }
  }

  disconnected(): void {
    // The source asks again on the next connection.
    this.#asked = undefined;
    // The reports count for one connection only, so the list must not be the first message of the next.
    this.#withdrawList();
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
        this.#requestAll();
        for (const sync of this.#context.kinds) {
          sync.sourceRestarted();
        }
        this.#advance();
        return 'later';
      case 'response-synced-resource': {
        const { kind, name, namespace = '' } = message.payload;
        const sync = this.#context.kinds.find((one) => one.kind === kind);
        if (sync !== undefined && this.#context.messages.pending < mostAnswers) {
          this.#requestUpdate(sync, sync.localRef({ name, namespace }));
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

  #requestAll(): void {
    if (this.#reported === undefined) {
      this.#reported = new Set();
      this.#requestUnreported(this.#reported);
    }
  }

  /** Requests an update for each copy that this connection has none for yet. */
  #requestUnreported(reported: Set<string>): void {
    for (const sync of this.#context.kinds) {
      for (const { ref } of sync.copies()) {
        const id = idOf(sync, ref);
        if (!reported.has(id)) {
          reported.add(id);
          this.#requestUpdate(sync, ref);
        }
      }
    }
  }

  #requestUpdate(sync: CopySync, ref: ObjectRef): void {
    this.#context.messages.post(`update-${idOf(sync, ref)}`, () => ({
      target: 'resourceResync',
      type: 'request-update',
      payload: sync.reportOf(ref),
    }));
  }

  #withdrawList(): void {
    if (this.#list === 'posted') {
      this.#context.messages.withdraw('list');
      this.#list = 'due';
    }
  }

  /** Continues when every report is acknowledged: the source then knows every copy. */
  #advance(): void {
    const { messages, acknowledge } = this.#context;
    if (messages.pending > 0) {
      return;
    }
    if (this.#asked !== undefined) {
      acknowledge(this.#asked);
      this.#asked = undefined;
    }
    if (this.#list === 'due') {
      // What appeared meanwhile would count as missing. That copy may have had its operation already, which runs once.
      this.#reported ??= new Set();
      this.#requestUnreported(this.#reported);
      if (messages.pending > 0) {
        return;
      }
      this.#list = 'posted';
      messages.post('list', () => ({
        target: 'resourceResync',
        type: 'request-synced-resource-list',
        payload: { checksum: this.#checksum(), complete: true },
      }));
    } else if (this.#list === 'posted') {
      this.#list = 'done';
    }
  }

  /** Of the copies that were reported. The source takes one that appeared since for missing, and sends what it is to be. */
  #checksum(): string | null {
    const { kinds } = this.#context;
    return resourceListChecksum(
      kinds.flatMap((sync) =>
        Array.from(sync.copies())
          .filter(({ ref }) => this.#reported?.has(idOf(sync, ref)))
          .map(({ name, uid }) => ({ kind: sync.kind, name, uid })),
      ),
    );
  }
}

const idOf = ({ kind }: CopySync, { namespace, name }: ObjectRef): string => `${kind}-${namespace}/${name}`;
