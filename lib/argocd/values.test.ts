import { expect, test } from 'vitest';
import { anyMap, anyValue, edited, Random } from '../../e2e/random/index.ts';
import { canonicalJson, ExactInteger } from '../base/index.ts';
import { effort } from '../base/testing.ts';
import type { ObjectRef } from '../sync/index.ts';
import { joined, join as joinStage, ownApplication, StageAgent, StagePrincipal } from './autonomous/testing/stage.ts';
import type { Application } from './index.ts';
import { hubApplication, Lab, LabCluster } from './testing/lab.ts';

const onHub = { namespace: 'a', name: 'shop' };
const onCluster = { namespace: 'argocd', name: 'shop' };
const source = (valuesObject: unknown) => ({ repoURL: 'https://charts', chart: 'x', helm: { valuesObject } });

/** An Application of a user with these values. */
function withValues(application: Application, valuesObject: unknown, ...more: unknown[]): Application {
  const sources =
    more.length === 0 ? { source: source(valuesObject) } : { sources: [valuesObject, ...more].map(source) };
  const { project, destination } = application.spec;
  return { ...application, spec: { project, destination, ...sources } as Application['spec'] };
}

/** Writes an object as a whole, as argocd-server and `kubectl replace` do: a merge patch has no nulls. */
function put({ objects }: LabCluster, ref: ObjectRef, change: (now: Application) => Application): void {
  if (objects.get(ref) !== undefined) {
    objects.edit(ref, change);
  }
}

/** What of a spec is the same on both sides. */
const sourcesOf = ({ spec: { source, sources } }: Application) => canonicalJson([source, sources]);

async function managed(first: unknown) {
  const lab = new Lab();
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  lab.hub.objects.create(withValues(hubApplication(), first));
  await lab.run(3_000);
  return { lab, agent };
}

const probe = { path: '/' };
const shapes: [string, unknown, unknown][] = [
  ['a value becomes null', { a: 1, probe }, { a: 1, probe: null }],
  ['a null is added', { a: 1 }, { a: 1, probe: null }],
  ['a null goes', { a: 1, probe: null }, { a: 1 }],
  ['a null gets a value', { probe: null }, { probe }],
  ['a map with a null is added', { a: 1 }, { a: 1, probe: { httpGet: null, exec: { command: ['x'] } } }],
  ['a map in a list gets a null', { env: [{ name: 'a', value: '1' }] }, { env: [{ name: 'a', value: null }] }],
  ['a map becomes empty', { limits: { cpu: null } }, { limits: {} }],
  ['a list changes its order', { args: ['a', 'b', null] }, { args: ['b', 'a', null] }],
  [
    'the last digits of an integer change',
    { id: new ExactInteger('1234567890123456789') },
    { id: 1234567890123456800 },
  ],
  ['a key of every JavaScript object goes', { constructor: 'x', toString: 1 }, {}],
  ['a key that is special to JavaScript comes', {}, JSON.parse('{"__proto__":{"a":1},"constructor":{}}')],
];

test.each(shapes)('values of a copy: %s', async (_, from, to) => {
  const { lab, agent } = await managed(from);
  const { writes } = agent.cluster;
  put(lab.hub, onHub, (hub) => withValues(hub, to));
  await lab.run(60_000);
  expect(sourcesOf(agent.copy() as Application)).toBe(canonicalJson([source(to), undefined]));
  expect(agent.cluster.writes).toBe(writes + 1);
});

test.each(shapes)('values of an Application that is taken over: %s', async (_, from, to) => {
  const lab = new Lab();
  const cluster = new LabCluster('agent', lab.time);
  cluster.objects.create(withValues(hubApplication(onCluster), from));
  const agent = lab.agent({}, cluster);
  lab.join(lab.principal(), agent);
  lab.hub.objects.create(withValues(hubApplication(), to));
  await lab.run(3_000);
  expect(sourcesOf(agent.copy() as Application)).toBe(canonicalJson([source(to), undefined]));
});

test.each(shapes)('values of a mirror: %s', async (_, from, to) => {
  const { lab, principal, agent } = joined();
  agent.cluster.objects.create(withValues(ownApplication(), from));
  await lab.run(3_000);
  put(agent.cluster, onCluster, (own) => withValues(own, to));
  await lab.run(60_000);
  expect(sourcesOf(principal.mirror() as Application)).toBe(canonicalJson([source(to), undefined]));
});

/** What Argo CD notes when it begins an operation, and when it has ended: then it removes what was asked for. */
function begins(cluster: LabCluster, startedAt: string): void {
  put(cluster, onCluster, (now) => {
    const operation = { initiatedBy: {}, retry: {}, ...now.operation };
    return { ...now, status: { ...now.status, operationState: { phase: 'Running', startedAt, operation } } };
  });
}
function ends(cluster: LabCluster): void {
  put(cluster, onCluster, ({ operation: _, ...now }) => {
    const operationState = { ...now.status?.operationState, phase: 'Succeeded', finishedAt: 'e' };
    return { ...now, status: { ...now.status, operationState } };
  });
}

test.each<[string, Record<string, unknown>]>([
  ['by a plain patch', { sync: { revision: 'HEAD' } }],
  ['as argocd-server does it', { initiatedBy: { username: 'me' }, retry: {}, sync: { revision: 'HEAD' } }],
  ['with nulls', { sync: { source: source({ probe: null, limits: {} }) } }],
])(
  'an operation that is asked for %s runs once, though both programs start anew while it runs',
  async (_, operation) => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication({ creationTimestamp: '2026-01-02T00:00:00Z' }));
    const cluster = new LabCluster('agent', lab.time);
    const start = () => {
      const [principal, agent] = [lab.principal(), lab.agent({}, cluster)];
      return { principal, agent, leave: lab.join(principal, agent) };
    };
    const { principal, agent, leave } = start();
    await lab.run(3_000);
    put(lab.hub, onHub, (hub) => ({ ...hub, operation }));
    await lab.run(3_000);
    expect(canonicalJson(agent.copy()?.operation)).toBe(canonicalJson(operation));
    leave();
    principal.stop.abort();
    agent.stop.abort();
    begins(cluster, '2026-01-02T00:00:05Z');
    ends(cluster);
    const next = start();
    await lab.run(60_000);
    expect(next.agent.copy()?.operation).toBeUndefined();
    const { operation: asked, status } = lab.hub.objects.get(onHub) ?? {};
    expect(asked).toBeUndefined();
    expect(status?.operationState).toMatchObject({ phase: 'Succeeded', startedAt: '2026-01-02T00:00:05Z' });
  },
);

/** What the application controller writes: all of it has the user's values, too. */
const anyStatus = (random: Random) => ({
  health: { status: random.pick(['Healthy', 'Degraded']) },
  sync: { status: 'Synced', comparedTo: { source: source(anyValue(random)), ignoreDifferences: [] } },
  history: Array.from({ length: random.integer(0, 2) }, (_, id) => ({ id, source: source(anyMap(random)) })),
  summary: random.chance(0.5) ? {} : { images: ['b', 'a'] },
});

/** The same Application with some of its values changed. */
function anyEdit(random: Random, now: Application): Application {
  const { source: one, sources = [] } = now.spec as {
    source?: ReturnType<typeof source>;
    sources?: ReturnType<typeof source>[];
  };
  const [first, ...others] = one === undefined ? sources.map(({ helm }) => helm.valuesObject) : [one.helm.valuesObject];
  return random.chance(0.2)
    ? withValues(now, anyMap(random), anyMap(random))
    : withValues(now, edited(random, first), ...others.map((values) => edited(random, values)));
}

const anyOperation = (random: Random): Record<string, unknown> => ({
  ...(random.chance(0.5) && { initiatedBy: { username: 'ü' }, retry: {} }),
  sync: { source: source(anyMap(random)), ...(random.chance(0.5) && { prune: false, syncOptions: [] }) },
});

/** Expects that both sides hold the same. */
function comparing(lab: Lab, cluster: LabCluster, seed: number): (what: string) => void {
  return (what) => {
    const [hub, local] = [lab.hub.objects.get(onHub), cluster.objects.get(onCluster)] as [Application, Application];
    expect(sourcesOf(local), `seed ${seed}: ${what}`).toBe(sourcesOf(hub));
    expect(canonicalJson(local.status ?? {}), `seed ${seed}: ${what}`).toBe(canonicalJson(hub.status ?? {}));
    expect(canonicalJson(local.operation), `seed ${seed}: ${what}`).toBe(canonicalJson(hub.operation));
  };
}

/** Asks for an operation on the hub, as argocd-server does, and tells what the cluster has of it. */
async function asked(lab: Lab, cluster: LabCluster, operation: Record<string, unknown>) {
  put(lab.hub, onHub, ({ status: { operationState: _, ...status } = {}, ...hub }) => ({ ...hub, status, operation }));
  await lab.run(3_000);
  return { asked: operation, there: cluster.objects.get(onCluster)?.operation };
}

/** The same operation with the sources that the cluster's Application has: it takes no others. */
function ofOwnSources(operation: ReturnType<typeof anyOperation>, cluster: LabCluster): Record<string, unknown> {
  const { source: _, sources: __, ...sync } = operation.sync as Record<string, unknown>;
  const { source: one, sources } = cluster.objects.get(onCluster)?.spec ?? {};
  return {
    ...operation,
    sync: { ...sync, ...(one !== undefined && { source: one }), ...(sources !== undefined && { sources }) },
  };
}

const seeds = Array.from({ length: effort(40, 2_000) }, (_, index) => index + 1);

test('any values arrive as they were sent: copies, takeovers, operations and reports', async () => {
  for (const seed of seeds) {
    const random = new Random(seed);
    const lab = new Lab();
    const cluster = new LabCluster('agent', lab.time);
    const start = () => {
      const [principal, agent] = [lab.principal(), lab.agent({}, cluster)];
      const leave = lab.join(principal, agent);
      return () => [leave(), principal.stop.abort(), agent.stop.abort()];
    };
    const expectSame = comparing(lab, cluster, seed);
    if (random.chance(0.5)) {
      cluster.objects.create(withValues(hubApplication(onCluster), anyMap(random)));
    }
    lab.hub.objects.create(withValues(hubApplication({ creationTimestamp: 't0' }), anyMap(random)));
    let stop = start();
    await lab.run(3_000);
    expectSame('made or taken over');
    for (let round = 1; round <= 3; round++) {
      put(lab.hub, onHub, (hub) => anyEdit(random, hub));
      await lab.run(3_000);
      expectSame('edited');
      put(cluster, onCluster, (copy) => ({ ...copy, status: anyStatus(random) }));
      await lab.run(3_000);
      expectSame('reported');
      put(cluster, onCluster, (copy) => anyEdit(random, copy));
      await lab.run(3_000);
      expectSame('edited on the cluster');
      const operation = await asked(lab, cluster, anyOperation(random));
      expect(canonicalJson(operation.there), `seed ${seed}: operated`).toBe(canonicalJson(operation.asked));
      begins(cluster, `t${round}`);
      await lab.run(random.pick([0, 3_000]));
      if (random.chance(0.5)) {
        stop();
        stop = start();
        await lab.run(random.pick([0, 3_000]));
      }
      ends(cluster);
      await lab.run(3_000);
      expectSame('done');
      expect(lab.hub.objects.get(onHub)?.operation, `seed ${seed}: done`).toBeUndefined();
    }
    stop();
  }
});

test('any values arrive as they were sent: mirrors, operations on them, and their reports', async () => {
  for (const seed of seeds) {
    const random = new Random(-seed);
    const lab = new Lab();
    const cluster = new LabCluster('agent', lab.time);
    const start = () => {
      const [principal, agent] = [new StagePrincipal(lab), new StageAgent(lab, cluster)];
      const leave = joinStage(lab, principal, agent);
      return () => [leave(), principal.stop.abort(), agent.stop.abort()];
    };
    const expectSame = comparing(lab, cluster, seed);
    cluster.objects.create(withValues(ownApplication(), anyMap(random)));
    let stop = start();
    await lab.run(3_000);
    expectSame('mirrored');
    for (let round = 1; round <= 3; round++) {
      put(cluster, onCluster, (own) => anyEdit(random, own));
      await lab.run(3_000);
      expectSame('edited');
      put(lab.hub, onHub, (mirror) => anyEdit(random, mirror));
      await lab.run(3_000);
      expectSame('edited on the hub');
      put(cluster, onCluster, (own) => ({ ...own, status: anyStatus(random) }));
      await lab.run(3_000);
      expectSame('reported');
      const operation = await asked(lab, cluster, ofOwnSources(anyOperation(random), cluster));
      expect(canonicalJson(operation.there), `seed ${seed}: operated`).toBe(canonicalJson(operation.asked));
      begins(cluster, `t${round}`);
      await lab.run(3_000);
      if (random.chance(0.5)) {
        stop();
        stop = start();
        await lab.run(random.pick([0, 3_000]));
      }
      ends(cluster);
      await lab.run(3_000);
      expectSame('done');
      expect(lab.hub.objects.get(onHub)?.operation, `seed ${seed}: done`).toBeUndefined();
    }
    stop();
  }
});
