import type { KubeClient, KubeObject } from '../../lib/kube/index.ts';
import { resourceType } from '../../lib/kube/index.ts';

interface ResourceList {
  resources: { name: string; kind: string; namespaced: boolean; verbs: string[] }[];
}

/** Kinds whose objects change by themselves. Kubernetes removes a request for a certificate an hour after it was answered. */
const passing = new Set([
  ...['events', 'leases', 'componentstatuses', 'endpoints', 'endpointslices', 'pods', 'nodes'],
  'certificatesigningrequests',
]);

/**
 * All objects of all kinds of an API server: their content as text, by `plural.group namespace/name`. Status and server
 * metadata are left out.
 */
export async function inventoryOf(client: KubeClient): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const type of await kindsOf(client)) {
    for (const object of await client.list(type)) {
      const { namespace = '', name } = object.metadata;
      found[`${type.plural}${type.group ? `.${type.group}` : ''} ${namespace}/${name}`] = contentOf(object);
    }
  }
  return found;
}

/** The differences between two inventories, as messages. */
export function inventoryDifferences(before: Record<string, string>, after: Record<string, string>): string[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return keys.flatMap((key) => {
    if (before[key] === after[key]) {
      return [];
    }
    if (before[key] === undefined) {
      return [`remains: ${key}`];
    }
    if (after[key] === undefined) {
      return [`is missing: ${key}`];
    }
    return [`is changed: ${key}: ${before[key]} -> ${after[key]}`];
  });
}

async function kindsOf(client: KubeClient) {
  const groups = (await read<{ groups: { name: string; preferredVersion: { version: string } }[] }>(client, '/apis'))
    .groups;
  const versions = [
    { group: '', version: 'v1' },
    ...groups.map(({ name, preferredVersion: { version } }) => ({ group: name, version })),
  ];
  const lists = await Promise.all(
    versions.map(async ({ group, version }) => {
      const path = group ? `/apis/${group}/${version}` : `/api/${version}`;
      const { resources } = await read<ResourceList>(client, path);
      return resources
        .filter(({ name, verbs }) => verbs.includes('list') && !name.includes('/') && !passing.has(name))
        .map(({ name, kind, namespaced }) => resourceType({ group, version, kind, plural: name, namespaced }));
    }),
  );
  return lists.flat();
}

async function read<T>(client: KubeClient, path: string): Promise<T> {
  const { body } = await client.request(path, { signal: AbortSignal.timeout(30_000) });
  return JSON.parse(await body.text()) as T;
}

function contentOf(object: KubeObject): string {
  const { metadata, status: _, ...rest } = object as KubeObject & { status?: unknown };
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  return JSON.stringify([
    rest,
    labels,
    annotations,
    finalizers,
    ownerReferences?.map(({ kind, name }) => [kind, name]),
  ]);
}
