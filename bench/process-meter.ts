import { readFile } from 'node:fs/promises';

/** The kernel counts processor time in these. */
const ticksPerSecond = 100;

/** What a process has used. Bytes and seconds. */
export interface Usage {
  /** User and system time of all its threads since its start. */
  readonly cpuSeconds: number;
  readonly rssBytes: number;
  /** The greatest resident size since its start. */
  readonly peakRssBytes: number;
}

/** Reads what a process has used, from /proc. @throws Error when there is no such process */
export async function usageOf(pid: number): Promise<Usage> {
  const [stat, status] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8'),
    readFile(`/proc/${pid}/status`, 'utf8'),
  ]);
  // The command's name may hold spaces and parentheses; what follows the last one is plain.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
    rssBytes: kilobytes(status, 'VmRSS') * 1024,
    peakRssBytes: kilobytes(status, 'VmHWM') * 1024,
  };
}

function kilobytes(status: string, field: string): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  if (found === undefined) {
    throw new Error(`the kernel says nothing about ${field}`);
  }
  return Number(found);
}
