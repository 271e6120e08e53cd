import { ocmManifestWorks, ocmPlacements } from '../../e2e/ocm/index.ts';
import { configMaps, events, type KubeClient, type ResourceType, secrets } from '../../lib/kube/index.ts';
import { benchAddOns, benchGitOpsClusters } from './hub.ts';

/** Kinds that the controller writes. */
const kinds = [benchGitOpsClusters, ocmPlacements, benchAddOns, ocmManifestWorks, secrets, configMaps, events];

/** Numbers of writes that the API server has carried out, by `VERB kind[/subresource]`. */
export type Writes = Readonly<Record<string, number>>;

/** Counts writes that the API server served, and those that changed an object. */
export interface WriteCounter {
  /** Successful writes of the controller so far, without the stand-ins' writes of works' statuses. */
  served(): Promise<Writes>;
  /** Numbers of objects added, changed or deleted so far, by kind, by any client. */
  changes(): Readonly<Record<string, number>>;
  stop(): Promise<void>;
}

/** Starts to count. */
export function countWrites(client: KubeClient): WriteCounter {
  const ended = new AbortController();
  const changes: Record<string, number> = {};
  const watching = kinds.map((type) =>
    follow(client, type as ResourceType, changes, ended.signal).catch((error) => {
      if (!ended.signal.aborted) {
        throw error;
      }
    }),
  );
  return {
    served: () => servedWrites(client),
    changes: () => ({ ...changes }),
    async stop() {
      ended.abort();
      await Promise.all(watching);
    },
  };
}

/** Follows a kind by a watch, which shows every change once. A write that changes nothing does not appear. */
async function follow(client: KubeClient, type: ResourceType, changes: Record<string, number>, signal: AbortSignal) {
  let { resourceVersion } = await client.listPage(type, { limit: 1, signal });
  while (!signal.aborted) {
    for await (const event of await client.watch(type, { resourceVersion, signal })) {
      if (event.type === 'BOOKMARK') {
        resourceVersion = event.resourceVersion;
      } else {
        resourceVersion = event.object.metadata.resourceVersion ?? resourceVersion;
        changes[type.plural] = (changes[type.plural] ?? 0) + 1;
      }
    }
  }
}

async function servedWrites(client: KubeClient): Promise<Writes> {
  const response = await client.request('/metrics');
  const names = new Set(kinds.map(({ plural }) => plural));
  const counts: Record<string, number> = {};
  for (const line of (await response.body.text()).split('\n')) {
    if (!line.startsWith('apiserver_request_total{') || !/code="2\d\d"/.test(line)) {
      continue;
    }
    const label = (name: string) => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? '';
    const [verb, resource, subresource] = [label('verb'), label('resource'), label('subresource')];
    if (!['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE'].includes(verb) || !names.has(resource)) {
      continue;
    }
    if (resource === 'manifestworks' && subresource === 'status') {
      continue;
    }
    const key = `${verb} ${resource}${subresource ? `/${subresource}` : ''}`;
    counts[key] = (counts[key] ?? 0) + Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return counts;
}

/** The writes between two counts. */
export function difference(before: Writes, after: Writes): Record<string, number> {
  return Object.fromEntries(
    Object.entries(after)
      .map(([key, count]) => [key, count - (before[key] ?? 0)] as const)
      .filter(([, count]) => count !== 0),
  );
}

/** The total number of writes. */
export function total(writes: Writes): number {
  return Object.values(writes).reduce((sum, count) => sum + count, 0);
}
