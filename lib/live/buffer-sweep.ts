import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Bytes after which a collection is worthwhile. Passing data leaves up to five times its size as garbage: each step has its own buffers.
 * Twice as many were too many on a busy machine, where V8 comes to freeing later.
 */
const everyBytes = 2 * 1024 * 1024;

/**
 * Frees the buffers that large answers leave behind, before they make V8 look through the whole heap.
 *
 * Buffers stand outside of V8's heap, and the few small objects that own them never fill its young generation. So nothing is freed
 * until some 60 MB of them make V8 collect everything, which takes long in proportion to all that the program holds (50 ms of CPU for
 * a heap of 50 MB), about once for every list of 10 MB. A collection of the young generation alone frees them in less than 1 ms.
 */
export class BufferSweep {
  readonly #collect: (() => void) | undefined;
  #bytes = 0;

  /** @param collect collects the young generation; by default V8's own way, where it lets us */
  constructor(collect: (() => void) | undefined = youngCollection()) {
    this.#collect = collect;
  }

  /** So many bytes have passed through. */
  passed(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < everyBytes) {
      return;
    }
    this.#bytes = 0;
    this.#collect?.();
  }
}

/** V8 exposes its collector to contexts that are created while the flag is set. */
function youngCollection(): (() => void) | undefined {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  return typeof collect === 'function' ? () => collect({ type: 'minor' }) : undefined;
}
