import { readFileSync } from 'node:fs';

/** USER_HZ, in which Linux counts processor time: it is the same everywhere. */
export const ticksPerSecond = 100;

/**
 * What Linux says of a process in proc_pid_stat(5), from the third field on: `[0]` is the state. Undefined when there is no
 * such process, and on other systems.
 */
export function processStat(pid: number | 'self'): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name before it may hold spaces and parentheses; what follows the last one is plain.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    // ESRCH: it ended while it was read.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) {
      return undefined;
    }
    throw error;
  }
}
