import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type AgentCluster,
  type ArgoObject,
  application,
  namespace,
  type Pair,
  pairApplications,
  startPair,
} from '../e2e/pair/index.ts';
import { anyMap, edited, Random } from '../e2e/random/index.ts';
import { canonicalJson, ExactInteger } from '../lib/base/index.ts';
import { effort, until } from '../lib/base/testing.ts';
import { isConflict, type KubeClient } from '../lib/kube/index.ts';

// Real API servers say what they make of a value: both sides must end with the same one, whatever it is.

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const autonomous = 'edge';

let pair: Pair;
let edge: AgentCluster;

beforeAll(async () => {
  console.log(`SEED=${seed}`);
  pair = await startPair();
  edge = await pair.addAgent({ name: autonomous, mode: 'autonomous' });
});
afterAll(() => pair?.stop());

const source = (valuesObject: unknown) => ({
  repoURL: 'https://example.com/charts',
  chart: 'x',
  targetRevision: '1',
  helm: { valuesObject },
});
type Values = Record<string, unknown>;
const valuesOf = (object: ArgoObject | undefined) =>
  (object?.spec.source as ReturnType<typeof source>)?.helm.valuesObject;

/** Writes an object as a whole, as argocd-server does; again when somebody else wrote it meanwhile. */
async function put(
  client: KubeClient,
  key: { namespace: string; name: string },
  change: (now: ArgoObject) => ArgoObject,
) {
  for (;;) {
    const now = (await client.get(pairApplications, key)) as ArgoObject;
    try {
      return await client.replace(pairApplications, change(now));
    } catch (error) {
      if (!isConflict(error)) {
        throw error;
      }
    }
  }
}

/** An Application on both sides: where its source is, and where what follows it. */
const places = {
  copy: () => ({ from: pair.hub.client, to: pair.managed.client, here: pair.name, there: namespace }),
  mirror: () => ({ from: edge.cluster.client, to: pair.hub.client, here: namespace, there: autonomous }),
};

/** Waits until this part is the same on both sides. */
async function same(
  what: string,
  kind: keyof typeof places,
  name: string,
  part: (one: ArgoObject | undefined) => unknown,
) {
  const { from, to, here, there } = places[kind]();
  let both: string[] = [];
  const isSame = async () => {
    const one = await from.get(pairApplications, { namespace: here, name });
    const other = await to.get(pairApplications, { namespace: there, name });
    both = [one, other].map((object) => canonicalJson(part(object)));
    return one !== undefined && other !== undefined && both[0] === both[1];
  };
  const programs = [pair.principal, pair.agent, edge.agent];
  await until(`${what}: the ${kind} is the same`, isSame, {
    details: () => [`SEED=${seed}`, ...both, ...programs.map(({ output }) => output.slice(-2_000))].join('\n'),
  });
}

const probe = { path: '/' };
test.each<[string, Values, Values]>([
  ['a value becomes null', { a: 1, probe }, { a: 1, probe: null }],
  ['a null goes', { a: 1, probe: null }, { a: 1 }],
  ['a null gets a value', { probe: null }, { probe }],
  ['a map with nulls comes', { a: 1 }, { a: 1, probe: { httpGet: null, env: [{ name: 'a', value: null }, null] } }],
  ['a map becomes empty', { limits: { cpu: null } }, { limits: {} }],
  ['digits of an integer change', { id: new ExactInteger('1234567890123456789') }, { id: 1234567890123456800 }],
  ['keys of every JavaScript object go', JSON.parse('{"constructor":"x","__proto__":{"a":1},"toString":{}}'), {}],
  ['keys of every JavaScript object come', {}, JSON.parse('{"constructor":"x","__proto__":{"a":1},"a/b~c":null,"":1}')],
])('%s', async (_, before, after) => {
  const name = `one-${Math.floor(Math.random() * 2 ** 31)}`;
  for (const kind of ['copy', 'mirror'] as const) {
    const { from, here } = places[kind]();
    await from.create(pairApplications, application({ namespace: here, name, spec: { source: source(before) } }));
    await same('made', kind, name, (one) => one?.spec.source);
    const written = await put(from, { namespace: here, name }, (now) => ({
      ...now,
      spec: { ...now.spec, source: source(after) },
    }));
    expect(canonicalJson(valuesOf(written)), 'an API server keeps it').toBe(canonicalJson(after));
    await same('edited', kind, name, (one) => one?.spec.source);
  }
});

test('any values: made, taken over, edited on either side, reported and operated', async () => {
  for (let round = 0; round < effort(5, 200); round++) {
    const random = new Random(seed + round);
    const name = `any-${round}`;
    for (const kind of ['copy', 'mirror'] as const) {
      const { from, to, here, there } = places[kind]();
      const spec = () => ({ source: source(anyMap(random)) });
      if (kind === 'copy' && random.chance(0.5)) {
        await to.create(pairApplications, application({ namespace: there, name, spec: spec() }));
      }
      await from.create(pairApplications, application({ namespace: here, name, spec: spec() }));
      const what = `round ${round}`;
      await same(`${what}, made`, kind, name, (one) => one?.spec.source);
      for (const [client, at] of [
        [from, here],
        [to, there],
        [from, here],
      ] as const) {
        await put(client, { namespace: at, name }, (now) => ({
          ...now,
          spec: { ...now.spec, source: source(edited(random, valuesOf(now)) ?? {}) },
        }));
        await same(`${what}, edited`, kind, name, (one) => one?.spec.source);
      }
      // The application controller reports where the Application runs.
      const [runs, at] = kind === 'copy' ? [to, there] : [from, here];
      const status = {
        health: { status: 'Healthy' },
        sync: { status: 'Synced', comparedTo: { source: source(anyMap(random)), destination: {} } },
      };
      await put(runs, { namespace: at, name }, (now) => ({ ...now, status }));
      await same(`${what}, reported`, kind, name, (one) => one?.status?.sync);
      // Users ask on the hub.
      const [asks, hub] = kind === 'copy' ? [from, here] : [to, there];
      // A cluster takes no other source for its own Application than it has.
      const operationFor = ({ spec: { source: own } }: ArgoObject) => ({
        sync: { source: kind === 'copy' ? source(anyMap(random)) : own },
      });
      await put(asks, { namespace: hub, name }, (now) => ({ ...now, operation: operationFor(now) }));
      await same(`${what}, operated`, kind, name, (one) => one?.operation);
    }
  }
});
