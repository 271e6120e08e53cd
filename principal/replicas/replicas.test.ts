import { afterEach, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { createLogger } from '../../lib/ops/index.ts';
import type { ObjectRef, Store, StoredObject } from '../../lib/sync/index.ts';
import { LiveReplicas } from './live-replicas.ts';
import { excess } from './rebalance.ts';
import { LeaseServer, TestReplica } from './testing/lease-server.ts';
import { FencedError } from './write-fence.ts';

const running: TestReplica[] = [];
afterEach(() => {
  for (const replica of running.splice(0)) {
    replica.kill();
  }
});

type Options = ConstructorParameters<typeof TestReplica>[1];
/** Leases that outlast every wait: what happens does not wait for the end of one. */
const longLeases = { timing: { renewMs: 100, deadlineMs: 300_000, durationMs: 600_000 } };

function start(server: LeaseServer, options: Options = {}): TestReplica {
  const replica = new TestReplica(server, options);
  running.push(replica);
  return replica;
}

async function startAll(server: LeaseServer, count: number, options: Options = {}): Promise<TestReplica[]> {
  const all = Array.from({ length: count }, () => start(server, options));
  await until('all are seen by all', () =>
    all.every(({ replicas }) => replicas.directory.peers().length === count - 1),
  );
  return all;
}

const pair = async (server: LeaseServer, options: Options = {}) =>
  (await startAll(server, 2, options)) as [TestReplica, TestReplica];
const leaseOf = (server: LeaseServer, agent: string) => server.stored.get(`argocd-agent-${agent}`);
const term = (server: LeaseServer, agent: string) => leaseOf(server, agent)?.spec?.leaseTransitions;
const wrote = (server: LeaseServer, agent: string) =>
  server.history.filter(({ metadata }) => metadata.name === `argocd-agent-${agent}`).length;
const connected = (server: LeaseServer, agent: string) =>
  leaseOf(server, agent)?.metadata.annotations?.['argocd-agent.argoproj-labs.io/connected'];

/** Caches that have caught up when a test says so. */
function askedToCatchUp() {
  const asked: PromiseWithResolvers<void>[] = [];
  const caughtUp = () => {
    const answer = Promise.withResolvers<void>();
    asked.push(answer);
    return answer.promise;
  };
  return { asked, caughtUp };
}

test('an agent is served after its hold is written, with one write; all know who serves it', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server);
  a.come('edge');
  expect(a.attached.has('edge')).toBe(false);
  await until(() => a.attached.has('edge'));
  expect([leaseOf(server, 'edge')?.spec?.holderIdentity, term(server, 'edge')]).toEqual([a.identity, 1]);
  expect(wrote(server, 'edge')).toBe(1);
  expect(a.replicas.directory.holderOf('edge')).toBe('here');
  await until(() => {
    const holder = b.replicas.directory.holderOf('edge');
    return typeof holder === 'object' && holder.identity === a.identity;
  });
  a.leave('edge');
  await until(() => connected(server, 'edge') === 'false');
  await until(() => b.replicas.directory.holderOf('edge') === undefined);
  expect(wrote(server, 'edge')).toBe(2);
});

test('an agent that connects to another replica is handed over after the last write for it has ended', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server);
  a.come('edge');
  await until(() => a.attached.has('edge'));
  const write = Promise.withResolvers<void>();
  const writing = a.replicas.fence.run('edge', new AbortController().signal, () => write.promise);
  b.come('edge');
  await until(() => !a.attached.has('edge'));
  await expect(a.replicas.fence.run('edge', new AbortController().signal, async () => 1)).rejects.toThrow(FencedError);
  expect(b.attached.has('edge')).toBe(false);
  expect(leaseOf(server, 'edge')?.spec?.holderIdentity).toBe(a.identity);
  write.resolve();
  await writing;
  await until(() => b.attached.has('edge'));
  expect([a.lost, term(server, 'edge')]).toEqual([['edge'], 2]);
  expect(connected(server, 'edge')).toBe('true');
});

test('an agent that leaves before it is handed over stays nobody’s', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server);
  a.come('edge');
  await until(() => a.attached.has('edge'));
  const write = Promise.withResolvers<void>();
  const writing = a.replicas.fence.run('edge', new AbortController().signal, () => write.promise);
  b.come('edge');
  await until(() => !a.attached.has('edge'));
  b.leave('edge');
  write.resolve();
  await writing;
  await until(() => leaseOf(server, 'edge')?.spec?.holderIdentity === '');
  expect(connected(server, 'edge')).toBe('false');
});

test('an agent is served in a new term when what is known of it is up to date, and at once in the same term', async () => {
  const server = new LeaseServer();
  const { asked, caughtUp } = askedToCatchUp();
  const [a, b] = [start(server, { caughtUp }), start(server)];
  a.come('edge');
  await until('it asks', () => asked.length === 1);
  expect(leaseOf(server, 'edge')?.spec?.holderIdentity, 'the hold is written before').toBe(a.identity);
  expect(a.attached.has('edge')).toBe(false);
  asked[0]?.resolve();
  await until(() => a.attached.has('edge'));
  b.come('edge');
  await until(() => b.attached.has('edge'));
  a.come('edge');
  await until('it asks again', () => asked.length === 2);
  expect(a.attached.has('edge')).toBe(false);
  asked[1]?.resolve();
  await until(() => a.attached.has('edge'));
  // A newer stream of the same agent.
  a.come('edge');
  expect([a.attached.has('edge'), asked.length]).toEqual([true, 2]);
});

test('a replica that cannot find out whether it is up to date sends the agent away, and another one takes it', async () => {
  const server = new LeaseServer();
  let asked = 0;
  const caughtUp = async () => {
    asked++;
    throw new Error('the API server does not answer');
  };
  const [a, b] = [start(server, { caughtUp, catchUpMs: 500 }), start(server)];
  a.come('edge');
  await until(() => a.lost.includes('edge'));
  expect(asked, 'it asks again').toBeGreaterThan(2);
  await until('it gives the hold up', () => leaseOf(server, 'edge')?.spec?.holderIdentity === '');
  b.come('edge');
  await until(() => b.attached.has('edge'));
});

test('the agents of a replica that died are served by another one, which deposed it', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server);
  a.come('edge');
  await until(() => a.attached.has('edge'));
  const { identity } = a;
  a.kill();
  const at = performance.now();
  b.come('edge');
  await until(() => b.attached.has('edge'));
  expect(performance.now() - at).toBeGreaterThan(800);
  expect([...server.stored.values()].map(({ spec }) => spec?.holderIdentity)).not.toContain(identity);
  expect(b.replicas.isResponsible('stranger')).toBe(true);
});

test('a replica that is cut off from the API server writes nothing long before another one takes over', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server);
  a.come('edge');
  await until(() => a.attached.has('edge'));
  const { identity } = a;
  a.cut();
  b.come('edge');
  let takenAt = 0;
  let lastWriteAt = 0;
  let isOver = false;
  const writing = (async () => {
    while (!isOver) {
      const signal = AbortSignal.timeout(200);
      await a.replicas.fence
        .run('edge', signal, async () => {
          lastWriteAt = performance.now();
        })
        .catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  await until(() => b.attached.has('edge'));
  takenAt = performance.now();
  isOver = true;
  await writing;
  expect(takenAt - lastWriteAt).toBeGreaterThan(300);
  expect(a.attached.has('edge')).toBe(true);
  a.heal();
  await until('it lives as another one', () => a.identity !== identity && b.replicas.directory.peers().length === 1);
  expect(a.attached.has('edge')).toBe(false);
  expect(b.attached.has('edge')).toBe(true);
});

test('a replica that stays cut off sends its agents away, also those that come', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server);
  a.come('edge');
  await until(() => a.attached.has('edge'));
  a.cut();
  await until(() => a.lost.includes('edge'));
  b.come('edge');
  await until(() => b.attached.has('edge'));
  a.come('other');
  await until(() => a.lost.includes('other'));
});

test('a replica that is told that it was deposed sends its agents away at once', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server);
  const tell = ({ identity }: { readonly identity: string }) => a.replicas.toldDeposed(identity);
  a.come('edge');
  await until(() => a.attached.has('edge'));
  tell(a);
  tell(b);
  expect(a.lost, 'it can renew its Lease, so that is about a former one').toEqual([]);
  const { promise: told, resolve } = Promise.withResolvers<readonly string[]>();
  b.replicas.tellDeposedBy((peer) => {
    tell(peer);
    resolve([...a.lost]);
  });
  a.cut();
  expect(await told).toEqual(['edge']);
});

test('an API server that is away for all deposes nobody: all go on', async () => {
  const server = new LeaseServer();
  const all = await startAll(server, 3);
  for (const [index, replica] of all.entries()) {
    replica.come(`edge-${index}`);
  }
  await until(() => all.every((replica, index) => replica.attached.has(`edge-${index}`)));
  const before = all.map(({ identity }) => identity);
  for (const replica of all) {
    replica.cut();
  }
  const waiting = all.map(({ replicas }, index) =>
    until(
      'writes wait',
      async () =>
        await replicas.fence
          .run(`edge-${index}`, AbortSignal.timeout(1), async () => false)
          .catch((error: Error) => error.name === 'TimeoutError'),
    ),
  );
  await Promise.all(waiting);
  // For longer than the lease duration.
  const at = performance.now();
  await until(() => performance.now() - at > 1_500);
  for (const replica of all) {
    replica.heal();
  }
  for (const [index, { replicas }] of all.entries()) {
    expect(await replicas.fence.run(`edge-${index}`, AbortSignal.timeout(2_000), async () => 'written')).toBe(
      'written',
    );
  }
  expect(all.map(({ identity }) => identity)).toEqual(before);
  expect(all.every((replica, index) => replica.attached.has(`edge-${index}`))).toBe(true);
});

test('a clean end frees the agents at once', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server, longLeases);
  for (const agent of ['edge', 'other']) {
    a.come(agent);
    await until(() => a.attached.has(agent));
  }
  const closed = a.close();
  b.come('edge');
  await until(() => b.attached.has('edge'));
  await closed;
  await until(() => connected(server, 'other') === 'false');
  expect(leaseOf(server, 'edge')?.spec?.holderIdentity).toBe(b.identity);
});

test('a new process of the same pod deposes its predecessor at once', async () => {
  const server = new LeaseServer();
  const a = start(server, { pod: 'principal-1', ...longLeases });
  await until(() => a.replicas.isResponsible(undefined));
  a.come('edge');
  await until(() => a.attached.has('edge'));
  a.kill();
  const again = start(server, { pod: 'principal-1', ...longLeases });
  again.come('edge');
  await until(() => again.attached.has('edge'));
});

test('exactly one replica is responsible for what nobody holds; another one when it is gone', async () => {
  const server = new LeaseServer();
  const all = await startAll(server, 3);
  const leaders = () => all.filter(({ replicas }) => replicas.isResponsible('away'));
  await until(() => leaders().length === 1);
  const [first] = leaders() as [TestReplica];
  expect(first.replicas.isResponsible(undefined)).toBe(true);
  const other = all.find((one) => one !== first) as TestReplica;
  other.come('away');
  await until(() => other.attached.has('away'));
  await until(() => !first.replicas.isResponsible('away'));
  expect(leaders()).toEqual([other]);
  other.leave('away');
  await until(() => first.replicas.isResponsible('away'));
  first.kill();
  all.splice(all.indexOf(first), 1);
  await until('another one leads', () => leaders().length === 1);
});

test('the leader is responsible for what somebody held when it knows what that one wrote, each time', async () => {
  const server = new LeaseServer();
  const { asked, caughtUp } = askedToCatchUp();
  const leader = start(server, { caughtUp });
  await until(() => leader.replicas.isResponsible('edge'));
  expect(asked, 'nobody ever held it').toEqual([]);
  const other = start(server);
  for (const time of [1, 2]) {
    other.come('edge');
    await until(() => typeof leader.replicas.directory.holderOf('edge') === 'object');
    other.leave('edge');
    await until('it asks', () => asked.length === time);
    expect(leader.replicas.isResponsible('edge')).toBe(false);
    asked.at(-1)?.resolve();
    await until(() => leader.replicas.isResponsible('edge'));
  }
});

test('a leader whose watch is behind writes nothing for an agent that somebody holds by now', async () => {
  const server = new LeaseServer();
  const leader = start(server);
  await until(() => leader.replicas.isResponsible('edge'));
  const other = start(server);
  await until(() => other.replicas.directory.peers().length === 1 && leader.replicas.directory.peers().length === 1);
  const write = () => leader.replicas.fence.run('edge', AbortSignal.timeout(2_000), async () => 'written');
  expect(await write()).toBe('written');
  leader.blind();
  other.come('edge');
  await until(() => other.attached.has('edge'));
  await expect(write()).rejects.toThrow(FencedError);
  expect(leader.replicas.isResponsible('edge'), 'it knows by now').toBe(false);
});

test('two connections of one agent: the newer one wins, and the older one ends', async () => {
  const server = new LeaseServer();
  const [a, b, c] = (await startAll(server, 3)) as [TestReplica, TestReplica, TestReplica];
  a.come('edge');
  await until(() => a.attached.has('edge'));
  const write = Promise.withResolvers<void>();
  const writing = a.replicas.fence.run('edge', new AbortController().signal, () => write.promise);
  b.come('edge');
  await until(
    () => leaseOf(server, 'edge')?.metadata.annotations?.['argocd-agent.argoproj-labs.io/wanted-by'] === b.identity,
  );
  c.come('edge');
  await until(() => b.lost.includes('edge'));
  write.resolve();
  await writing;
  await until(() => c.attached.has('edge'));
  expect([a.attached.size, b.attached.size]).toEqual([0, 0]);
});

test('a replica that could not write does not ask for an agent that has connected to another one since', async () => {
  const server = new LeaseServer();
  const timing = { renewMs: 100, deadlineMs: 20_000, durationMs: 30_000 };
  const [a, b] = [start(server, { timing }), start(server, { timing })];
  await until(() => [a, b].every(({ replicas }) => replicas.directory.peers().length === 1));
  a.cut();
  // The stream here will be dead: its agent goes to the other one, and this one is not told.
  a.come('edge');
  const at = Date.now();
  await until(() => Date.now() > at);
  b.come('edge');
  await until(() => b.attached.has('edge'));
  a.heal();
  await until('it lets the agent go', () => a.lost.includes('edge'));
  expect([b.lost, [...b.attached], term(server, 'edge')]).toEqual([[], ['edge'], 1]);
  // It is believed when it comes again, whatever the clocks say.
  a.come('edge');
  await until(() => a.attached.has('edge'));
});

test('the mode of an agent is remembered by all, and forgotten by all when it leaves the fleet', async () => {
  const server = new LeaseServer();
  const [a, b] = await pair(server);
  const modes = () => [a, b].map(({ replicas }) => replicas.holds.modeOf('edge'));
  a.come('edge', 'autonomous');
  await until(() => modes().every((mode) => mode === 'autonomous'));
  for (const { replicas } of [a, b]) {
    replicas.holds.forget('edge');
  }
  a.leave('edge');
  await until(() => connected(server, 'edge') === 'false');
  await until(() => modes().every((mode) => mode === undefined));
  b.come('edge', 'managed');
  await until(() => modes().every((mode) => mode === 'managed'));
});

test('a replica with more than its share sends agents away until it has not', async () => {
  expect([excess({ own: 100, held: 100, live: 1 }), excess({ own: 60, held: 100, live: 2 })]).toEqual([0, 0]);
  expect(excess({ own: 100, held: 100, live: 2 })).toBe(35);
  const server = new LeaseServer();
  const rebalancing = { lookMs: 20, patience: 2 };
  const a = start(server, { rebalancing });
  const agents = Array.from({ length: 30 }, (_, index) => `edge-${index}`);
  for (const agent of agents) {
    a.come(agent);
  }
  await until(() => a.attached.size === agents.length);
  const b = start(server, { rebalancing });
  await until('agents go over', () => {
    for (const agent of agents.filter((one) => !a.attached.has(one) && !b.attached.has(one))) {
      b.come(agent);
    }
    return b.attached.size >= 7 && a.attached.size <= 23;
  });
  expect(a.attached.size).toBeGreaterThan(15);
  expect(b.lost).toEqual([]);
});

test('a write that was called off counts until it has ended', async () => {
  const server = new LeaseServer();
  const a = start(server);
  await until(() => a.replicas.isResponsible('edge'));
  const write = Promise.withResolvers<StoredObject>();
  const store = { create: () => write.promise } as unknown as Store<StoredObject>;
  const { fence } = a.replicas;
  const guarded = fence.guard(store, { ownerOf: ({ metadata }) => metadata.namespace, get: () => undefined });
  const object = { metadata: { name: 'x', namespace: 'edge' } };
  const caller = new AbortController();
  const creation = guarded.create(object, caller.signal);
  let isQuiet = false;
  const quiet = fence.quiet('edge').then(() => {
    isQuiet = true;
  });
  caller.abort(new Error('called off'));
  await expect(creation).rejects.toThrow('called off');
  expect(isQuiet).toBe(false);
  const settled = guarded.settled?.(object.metadata);
  expect(settled).toBeDefined();
  write.resolve(object);
  await Promise.all([quiet, settled]);
  expect(guarded.settled?.(object.metadata)).toBeUndefined();
});

test('a replica that the cache does not have yet is not taken for dead', async () => {
  const server = new LeaseServer();
  const c = start(server);
  await until(() => c.replicas.isResponsible('edge'));
  // A cache whose watch has brought nothing yet.
  const { client } = server.connect(() => false);
  const live = new LiveReplicas({
    client,
    namespace: 'argocd',
    informer: { subscribe: () => () => undefined, get: () => undefined },
    self: { identity: 'b', isCurrent: true, currentSince: 0, check: () => undefined },
    pod: undefined,
    timing: { renewMs: 100, deadlineMs: 500, durationMs: 1_000 },
    changed: () => undefined,
    deposed: () => undefined,
    logger: createLogger({ level: 'fatal' }),
  });
  expect(await live.isGone(c.identity)).toBe(false);
  expect(await live.isGone('c_0123456789')).toBe(true);
});

test('a patch and a deletion carry the version of the object that they were planned for', async () => {
  const server = new LeaseServer();
  const a = start(server);
  await until(() => a.replicas.isResponsible('edge'));
  const patches: unknown[] = [];
  const deletions: unknown[] = [];
  const object = { metadata: { name: 'x', namespace: 'edge', uid: 'u', resourceVersion: '7' } };
  const store = {
    patch: async (_ref: ObjectRef, patch: unknown) => {
      patches.push(patch);
      return object;
    },
    delete: async (_ref: ObjectRef, options: unknown) => void deletions.push(options),
  } as unknown as Store<StoredObject>;
  const guarded = a.replicas.fence.guard(store, {
    ownerOf: ({ metadata }) => metadata.namespace,
    get: () => undefined,
  });
  const ref = { namespace: 'edge', name: 'x' };
  await guarded.patch(ref, { status: {} }, new AbortController().signal, object);
  expect(patches).toEqual([{ metadata: { resourceVersion: '7' }, status: {} }]);
  const how = { uid: 'u', propagation: 'Background' } as const;
  await guarded.delete(ref, how, new AbortController().signal, object);
  expect(deletions).toEqual([{ ...how, resourceVersion: '7' }]);
});
