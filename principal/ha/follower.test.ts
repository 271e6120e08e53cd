import { expect, test, vi } from 'vitest';
import type { Informer, KubeObject } from '../../lib/kube/index.ts';
import { decodeEvent, type GrpcError, grpcStatus } from '../../lib/wire/index.ts';
import type { ReplicatedEvent } from '../../proto/gen/replicationapi/replication.ts';
import { Follower } from './follower.ts';
import { hubApplicationSets, type ReplicatedKind } from './kinds.ts';

function setUp() {
  const objects = new Map<string, KubeObject>();
  const kind: ReplicatedKind = {
    name: 'Application',
    target: 'application',
    type: hubApplicationSets,
    informer: { get: ({ name }: { name: string }) => objects.get(name) } as unknown as Informer<KubeObject>,
    includes: () => true,
    yields: false,
  };
  const sent: ReplicatedEvent[] = [];
  const ends: GrpcError[] = [];
  const acknowledged: string[] = [];
  let drain: () => void = () => undefined;
  const state = { takes: true, ended: false };
  const follower = new Follower(
    'peer',
    {
      address: '127.0.0.1:1',
      judge: () => undefined,
      send: (event) => {
        sent.push(event);
        return state.takes;
      },
      onDrain: (listener) => {
        drain = listener;
      },
      end: (error) => ends.push(error),
      get ended() {
        return state.ended;
      },
    },
    60_000,
    {
      principalUid: 'hub-1',
      agentOf: () => 'agent1',
      sent: () => undefined,
      ready: () => undefined,
      acknowledged: (_, { metadata: { name } }) => acknowledged.push(name),
      progressed: () => undefined,
      closed: () => undefined,
    },
  );
  const put = (name: string, text = '') => {
    const object = { metadata: { name, namespace: 'agent1', uid: `uid-${name}` }, text, operation: { sync: {} } };
    objects.set(name, object);
    follower.changed(kind, object);
  };
  const remove = (name: string) => {
    const last = objects.get(name);
    objects.delete(name);
    if (last !== undefined) {
      follower.gone(kind, last);
    }
  };
  const seen = () =>
    sent.map(({ event, sequenceNum }) => {
      const { type, data } = decodeEvent(event);
      const object = JSON.parse(Buffer.from(data).toString());
      return `${sequenceNum} ${type.split('.').at(-1)} ${object.metadata.name} ${object.text ?? ''}`.trim();
    });
  const refuse = (...names: string[]) =>
    follower.refuses(new Map(names.map((name) => [`Application/agent1/${name}`, { kind, object: objects.get(name) }])));
  return {
    follower,
    put,
    remove,
    refuse,
    mayHave: (name: string) => follower.mayHave(kind, objects.get(name) as KubeObject),
    seen,
    sent,
    ends,
    acknowledged,
    state,
    drain: () => drain(),
  };
}

test('nothing is sent before the snapshot was taken; then only the newest state of each object', () => {
  const { follower, put, remove, seen, sent } = setUp();
  put('a', 'one');
  put('a', 'two');
  put('b');
  remove('b');
  expect(seen()).toEqual([]);
  expect(follower.lag).toBe(2);
  follower.acknowledged(0n);
  expect(seen()).toEqual(['1 spec-update a two', '2 delete b']);
  expect(sent[0]).toMatchObject({ agentName: 'agent1', direction: 'outbound' });
  expect(Buffer.from(decodeEvent(sent[0]?.event).data).toString(), 'a standby runs no operation').not.toContain('sync');
});

test('numbers have no gaps, whatever is left out while a connection is full', () => {
  const { follower, put, seen, state, drain, acknowledged } = setUp();
  follower.acknowledged(0n);
  state.takes = false;
  put('a', '1');
  for (let turn = 2; turn < 50; turn++) {
    put('a', String(turn));
    put(`b${turn % 3}`, String(turn));
  }
  expect(seen()).toEqual(['1 spec-update a 1']);
  expect(follower.lag, 'objects, not states').toBe(4);
  state.takes = true;
  drain();
  expect(seen().slice(1)).toEqual([
    '2 spec-update a 49',
    '3 spec-update b2 47',
    '4 spec-update b0 48',
    '5 spec-update b1 49',
  ]);
  follower.acknowledged(4n);
  expect(acknowledged).toEqual(['a', 'b2', 'b0']);
  expect(follower.lag).toBe(1);
  expect(follower.lagMs).toBeGreaterThan(0);
  follower.acknowledged(5n);
  expect(follower.lagMs).toBe(0);
});

test('a standby that does not acknowledge is sent no more than a bounded number of events', () => {
  const { follower, put, sent } = setUp();
  follower.acknowledged(0n);
  for (let turn = 0; turn < 3_000; turn++) {
    put(`a${turn}`);
  }
  expect(sent.length).toBe(1_000);
  expect(follower.lag).toBe(3_000);
  follower.acknowledged(1_000n);
  expect(sent.length).toBe(2_000);
});

test('an acknowledgement of what was not sent ends the stream', () => {
  const { follower, ends } = setUp();
  follower.acknowledged(7n);
  expect(ends.map(({ code }) => code)).toEqual([grpcStatus.invalidArgument]);
});

test('a standby that takes no snapshot in time is sent away', () => {
  vi.useFakeTimers();
  const { ends } = setUp();
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  expect(ends.map(({ code }) => code)).toEqual([grpcStatus.deadlineExceeded]);
});

test('an object that is not acknowledged holds up itself alone, however often others change', () => {
  const { follower, put, seen } = setUp();
  follower.acknowledged(0n);
  put('refused');
  for (let turn = 1; turn <= 3_000; turn++) {
    put(`a${turn % 50}`, String(turn));
  }
  expect(seen().at(-1)).toBe('3001 spec-update a0 3000');
  expect(follower.lag).toBe(51);
});

test('more objects than the window has go on beside one that the standby refuses, which is neither marked nor forgotten', () => {
  const { follower, put, remove, refuse, mayHave, acknowledged, sent } = setUp();
  follower.acknowledged(0n);
  put('refused', 'one');
  refuse('refused');
  for (let turn = 1; turn <= 3_000; turn++) {
    put(`a${turn}`);
    follower.acknowledged(BigInt(sent.length));
  }
  expect(sent.length).toBe(3_001);
  expect(follower.lag).toBe(1);
  expect(mayHave('refused')).toBe(false);
  expect(acknowledged).not.toContain('refused');
  put('refused', 'two');
  follower.acknowledged(3_002n);
  expect(follower.lag, 'its new state is refused, too').toBe(1);
  refuse();
  expect(follower.lag).toBe(0);
  expect(acknowledged.at(-1)).toBe('refused');
  put('gone');
  refuse('gone');
  remove('gone');
  follower.acknowledged(3_004n);
  expect(follower.lag).toBe(1);
  refuse();
  expect(follower.lag).toBe(0);
});

test('what a standby refuses of its first snapshot counts as not acknowledged', () => {
  const { follower, put, refuse, mayHave, acknowledged } = setUp();
  put('other');
  refuse('refused');
  follower.acknowledged(0n);
  expect(follower.lag).toBe(2);
  expect(acknowledged).toEqual([]);
  follower.acknowledged(1n);
  expect(acknowledged).toEqual(['other']);
  expect(mayHave('other')).toBe(true);
  expect(follower.lag).toBe(1);
});

test('for how long an object lags is counted from its oldest state that is not acknowledged', () => {
  vi.useFakeTimers();
  try {
    const { follower, put } = setUp();
    follower.acknowledged(0n);
    put('a', '1');
    vi.advanceTimersByTime(1_000);
    put('a', '2');
    expect(follower.lagMs).toBe(1_000);
    follower.acknowledged(1n);
    expect(follower.lagMs).toBe(0);
    vi.advanceTimersByTime(500);
    expect(follower.lagMs).toBe(500);
  } finally {
    vi.useRealTimers();
  }
});
