import { expect, test } from 'vitest';
import { createLogger } from '../../../lib/ops/index.ts';
import { proxyRedis } from './start.ts';

/** The agent that the proxy takes for a key's; `managed` and `own` are Applications of the hub. */
async function agentOf(
  key: string,
  isByDestination = true,
  logger = createLogger({ level: 'fatal' }),
): Promise<string | undefined> {
  const stop = new AbortController();
  const { promise, resolve } = Promise.withResolvers<(key: string) => string | undefined>();
  const applications = new Map([
    ['cluster1/own', undefined],
    ['team/managed', 'cluster1'],
    ['cluster2/mirror', 'cluster2'],
  ]);
  const done = proxyRedis({
    settings: {
      flags: {
        'redis-proxy-listen': ':0',
        namespace: 'argocd',
        'destination-based-mapping': isByDestination,
        'redis-key-prefix': 'fleet:',
      },
      tls: 'plaintext',
      redis: { address: '127.0.0.1:1', tls: 'off' },
    },
    credentials: {},
    caches: {
      Applications: {
        get: ({ namespace, name }: { namespace: string; name: string }) =>
          applications.has(`${namespace}/${name}`) ? { metadata: { namespace, name } } : undefined,
      },
    },
    owners: {
      isAgent: (name: string) => ['cluster1', 'cluster2'].includes(name),
      agentOf: ({ metadata }: { metadata: { namespace: string; name: string } }) =>
        applications.get(`${metadata.namespace}/${metadata.name}`),
    },
    live: {
      serveRedis: async (options: { agentOf(key: string): string | undefined }) => {
        resolve(options.agentOf);
        return { port: 1, close: async () => undefined };
      },
    },
    logger,
    signal: stop.signal,
  } as never);
  const ask = await promise;
  const found = ask(key);
  ask(key);
  stop.abort();
  await done;
  return found;
}

const tree = (namespace: string, name: string) => `app|resources-tree|${namespace}_${name}|1.8.3.gz`;

test.each([
  ['cluster1', 'own', undefined],
  ['team', 'managed', 'cluster1'],
  ['cluster2', 'mirror', 'cluster2'],
  ['cluster2', 'not-seen-yet', 'cluster2'],
  ['other', 'not-there', undefined],
])('by destination, the tree of %s/%s is that of agent %s', async (namespace, name, agent) => {
  expect(await agentOf(tree(namespace, name))).toBe(agent);
});

test('by namespace, what is in the namespace of an agent is the agent’s', async () => {
  expect(await agentOf(tree('cluster1', 'own'), false)).toBe('cluster1');
});

test('Argo CD with a prefix that the principal does not know is told of once', async () => {
  const said: object[] = [];
  const none = () => undefined;
  const logger = { debug: none, info: none, warn: (fields: object) => said.push(fields), error: none } as never;
  expect(await agentOf(`other:${tree('cluster1', 'own')}`, false, logger)).toBeUndefined();
  expect(said).toEqual([{ prefix: 'other:', known: 'fleet:' }]);
  await agentOf(`other:${'x'.repeat(1_000)}${tree('cluster1', 'own')}`, false, logger);
  await agentOf('other:mfst|app|details', false, logger);
  expect(said).toHaveLength(1);
});
