import { readFileSync } from 'node:fs';

/** Positions among the fields of proc_pid_stat(5) that follow the name: utime, stime, cutime, cstime. */
const fields = [11, 12, 13, 14];
/** USER_HZ, which is the same on every Linux. */
const ticksPerSecond = 100;

/** CPU time of this process, of all its threads, and of the programs that it started and that have ended. Seconds. */
export function cpuSeconds(): number {
  const stat = readStat();
  if (stat === undefined) {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000_000;
  }
  const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.reduce((sum, field) => sum + Number(values[field]), 0) / ticksPerSecond;
}

/** What Linux says of this process; undefined elsewhere. */
function readStat(): string | undefined {
  try {
    return readFileSync('/proc/self/stat', 'latin1');
  } catch {
    return undefined;
  }
}
