import { readFile } from 'node:fs/promises';
import { processStat, ticksPerSecond } from '../lib/base/testing.ts';

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
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const stat = processStat(pid);
  return {
    cpuSeconds: (Number(stat?.[11]) + Number(stat?.[12])) / ticksPerSecond,
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
