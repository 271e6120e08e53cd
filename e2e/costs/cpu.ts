import { processStat, ticksPerSecond } from '../../lib/base/testing.ts';

/** Positions of utime, stime, cutime and cstime in {@link processStat}. */
const positions = [11, 12, 13, 14];

/** CPU time of this process, of all its threads, and of the programs that it started and that have ended. Seconds. */
export function cpuSeconds(): number {
  const stat = processStat('self');
  if (stat === undefined) {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000_000;
  }
  return positions.reduce((sum, position) => sum + Number(stat[position]), 0) / ticksPerSecond;
}
