import { sleep } from '../../lib/base/index.ts';
import type { ObjectKey } from '../../lib/kube/index.ts';
import type { ReplicatedKind } from './kinds.ts';

/** What arrived while a snapshot was being taken, which is newer than the snapshot; and whether another one is needed. */
export class News {
  #touched: Set<string> | undefined;
  #isNeeded = false;
  #wake: () => void = () => undefined;

  /** A snapshot is about to be asked for. */
  begin(): void {
    this.#touched = new Set();
    this.#isNeeded = false;
  }

  /** The snapshot has been written. */
  end(): void {
    this.#touched = undefined;
  }

  touched(kind: ReplicatedKind, ref: ObjectKey): void {
    this.#touched?.add(replicatedKey(kind, ref));
  }

  isTouched(kind: ReplicatedKind, ref: ObjectKey): boolean {
    return this.isTouchedKey(replicatedKey(kind, ref));
  }

  /** The same, by {@link replicatedKey}. */
  isTouchedKey(key: string): boolean {
    return this.#touched?.has(key) === true;
  }

  /** Something cannot be followed event by event. */
  need(): void {
    this.#isNeeded = true;
    this.#wake();
  }

  /** Waits until a snapshot is needed, which is true then, or for `ms`. */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isNeeded) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await Promise.race([promise, sleep(ms, signal)]);
    }
    return this.#isNeeded;
  }
}

/** The name of an object among those of all replicated kinds. */
export function replicatedKey(kind: ReplicatedKind, { namespace = '', name }: ObjectKey): string {
  return `${kind.name}/${namespace}/${name}`;
}
