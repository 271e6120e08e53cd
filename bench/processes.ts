import type { Cluster } from '../e2e/testbed/index.ts';
import { type Usage, usageOf } from './process-meter.ts';
import { megabytes, seconds } from './table.ts';

/** What each process of a benchmark has used so far, by its name. They share the machine: one may be another's limit. */
export type Processes = ReadonlyMap<string, Usage>;

interface Running {
  readonly pid: number;
}

/** Looks at all that run: the hub's processes, this one, and those that a benchmark has started besides. */
export async function processesOf(
  { apiServer, etcd }: Cluster,
  { principal, generator }: { readonly principal?: Running; readonly generator?: Running } = {},
): Promise<Processes> {
  const pids = [
    ['principal', principal?.pid],
    ['hub API server', apiServer.pid],
    ['etcd', etcd.pid],
    ['load generator', generator?.pid],
    ['benchmark', process.pid],
  ] as const;
  const found = await Promise.all(
    pids.map(async ([name, pid]) => (pid === undefined ? [] : [[name, await usageOf(pid)] as const])),
  );
  return new Map(found.flat());
}

/** What one of them has used of the processors between two looks. */
export function secondsBetween(before: Processes, after: Processes): (name: string) => number {
  return (name) => (after.get(name)?.cpuSeconds ?? 0) - (before.get(name)?.cpuSeconds ?? 0);
}

/** Rows of a table: what each has used of the processors between two looks, and its memory at the second. */
export function usageRows(before: Processes, after: Processes): string[][] {
  const spent = secondsBetween(before, after);
  return Array.from(after, ([name, { rssBytes, peakRssBytes }]) => [
    name,
    seconds(spent(name)),
    megabytes(rssBytes),
    megabytes(peakRssBytes),
  ]);
}

/** The heading of {@link usageRows}. */
export const usageHeading = (what: string) => [what, 'CPU', 'RSS', 'peak RSS'];

/** In one line, for progress. */
export function describedProcesses(processes: Processes): string {
  return Array.from(
    processes,
    ([name, { cpuSeconds, rssBytes }]) => `${name} ${cpuSeconds.toFixed(0)} s CPU ${megabytes(rssBytes)}`,
  ).join(', ');
}
