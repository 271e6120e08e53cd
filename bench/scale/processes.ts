import type { Generator } from '../load/generator.ts';
import type { Hub } from './hub.ts';
import type { Principal } from './principal.ts';
import { type Usage, usageOf } from './process-meter.ts';
import { megabytes, seconds } from './table.ts';

/** What each process of a benchmark has used so far, by its name. They share the machine: one may be another's limit. */
export type Processes = ReadonlyMap<string, Usage>;

/** Looks at all that run. */
export async function processesOf(parts: {
  readonly hub: Hub;
  readonly principal?: Principal | undefined;
  readonly generator?: Generator | undefined;
}): Promise<Processes> {
  const { hub, principal, generator } = parts;
  const pids = [
    ['principal', principal?.pid],
    ['hub API server', hub.cluster.apiServer.pid],
    ['etcd', hub.cluster.etcd.pid],
    ['load generator', generator?.pid],
    ['benchmark', process.pid],
  ] as const;
  const found = await Promise.all(
    pids.map(async ([name, pid]) => (pid === undefined ? [] : [[name, await usageOf(pid)] as const])),
  );
  return new Map(found.flat());
}

/** Rows of a table: what each has used of the processors between two looks, and its memory at the second. */
export function usageRows(before: Processes, after: Processes): string[][] {
  return Array.from(after, ([name, { cpuSeconds, rssBytes, peakRssBytes }]) => [
    name,
    seconds(cpuSeconds - (before.get(name)?.cpuSeconds ?? 0)),
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
