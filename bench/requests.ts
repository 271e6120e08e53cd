import type { KubeClient } from '../lib/kube/index.ts';

/** How often something was asked of an API server, by verb and resource: `PATCH applications`. */
export type RequestCounts = ReadonlyMap<string, number>;

/** Counted by the API server itself, as each request ends; a watch counts when it ends. With code if that is no success. */
export async function servedRequests(client: KubeClient): Promise<RequestCounts> {
  const response = await client.request('/metrics');
  const counts = new Map<string, number>();
  for (const line of (await response.body.text()).split('\n')) {
    if (!line.startsWith('apiserver_request_total{')) {
      continue;
    }
    const label = (name: string) => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? '';
    const [verb, resource, code] = [label('verb'), label('resource'), label('code')];
    if (resource === '') {
      continue;
    }
    const subresource = label('subresource') === '' ? '' : `/${label('subresource')}`;
    const key = `${verb} ${resource}${subresource}${/^(0|2\d\d)$/.test(code) ? '' : ` (${code})`}`;
    counts.set(key, (counts.get(key) ?? 0) + Number(line.slice(line.lastIndexOf(' ') + 1)));
  }
  return counts;
}

/** What came between two counts; the most frequent first. */
export function countsBetween(before: RequestCounts, after: RequestCounts): RequestCounts {
  const all = Array.from(after, ([key, count]) => [key, count - (before.get(key) ?? 0)] as const);
  return new Map(all.filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a));
}

/** The sum of all counts. */
export function total(counts: RequestCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** In one line. */
export function describedRequests(requests: RequestCounts): string {
  const told = Array.from(requests, ([key, count]) => `${key} ${count}`);
  return told.length === 0 ? 'none' : told.join(', ');
}
