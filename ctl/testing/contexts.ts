import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { SharedCluster } from '../../e2e/testbed/index.ts';

/** A kubeconfig with a context of each cluster; the first one is the current one. */
export async function contextsOf(clusters: Readonly<Record<string, SharedCluster>>): Promise<string> {
  const parts = await Promise.all(
    Object.entries(clusters).map(async ([name, { kubeconfig }]) => {
      const {
        clusters: [cluster],
        users: [user],
      } = parse(await readFile(kubeconfig, 'utf8'));
      const context = { name, context: { cluster: name, user: name } };
      return { cluster: { ...cluster, name }, user: { ...user, name }, context };
    }),
  );
  const [first] = Object.entries(clusters);
  if (first === undefined) {
    throw new Error('a kubeconfig needs a cluster');
  }
  const path = join(first[1].dir, 'contexts');
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': first[0],
    clusters: parts.map(({ cluster }) => cluster),
    users: parts.map(({ user }) => user),
    contexts: parts.map(({ context }) => context),
  };
  await writeFile(path, JSON.stringify(document));
  return path;
}
