/**
 * How many times as much processor time something takes with eight times the input: about 8 when it is linear, 64 when it is
 * quadratic. Each is the best of three, so what else the machine does hardly counts.
 * @param make makes an input of a size; that is not measured
 */
export function growth<T>(make: (size: number) => T, run: (input: T) => unknown, size: number): number {
  const [small, large] = [make(size), make(8 * size)];
  const rounds = Array.from({ length: 3 }, () => [timeOf(() => run(small)), timeOf(() => run(large))] as const);
  const best = (at: 0 | 1) => Math.min(...rounds.map((round) => round[at]));
  return best(1) / best(0);
}

/** The clock of a thread's processor time is coarse on some machines. */
const measurableUs = 20_000;

/** Of one run, in microseconds of this thread. */
function timeOf(run: () => unknown): number {
  for (let count = 1; ; count *= 4) {
    const before = process.threadCpuUsage();
    for (let at = 0; at < count; at++) {
      run();
    }
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= measurableUs) {
      return (user + system) / count;
    }
  }
}
