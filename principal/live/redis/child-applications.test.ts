import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { eventTypes, messageEvent, targets } from '../../../lib/wire/index.ts';
import { AgentCache } from './agent-cache.ts';

const key = 'app|resources-tree|edge_parent|1.8.3.gz';
// As Go writes it: a number that JavaScript cannot hold, and texts within texts.
const treeIn = (namespace: string) =>
  `{"nodes":[{"group":"argoproj.io","version":"v1alpha1","kind":"Application","namespace":"${namespace}","name":"child","uid":"u",` +
  `"info":[{"name":"x","value":"{\\"group\\":\\"argoproj.io\\",\\"kind\\":\\"Application\\",\\"namespace\\":\\"argocd\\"}ä"}]},` +
  `{"version":"v1","kind":"ConfigMap","namespace":"argocd","name":"own","parentRefs":[{"group":"argoproj.io","kind":"Application",` +
  `"namespace":"${namespace}","name":"child"}]},` +
  `{"group":"argoproj.io","version":"v1alpha1","kind":"AppProject","namespace":"argocd","name":"p"},` +
  `{"group":"app.k8s.io","version":"v1beta1","kind":"Application","namespace":"argocd","name":"other"}],` +
  `"hosts":[{"resourcesInfo":[{"capacity":12345678901234567890}]}]}\n`;
const managedIn = (namespace: string) =>
  `[{"group":"argoproj.io","kind":"Application","namespace":"${namespace}","name":"child","targetState":` +
  `"{\\"kind\\":\\"Application\\",\\"metadata\\":{\\"namespace\\":\\"argocd\\"}}"}]\n`;

/** What the hub's Argo CD gets of the agent `edge`, and what is kept for the time that the agent is away. */
async function read(name: string, value: Buffer, isAutonomous = true) {
  const kept = new Map<string, Buffer>();
  let isAway = false;
  const cache = new AgentCache({
    ask: async () => {
      if (isAway) {
        throw new Error('away');
      }
      const get = { bytes: value.toString('base64'), cacheHit: true, error: '' };
      const payload = { uuid: 'u', connectionUuid: 'c', body: { get } };
      return messageEvent(targets.redis, eventTypes.redisResponse, payload, { source: '' }, { eventId: 'u' });
    },
    isAutonomous: (agent) => isAutonomous && agent === 'edge',
    link: {
      get: async (stored: string) => kept.get(stored),
      set: async (stored: string, bytes: Buffer) => void kept.set(stored, bytes),
      delete: async () => undefined,
      sizes: () => [],
      onReady: () => undefined,
    } as never,
    metrics: { request: () => undefined, failed: () => undefined },
    logger: { warn: () => undefined, debug: () => undefined } as never,
  });
  const signal = new AbortController().signal;
  const now = await cache.get('edge', 'c', name, signal);
  isAway = true;
  const later = await cache.get('edge', 'c', name, signal);
  // Not toEqual, which compares each byte, and shows each that differs: that takes gigabytes.
  expect(later?.equals(now as Buffer)).toBe(true);
  return now as Buffer;
}

test('child Applications of an autonomous agent are where their mirrors are, and every other byte is as it was', async () => {
  expect(gunzipSync(await read(key, gzipSync(treeIn('argocd')))).toString()).toBe(treeIn('edge'));
  const plain = 'app|managed-resources|edge_parent|1.8.3';
  expect((await read(plain, Buffer.from(managedIn('argocd')))).toString()).toBe(managedIn('edge'));
});

test('a text that a piece of the unpacked value cuts is found', async () => {
  for (let length = 16_300; length < 16_400; length += 9) {
    const tree = (namespace: string) => `{"padding":"${'x'.repeat(length)}",${treeIn(namespace).slice(1)}`;
    expect(gunzipSync(await read(key, gzipSync(tree('argocd')))).toString()).toBe(tree('edge'));
  }
});

test.each<[string, string, Buffer, boolean]>([
  ['without Applications', key, gzipSync('{"nodes":[{"version":"v1","kind":"Pod","namespace":"argocd"}]}'), true],
  ['of a managed agent', key, gzipSync(treeIn('argocd')), false],
  ['of another kind', 'cluster|info|edge|1.8.3.gz', gzipSync(treeIn('argocd')), true],
  [
    'that is too large',
    key,
    // It does not look like a bomb.
    gzipSync(
      `{"a":"${Array.from({ length: 60_000 }, () => Math.random() + 'x'.repeat(300)).join('')}",${treeIn('argocd').slice(1)}`,
    ),
    true,
  ],
])('a value %s passes as it is', async (_, name, value, isAutonomous) => {
  expect((await read(name, value, isAutonomous)).equals(value)).toBe(true);
});
