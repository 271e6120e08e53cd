import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes that this process can still reach, in its heap and outside of it: what is left after a full collection. */
export function liveMemory(): { readonly heap: number; readonly external: number } {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { heapUsed: heap, external } = process.memoryUsage();
  return { heap, external };
}
