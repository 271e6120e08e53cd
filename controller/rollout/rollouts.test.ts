import { expect, test } from 'vitest';
import type { Condition, Lease } from '../../lib/kube/index.ts';
import { type Caches, keys, type ManifestWork } from '../hub/index.ts';
import { type Foundation, rolloutStrategySchema, type Version, versionText } from '../spec/index.ts';
import { versionAnnotations, versionKeys } from './delivered-version.ts';
import { rolloutCondition } from './rollout-conditions.ts';
import { type ClusterRelease, Rollouts } from './rollouts.ts';

const at = '2030-01-01T00:00:00Z';
const one: Version = { agent: 'agent:1' };
const two: Version = { agent: 'agent:2' };

/** A hub whose clusters each have one work without workloads. The work has arrived when it is applied. */
class Hub {
  readonly works = new Map<string, ManifestWork>();
  readonly woken: string[] = [];
  readonly changed: string[] = [];
  readonly leases = new Map<string, Lease>();
  availableSince = at;
  now = new Date(at);
  readonly rollouts = this.restart();

  restart(): Rollouts {
    const available = () => {
      return { type: 'ManagedClusterConditionAvailable', status: 'True', lastTransitionTime: this.availableSince };
    };
    const caches = {
      works: {
        list: (cluster: string) => [this.works.get(cluster)].flatMap((work) => work ?? []),
        byIndex: (_: string, owner: string) =>
          [...this.works.values()].filter(({ metadata }) => metadata.annotations?.[keys.owner] === owner),
      },
      connections: {
        byIndex: (_: string, agent: string) => [this.leases.get(agent.split('/')[1] ?? '')].flatMap((one) => one ?? []),
      },
      sharing: () => [{ metadata: { namespace: 'argocd', name: 'fleet' } }],
      decisions: { byIndex: () => [] },
      managedClusters: { get: () => ({ status: { conditions: [available()] } }) },
      addOns: { get: () => undefined },
    } as unknown as Caches;
    return new Rollouts({
      caches,
      applier: { current: async (_type, _key, cached) => cached },
      now: () => this.now,
      wakeCluster: (cluster) => this.woken.push(cluster),
      changed: (key) => this.changed.push(key),
    });
  }

  connects(agent: string, since: string, connected = true): void {
    const annotations = { 'argocd-agent.argoproj-labs.io/connected': String(connected) };
    this.leases.set(agent, { metadata: { name: agent, annotations }, spec: { acquireTime: since } });
  }

  /** Delivers what the controller has decided. */
  follow(cluster: string, { version, ...update }: ClusterRelease): void {
    this.deliver(cluster, version);
    const work = this.works.get(cluster) as ManifestWork;
    const annotations = { ...work.metadata.annotations, ...versionAnnotations(version, update) };
    this.works.set(cluster, { ...work, metadata: { ...work.metadata, annotations } });
  }

  deliver(cluster: string, version: Version, updatedAt?: string, owner = 'argocd/fleet', isApplied = true): void {
    const condition = (type: string) => {
      return { type, status: isApplied ? 'True' : 'False', observedGeneration: 1 } as Condition;
    };
    this.works.set(cluster, {
      metadata: {
        namespace: cluster,
        name: 'w',
        generation: 1,
        labels: { [keys.part]: 'agent' },
        annotations: {
          [keys.owner]: owner,
          [versionKeys.version]: versionText(version),
          ...(updatedAt === undefined ? {} : { [versionKeys.updatedAt]: updatedAt }),
        },
      },
      spec: { workload: { manifests: [] } },
      status: { conditions: ['Applied', 'Available'].map(condition) },
    });
  }
}

function fleet(version: Version, name = 'fleet', strategy: object = {}): Foundation {
  return {
    key: `argocd/${name}`,
    namespace: 'argocd',
    placement: 'placement',
    gitOpsCluster: { metadata: { namespace: 'argocd', name } },
    release: { version, crds: new Map() },
    rolloutStrategy: rolloutStrategySchema.parse(strategy),
  } as unknown as Foundation;
}

const signal = new AbortController().signal;
const names = Array.from({ length: 30 }, (_, i) => `c${String(i).padStart(2, '0')}`);

test('three of thirty clusters are updated at a time, and the next are woken when one is done', async () => {
  const hub = new Hub();
  for (const name of names) {
    hub.deliver(name, one);
  }
  const turns = await Promise.all(names.toReversed().map((name) => hub.rollouts.deliveryFor(fleet(two), name, signal)));
  const started = names.toReversed().filter((_, index) => !turns[index]?.isHeld);
  expect(started).toEqual(['c02', 'c01', 'c00']);
  expect(turns.filter(({ isHeld }) => isHeld).every(({ version }) => version.agent === 'agent:1')).toBe(true);
  // No other cluster starts until the works have arrived.
  for (const name of started) {
    hub.deliver(name, two, at, 'argocd/fleet', false);
    expect(hub.rollouts.report(fleet(two), name, false)).toMatchObject({ phase: 'Progressing' });
  }
  expect(hub.woken).toEqual([]);
  hub.deliver('c01', two, at);
  expect(hub.rollouts.report(fleet(two), 'c01', true).phase).toBe('Progressing');
  expect(hub.rollouts.report(fleet(two), 'c01', false).phase).toBe('Succeeded');
  expect(hub.woken).toEqual(['c03']);
  expect(await hub.rollouts.deliveryFor(fleet(two), 'c03', signal)).toMatchObject({ version: two, isHeld: false });
  expect(await hub.rollouts.deliveryFor(fleet(two), 'c04', signal)).toMatchObject({ version: one, isHeld: true });
});

test('a cluster that an update has not reached keeps its settings, also when two have made them longer than one may be', async () => {
  const hub = new Hub();
  const settings = { config: { a: 'x'.repeat(50_000), b: 'y'.repeat(50_000) } };
  for (const name of names) {
    hub.deliver(name, { ...one, settings });
  }
  const turns = await Promise.all(names.map((name) => hub.rollouts.deliveryFor(fleet(two), name, signal)));
  const held = turns.filter(({ isHeld }) => isHeld);
  expect(held).toHaveLength(27);
  expect(held.every(({ version }) => version.settings?.config?.b === settings.config.b)).toBe(true);
});

test('a report that changes nothing wakes no cluster', async () => {
  const hub = new Hub();
  for (const name of names) {
    hub.deliver(name, one);
  }
  for (const name of names) {
    await hub.rollouts.deliveryFor(fleet(two), name, signal);
  }
  hub.changed.length = 0;
  for (let i = 0; i < 3; i++) {
    for (const name of names.slice(3)) {
      hub.rollouts.report(fleet(two), name, false);
    }
  }
  expect(hub.woken).toEqual([]);
  expect(hub.changed).toEqual([]);
});

test('another controller continues a rollout', async () => {
  const hub = new Hub();
  for (const name of names) {
    hub.deliver(name, one);
  }
  for (const name of ['c05', 'c06']) {
    hub.deliver(name, two, at, 'argocd/fleet', false);
  }
  const next = hub.restart();
  const turns = await Promise.all(names.map((name) => next.deliveryFor(fleet(two), name, signal)));
  expect(names.filter((_, index) => !turns[index]?.isHeld)).toEqual(['c00', 'c05', 'c06']);
  expect(turns[5]).toMatchObject({ updatedAt: at });
});

test('a cluster that misses its deadline stops the rollout, and is reconciled when its time is over', async () => {
  const hub = new Hub();
  for (const name of names) {
    hub.deliver(name, one);
  }
  hub.deliver('c00', two, at, 'argocd/fleet', false);
  expect(hub.rollouts.report(fleet(two), 'c00', false)).toEqual({
    phase: 'Progressing',
    until: Date.parse(at) + 600_000,
  });
  hub.now = new Date(Date.parse(at) + 600_000);
  expect(hub.rollouts.report(fleet(two), 'c00', false)).toEqual({ phase: 'TimeOut' });
  expect(hub.rollouts.planOf(fleet(two))).toMatchObject({ isStopped: true, failed: ['c00'], start: [] });
  expect(await hub.rollouts.deliveryFor(fleet(two), 'c01', signal)).toMatchObject({ isHeld: true });
  hub.deliver('c00', two, at);
  hub.rollouts.report(fleet(two), 'c00', false);
  expect(hub.woken).toEqual(['c01', 'c02', 'c03']);
});

test('clusters that are detached, or belong to another GitOpsCluster now, do not block the rollout', async () => {
  const hub = new Hub();
  for (const name of ['a', 'b', 'c']) {
    hub.deliver(name, one);
  }
  expect(hub.rollouts.planOf(fleet(two)).start).toEqual(['a']);
  hub.works.delete('a');
  hub.rollouts.forget('a');
  expect(hub.rollouts.planOf(fleet(two)).start).toEqual(['b']);
  hub.deliver('b', one, undefined, 'argocd/other');
  hub.rollouts.report(fleet(one, 'other'), 'b', false);
  expect(hub.rollouts.planOf(fleet(two))).toMatchObject({ start: ['c'], total: 1 });
});

test('a cluster without a version, or with other components, gets the newest version at once', async () => {
  const hub = new Hub();
  expect(await hub.rollouts.deliveryFor(fleet(two), 'new', signal)).toMatchObject({
    isHeld: false,
    updatedAt: undefined,
  });
  hub.deliver('other', { agent: 'agent:1', argoCD: 'argocd:1' });
  hub.deliver('held', one);
  hub.deliver('first', one);
  expect((await hub.rollouts.deliveryFor(fleet(two), 'other', signal)).isHeld).toBe(false);
});

const redirected: Version = { agent: 'agent:1', endpoint: { address: 'hub', port: '8444' } };
const original: Version = { agent: 'agent:1', endpoint: { address: 'old.hub', port: '443' } };
const later = (minutes: number) => new Date(Date.parse(at) + minutes * 60_000);

test('a wrong port costs one cluster: the others keep the former endpoint until its agent has connected anew', async () => {
  const hub = new Hub();
  for (const name of ['a', 'b', 'c']) {
    hub.deliver(name, original);
    hub.connects(name, '2029-12-31T00:00:00Z');
  }
  const foundation = fleet(redirected);
  const first = await hub.rollouts.deliveryFor(foundation, 'a', signal);
  expect(first).toMatchObject({ version: redirected, reconnects: true, isHeld: false });
  hub.follow('a', first);
  // Everything is applied and the former connection still stands: the agent has not been replaced yet.
  expect(hub.rollouts.report(foundation, 'a', false).phase).toBe('Progressing');
  expect(await hub.rollouts.deliveryFor(foundation, 'b', signal)).toMatchObject({ version: original, isHeld: true });
  expect(hub.rollouts.addressesIn('argocd').sort()).toEqual(['hub', 'old.hub']);
  hub.connects('a', '2029-12-31T00:00:00Z', false);
  hub.now = later(11);
  expect(hub.rollouts.report(foundation, 'a', false).phase).toBe('TimeOut');
  expect(rolloutCondition(hub.rollouts.planOf(foundation), foundation)).toMatchObject({ reason: 'Failed' });
  for (const name of ['b', 'c']) {
    expect(await hub.rollouts.deliveryFor(foundation, name, signal)).toMatchObject({ version: original, isHeld: true });
  }
  // Another controller decides the same.
  expect(await hub.restart().deliveryFor(foundation, 'b', signal)).toMatchObject({ version: original, isHeld: true });
  // The former endpoint again: nobody waits.
  const back = fleet(original);
  expect(await hub.rollouts.deliveryFor(back, 'a', signal)).toMatchObject({ version: original, isHeld: false });
  expect(await hub.rollouts.deliveryFor(back, 'b', signal)).toMatchObject({ updatedAt: undefined, isHeld: false });
});

test('an endpoint reaches the next cluster when the agent has connected there', async () => {
  const hub = new Hub();
  for (const name of ['a', 'b']) {
    hub.deliver(name, original);
    hub.connects(name, '2029-12-31T00:00:00Z');
  }
  hub.follow('a', await hub.rollouts.deliveryFor(fleet(redirected), 'a', signal));
  hub.rollouts.report(fleet(redirected), 'a', false);
  hub.connects('a', '2030-01-01T00:00:09.000000Z');
  expect(hub.rollouts.report(fleet(redirected), 'a', false).phase).toBe('Succeeded');
  expect(hub.woken).toEqual(['b']);
});

test('no rollout is stopped after it was over, whatever happens to the clusters, also for another controller', async () => {
  const hub = new Hub();
  const foundation = fleet(two);
  for (const name of ['a', 'b']) {
    hub.deliver(name, one);
  }
  for (const name of ['a', 'b']) {
    hub.follow(name, await hub.rollouts.deliveryFor(foundation, name, signal));
    hub.rollouts.report(foundation, name, false);
  }
  expect(hub.woken).toEqual(['b', 'a', 'b']);
  hub.now = later(20);
  for (const name of ['a', 'b']) {
    const release = await hub.rollouts.deliveryFor(foundation, name, signal);
    expect(release).toMatchObject({ updatedAt: at, isOver: true });
    // The record is being written: that is no failure either.
    expect(hub.rollouts.report(foundation, name, true).phase).toBe('Succeeded');
    hub.follow(name, release);
  }
  for (const name of ['a', 'b']) {
    hub.connects(name, at, false);
  }
  hub.now = later(60);
  for (const rollouts of [hub.rollouts, hub.restart()]) {
    expect(rollouts.report(foundation, 'a', false).phase).toBe('Succeeded');
    expect(rolloutCondition(rollouts.planOf(foundation), foundation)).toMatchObject({
      status: 'True',
      message: expect.stringMatching(/^2 of 2 clusters have/),
    });
  }
});

test('the deadline of an update does not run while the cluster does not report', async () => {
  const hub = new Hub();
  hub.deliver('a', two, at, 'argocd/fleet', false);
  hub.now = later(30);
  hub.availableSince = later(25).toISOString();
  expect(hub.rollouts.report(fleet(two), 'a', false)).toEqual({ phase: 'Progressing', until: later(35).getTime() });
});

test.each([24, -24])('a cluster whose clock is %s hours ahead soaks for as long as any other', async (hours) => {
  const hub = new Hub();
  const strategy = { progressive: { minSuccessTime: '10m', progressDeadline: '10m' } };
  const wanted = fleet(two, 'fleet', strategy);
  hub.deliver('c00', two, at);
  hub.connects('c00', '2030-01-01T00:00:01Z');
  expect(hub.rollouts.report(wanted, 'c00', false).phase).toBe('Soaking');
  const passed = (minutes: number) => new Date(Date.parse(at) + minutes * 60_000);
  // It was away for a moment, and says when by its own clock.
  hub.now = passed(5);
  hub.availableSince = new Date(hub.now.getTime() + hours * 3_600_000).toISOString();
  expect(hub.rollouts.report(wanted, 'c00', false)).toEqual({ phase: 'Soaking', until: passed(15).getTime() });
  hub.now = passed(15);
  expect(hub.rollouts.report(wanted, 'c00', false).phase).toBe('Succeeded');
});

test('a time that is still to come when the controller starts is not waited for', () => {
  const hub = new Hub();
  const wanted = fleet(two, 'fleet', { progressive: { minSuccessTime: '10m' } });
  hub.deliver('c00', two, at);
  hub.connects('c00', '2030-01-01T00:00:01Z');
  hub.availableSince = '2030-01-02T00:00:00Z';
  expect(hub.rollouts.report(wanted, 'c00', false).phase).toBe('Soaking');
  hub.now = new Date(Date.parse(at) + 10 * 60_000);
  expect(hub.rollouts.report(wanted, 'c00', false).phase).toBe('Succeeded');
});

test('the present address of a fleet is the one in most of its works', () => {
  const hub = new Hub();
  const endpoint = (address: string) => ({ ...one, endpoint: { address, port: '443' } });
  expect(hub.rollouts.addressOf('argocd/fleet')).toBeUndefined();
  hub.deliver('c00', endpoint('10.0.0.1'));
  hub.deliver('c01', endpoint('10.0.0.2'));
  hub.deliver('c02', endpoint('10.0.0.2'));
  hub.deliver('c03', endpoint('10.0.0.3'), undefined, 'argocd/other');
  expect(hub.rollouts.addressOf('argocd/fleet')).toBe('10.0.0.2');
});
