import { ocmManifestWorks, ocmPlacements } from '../../e2e/ocm/index.ts';
import { configMaps, events, type KubeClient, type ResourceType, secrets } from '../../lib/kube/index.ts';
import { type RequestCounts, servedRequests } from '../requests.ts';
import { benchAddOns, benchGitOpsClusters } from './hub.ts';

/** Kinds that the controller writes. */
const kinds = [benchGitOpsClusters, ocmPlacements, benchAddOns, ocmManifestWorks, secrets, configMaps, events];

/** Counts writes that the API server served, and those that changed an object. */
export interface WriteCounter {
  /** Successful writes of the controller so far, without the stand-ins' writes of works' statuses. */
  served(): Promise<RequestCounts>;
  /** Numbers of objects added, changed or deleted so far, by kind, by any client. */
  changes(): RequestCounts;
  stop(): Promise<void>;
}

/** Starts to count. */
export function countWrites(client: KubeClient): WriteCounter {
  const ended = new AbortController();
  const changes = new Map<string, number>();
  const watching = kinds.map((type) =>
    follow(client, type as ResourceType, changes, ended.signal).catch((error) => {
      if (!ended.signal.aborted) {
        throw error;
      }
    }),
  );
  return {
    served: () => servedWrites(client),
    changes: () => new Map(changes),
    async stop() {
      ended.abort();
      await Promise.all(watching);
    },
  };
}

/** Follows a kind by a watch, which shows every change once. A write that changes nothing does not appear. */
async function follow(client: KubeClient, type: ResourceType, changes: Map<string, number>, signal: AbortSignal) {
  let { resourceVersion } = await client.listPage(type, { limit: 1, signal });
  while (!signal.aborted) {
    for await (const event of await client.watch(type, { resourceVersion, signal })) {
      if (event.type === 'BOOKMARK') {
        resourceVersion = event.resourceVersion;
      } else {
        resourceVersion = event.object.metadata.resourceVersion ?? resourceVersion;
        changes.set(type.plural, (changes.get(type.plural) ?? 0) + 1);
      }
    }
  }
}

async function servedWrites(client: KubeClient): Promise<RequestCounts> {
  const names = new Set(kinds.map(({ plural }) => plural));
  const isWrite = (request: string) => {
    const [, resource = '', subresource] = /^(?:POST|PUT|PATCH|APPLY|DELETE) (\w+)(\/\w+)?$/.exec(request) ?? [];
    return names.has(resource) && !(resource === 'manifestworks' && subresource === '/status');
  };
  return new Map([...(await servedRequests(client))].filter(([request]) => isWrite(request)));
}
