import { Informer, type KubeClient } from '../../lib/kube/index.ts';
import type { GoneCopy, Ledger, WantedApplication } from '../chaos/index.ts';
import { type ArgoObject, pairApplications } from '../pair/index.ts';

/** Whose copies are watched, and where they are. */
export interface CopyWatchOptions {
  readonly agent: string;
  readonly client: KubeClient;
  readonly namespace: string;
  readonly ledger: Ledger;
}

interface Edit {
  readonly uid: string;
  readonly content: string;
  readonly at: number;
}

/** Watches the copies of one agent's Applications: how long edits take to get there, and which copies go away. */
export class CopyWatch {
  readonly goneCopies: GoneCopy[] = [];
  readonly #options: CopyWatchOptions;
  readonly #informer: Informer<ArgoObject>;
  readonly #pending = new Map<string, Edit[]>();
  #longestMs = 0;

  constructor(options: CopyWatchOptions) {
    const { agent, client, namespace } = options;
    this.#options = options;
    this.#informer = new Informer({ client, type: pairApplications, namespace });
    this.#informer.subscribe({
      added: (copy) => this.#arrived(copy),
      updated: (_, copy) => this.#arrived(copy),
      deleted: ({ metadata: { name, uid = '', annotations } }) => {
        const sourceUid = annotations?.['argocd.argoproj.io/source-uid'] ?? '';
        this.goneCopies.push({ agent, name, uid, sourceUid });
      },
    });
  }

  /** Watches until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#informer.run(signal);
  }

  /** An API server has just accepted this at its source. */
  accepted({ name, uid, spec }: WantedApplication): void {
    const edit = { uid, content: contentOf(spec), at: performance.now() };
    const { namespace } = this.#options;
    const copy = this.#informer.get({ namespace, name });
    // The copy may be faster than the answer.
    if (copy === undefined || contentOf(copy.spec) !== edit.content) {
      this.#pending.set(name, [...(this.#pending.get(name) ?? []), edit]);
    }
  }

  /** Edits that have not arrived, of Applications that are still wanted. */
  get waiting(): number {
    const { agent, ledger } = this.#options;
    return [...this.#pending].reduce(
      (sum, [name, edits]) => sum + edits.filter(({ uid }) => ledger.find(agent, name)?.uid === uid).length,
      0,
    );
  }

  /** The longest time since the last call that an edit, or a later one of its Application, took to arrive; milliseconds. */
  takeLongest(): number {
    const longest = this.#longestMs;
    this.#longestMs = 0;
    return longest;
  }

  #arrived({ metadata: { name }, spec }: ArgoObject): void {
    const edits = this.#pending.get(name) ?? [];
    const index = edits.findLastIndex(({ content }) => content === contentOf(spec));
    const now = performance.now();
    for (const { at } of edits.splice(0, index + 1)) {
      this.#longestMs = Math.max(this.#longestMs, now - at);
    }
  }
}

/** What is equal in a source and its copy, and different after each edit of a user. */
function contentOf({ source, info }: Readonly<Record<string, unknown>>): string {
  return JSON.stringify([source, info]);
}
