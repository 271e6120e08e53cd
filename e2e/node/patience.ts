const sliceMs = 50;

/**
 * Calls once after a time in which this process was able to run. A kubelet has its share of a machine however busy its
 * pods are; this node is a guest among its pods, and while it waits for the machine an answer may have come that it has
 * not read.
 * @returns what calls it off
 */
export function afterRunning(ms: number, call: () => void): () => void {
  let left = ms;
  let isWanted = true;
  let timer: NodeJS.Timeout | undefined;
  const wait = () => {
    const slice = Math.min(sliceMs, left);
    timer = setTimeout(() => {
      left -= slice;
      if (left > 0) {
        wait();
      }
      // What has arrived by now is read first.
      else {
        setImmediate(() => isWanted && call());
      }
    }, slice);
  };
  wait();
  return () => {
    isWanted = false;
    clearTimeout(timer);
  };
}
