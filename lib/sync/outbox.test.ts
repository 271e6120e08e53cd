import { describe, expect, test } from 'vitest';
import { FairTurns } from '../base/index.ts';
import { OutboxFixture as Fixture, keyOfApp as key } from './testing/outbox-fixture.ts';

const shop = key('shop');

test('sends create, update and delete as the difference to what was acknowledged', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  expect(f.take()).toEqual(['create shop_u1_1']);
  expect(f.ack('shop_u1_1')).toBe(true);
  f.set('shop', 'u1', 2);
  expect(f.take()).toEqual(['update shop_u1_2']);
  expect(f.ack('shop_u1_2')).toBe(true);
  f.remove('shop');
  expect(f.take()).toEqual(['delete shop_u1_2_delete']);
  expect(f.ack('shop_u1_2_delete')).toBe(true);
  expect(f.take()).toEqual([]);
  expect(f.outbox.pending).toBe(0);
});

test('a change is pending until it is acknowledged, and only then the outbox is idle', () => {
  const f = new Fixture();
  f.set('shop', 'u1', 1);
  expect([f.outbox.pending, f.outbox.inFlight, f.idle]).toEqual([1, 0, 0]);
  f.connect();
  expect([f.outbox.pending, f.outbox.inFlight, f.idle]).toEqual([1, 1, 0]);
  f.ack('shop_u1_1');
  expect([f.outbox.pending, f.outbox.inFlight, f.idle]).toEqual([0, 0, 1]);
});

test('what is to be repeated is sent at once', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.ack('shop_u1_1');
  f.take();
  f.outbox.repeat(shop, { uid: 'u1' });
  expect(f.take()).toEqual(['update shop_u1_1_0']);
});

test('a state with the same digest is not sent', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1, 'same');
  f.ack('shop_u1_1');
  f.take();
  f.set('shop', 'u1', 2, 'same');
  expect(f.take()).toEqual([]);
});

test('a thousand changes while the link is down cost one message', () => {
  const f = new Fixture();
  for (let version = 1; version <= 1_000; version++) {
    f.set('shop', 'u1', version);
  }
  f.connect();
  expect(f.take()).toEqual(['create shop_u1_1000']);
});

test('one event per resource is in flight; what changed meanwhile follows its acknowledgement', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.set('shop', 'u1', 2);
  f.set('shop', 'u1', 3);
  expect(f.take()).toEqual(['create shop_u1_1']);
  f.ack('shop_u1_1');
  expect(f.take()).toEqual(['update shop_u1_3']);
});

test('a copy that is found again where it was deleted is deleted under another id', () => {
  const f = new Fixture({
    random: (() => {
      let count = 0;
      return () => ++count / 2 ** 40;
    })(),
  });
  f.connect();
  f.outbox.peerHolds(shop, { uid: 'u1' });
  const [first = ''] = f.take();
  f.ack(first.replace('delete ', ''));
  f.outbox.peerHolds(shop, { uid: 'u1' });
  const [second = ''] = f.take();
  expect(first).toMatch(/^delete shop_u1_/);
  expect(second).toMatch(/^delete shop_u1_/);
  expect(second).not.toBe(first);
});

test('what comes and goes before it was sent is never sent', () => {
  const f = new Fixture();
  f.set('shop', 'u1', 1);
  f.remove('shop');
  f.connect();
  expect(f.take()).toEqual([]);
  expect(f.outbox.pending).toBe(0);
});

test('what was sent and not acknowledged is deleted when it goes', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.take();
  f.outbox.disconnected();
  f.remove('shop');
  f.connect();
  expect(f.take()).toEqual(['delete shop_u1_1_delete']);
});

test('a re-created resource is one create; if that stays unanswered, both incarnations are deleted', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.ack('shop_u1_1');
  f.set('shop', 'u2', 5);
  f.take();
  f.outbox.disconnected();
  f.remove('shop');
  f.connect();
  expect(f.take()).toEqual(['delete shop_u1_1_delete']);
  f.ack('shop_u1_1_delete');
  expect(f.take()).toEqual(['delete shop_u2_5_delete']);
  f.ack('shop_u2_5_delete');
  expect(f.outbox.pending).toBe(0);
});

test('going back to what was acknowledged before is sent while the peer may have another state', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1, 'a');
  f.ack('shop_u1_1');
  f.set('shop', 'u1', 2, 'b');
  f.outbox.disconnected();
  f.set('shop', 'u1', 3, 'a');
  f.take();
  f.connect();
  expect(f.take()).toEqual(['update shop_u1_3']);
});

test('waits longer and longer for an acknowledgement, and then sends what is true then', async () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  const times: number[] = [];
  for (let resend = 0; resend < 5; resend++) {
    f.take();
    while (f.sent.length === 0) {
      await f.time.runUntil(f.time.now() + 1_000, 1_000);
    }
    times.push(f.time.now());
  }
  expect(times).toEqual([5_000, 25_000, 105_000, 225_000, 345_000]);
  f.source.set('shop', { uid: 'u1', version: '9', digest: 's9', object: 's9' });
  f.take();
  await f.time.runUntil(f.time.now() + 121_000, 1_000);
  expect(f.take()).toEqual(['create shop_u1_9']);
  expect(f.ack('shop_u1_1'), 'an acknowledgement of the superseded event').toBe(false);
  expect(f.ack('shop_u1_9')).toBe(true);
});

test('a new state does not wait out the long pause of an old one', async () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  await f.time.runUntil(26_000, 1_000);
  f.take();
  f.set('shop', 'u1', 2);
  await f.time.runUntil(31_000, 1_000);
  expect(f.take()).toEqual(['create shop_u1_2']);
});

test('resources that are never acknowledged hold up no other, and do not spin', async () => {
  const f = new Fixture({ tuning: { maxInFlight: 2 } });
  f.connect();
  for (const name of ['a', 'b', 'c', 'd']) {
    f.set(name, 'u', 1);
  }
  expect(f.take()).toEqual(['create a_u_1', 'create b_u_1']);
  await f.time.runUntil(5_000, 100);
  expect(f.take(), 'those that were not sent yet come first').toEqual(['create c_u_1', 'create d_u_1']);
  f.ack('c_u_1');
  f.ack('d_u_1');
  expect(f.take()).toEqual(['create a_u_1', 'create b_u_1']);
  f.set('e', 'u', 1);
  expect(f.take(), 'resends take no place').toEqual(['create e_u_1']);
  f.ack('e_u_1');
  await f.time.runUntil(3_600_000, 10_000);
  expect(f.take().length).toBeLessThan(70);
});

test('first in, first out by the moment of getting out of step', () => {
  const f = new Fixture({ tuning: { maxInFlight: 1 } });
  for (const name of ['c', 'a', 'b']) {
    f.set(name, 'u', 1);
  }
  f.set('c', 'u', 2);
  f.connect();
  f.ack('c_u_2');
  f.set('c', 'u', 3);
  f.ack('a_u_1');
  f.ack('b_u_1');
  expect(f.take()).toEqual(['create c_u_2', 'create a_u_1', 'create b_u_1', 'update c_u_3']);
});

test('a full link is left alone until it takes more, and then gets what is true then', () => {
  const f = new Fixture();
  f.room = 1;
  f.connect();
  f.set('a', 'u', 1);
  f.set('b', 'u', 1);
  f.set('b', 'u', 2);
  expect(f.take()).toEqual(['create a_u_1']);
  f.room = 9;
  f.outbox.writable();
  expect(f.take()).toEqual(['create b_u_2']);
});

test('what was in flight is sent again at once on a new link, under the same id', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.outbox.disconnected();
  f.connect();
  expect(f.take()).toEqual(['create shop_u1_1', 'create shop_u1_1']);
  expect(f.ack('shop_u1_1')).toBe(true);
  expect(f.ack('shop_u1_1'), 'the second copy is acknowledged too').toBe(false);
});

test('an intent follows the state it builds on and keeps its id', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.outbox.request(shop, 'set-operation');
  expect(f.take()).toEqual(['create shop_u1_1']);
  f.ack('shop_u1_1');
  expect(f.take()).toEqual(['set-operation shop_u1_1_set-operation']);
  f.outbox.disconnected();
  f.set('shop', 'u1', 2);
  f.connect();
  expect(f.take()).toEqual(['update shop_u1_2']);
  f.ack('shop_u1_2');
  expect(f.take()).toEqual(['set-operation shop_u1_1_set-operation']);
  expect(f.outbox.requested(shop, 'set-operation')).toBe(true);
  f.ack('shop_u1_1_set-operation');
  expect(f.outbox.requested(shop, 'set-operation')).toBe(false);
  expect(f.outbox.pending).toBe(0);
});

test('a second acknowledgement of a state does not pass for that of its intent or deletion', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.outbox.request(shop, 'set-operation');
  f.ack('shop_u1_1');
  expect(f.ack('shop_u1_1')).toBe(false);
  expect(f.outbox.requested(shop, 'set-operation')).toBe(true);
});

test('a newer intent of the same name replaces the older, also in flight', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.ack('shop_u1_1');
  f.outbox.request(shop, 'set-operation');
  f.set('shop', 'u1', 2, 's1');
  f.outbox.request(shop, 'set-operation');
  f.take();
  f.ack('shop_u1_1_set-operation');
  expect(f.take()).toEqual(['set-operation shop_u1_2_set-operation']);
});

test('a peer may take its time with an intent: a new state goes by it soon, and a late acknowledgement counts', async () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.ack('shop_u1_1');
  f.outbox.request(shop, 'set-operation');
  f.take();
  f.outbox.changed(shop);
  await f.time.runUntil(2_000, 100);
  expect(f.take(), 'nothing else is to be said').toEqual([]);
  f.set('shop', 'u1', 2);
  await f.time.runUntil(2_100, 100);
  expect(f.take()).toEqual(['update shop_u1_2']);
  expect(f.ack('shop_u1_1_set-operation')).toBe(true);
  expect(f.outbox.requested(shop, 'set-operation')).toBe(false);
  f.ack('shop_u1_2');
  expect([f.take(), f.outbox.pending]).toEqual([[], 0]);
});

test('an intent does not wait for another one of its resource that the peer does not acknowledge', async () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  f.ack('shop_u1_1');
  f.outbox.request(shop, 'spec-update');
  await f.time.runUntil(600_000, 1_000);
  f.take();
  f.outbox.request(shop, 'set-operation');
  await f.time.runUntil(602_000, 1_000);
  expect(f.take()).toEqual(['set-operation shop_u1_1_set-operation']);
  f.ack('shop_u1_1_set-operation');
  expect(f.take()).toEqual(['spec-update shop_u1_1_spec-update']);
  f.ack('shop_u1_1_spec-update');
  expect(f.outbox.pending).toBe(0);
});

test('an intent is dropped with its resource, when it is re-created, and when it is withdrawn', () => {
  const f = new Fixture();
  f.set('shop', 'u1', 1);
  f.outbox.request(shop, 'set-operation');
  f.set('shop', 'u2', 2);
  f.set('web', 'w', 1);
  f.outbox.request(key('web'), 'set-operation');
  f.outbox.withdraw(key('web'), 'set-operation');
  f.connect();
  f.ack('shop_u2_2');
  f.ack('web_w_1');
  expect(f.take()).toEqual(['create shop_u2_2', 'create web_w_1']);
});

test('after a restart only differences to what the peer holds are sent', () => {
  const f = new Fixture();
  f.source.set('same', { uid: 'u', version: '1', digest: 'd', object: '' });
  f.source.set('other', { uid: 'u', version: '1', digest: 'd', object: '' });
  f.source.set('unsaid', { uid: 'u', version: '1', digest: 'd', object: '' });
  f.source.set('older', { uid: 'u2', version: '1', digest: 'd', object: '' });
  f.outbox.peerHolds(key('same'), { uid: 'u', digest: 'd' });
  f.outbox.peerHolds(key('other'), { uid: 'u', digest: 'x' });
  f.outbox.peerHolds(key('unsaid'), { uid: 'u' });
  f.outbox.peerHolds(key('older'), { uid: 'u1', digest: 'd' });
  f.outbox.peerHolds(key('gone'), { uid: 'u', digest: 'd' });
  f.connect();
  const sent = f.sent.map(({ type, key: { name } }) => `${type} ${name}`);
  expect(sent).toEqual(['update other', 'update unsaid', 'create older', 'delete gone']);
});

test('the word of the peer does not override the acknowledgement that is under way', () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1, 'new');
  f.outbox.peerHolds(shop, { uid: 'u1', digest: 'old' });
  f.ack('shop_u1_1');
  expect(f.take()).toEqual(['create shop_u1_1']);
  expect(f.outbox.held(shop)).toEqual({ uid: 'u1', digest: 'new' });
});

test('a peer that says it has none may have acknowledged since: what goes before it is sent again is deleted there', () => {
  const f = new Fixture({ random: () => 0.5 });
  f.connect();
  f.set('shop', 'u1', 1);
  f.ack('shop_u1_1');
  f.take();
  f.room = 0;
  f.outbox.peerHolds(shop, undefined);
  f.remove('shop');
  f.room = 1;
  f.outbox.writable();
  expect(f.take()).toEqual([expect.stringMatching(/^delete shop_u1_1\w*_delete$/)]);
});

test('repeat sends again under another id, after what is in flight', () => {
  const f = new Fixture({ random: () => 0.5 });
  f.connect();
  f.set('shop', 'u1', 1);
  f.outbox.repeat(shop);
  f.ack('shop_u1_1');
  const [first, second] = f.take();
  expect(first).toBe('create shop_u1_1');
  expect(second).toMatch(/^create shop_u1_1_\w+$/);
});

test('repeat updates a copy that the peer certainly has, also while its creation is in flight', () => {
  const f = new Fixture({ random: () => 0.5 });
  f.connect();
  f.set('shop', 'u1', 1);
  expect(f.outbox.isSent(shop)).toBe(true);
  f.outbox.repeat(shop, { uid: 'u1' });
  expect(f.outbox.isSent(shop)).toBe(false);
  f.ack('shop_u1_1');
  const [first, second = ''] = f.take();
  expect(first).toBe('create shop_u1_1');
  expect(second).toMatch(/^update shop_u1_1_\w+$/);
  expect(f.outbox.isSent(shop)).toBe(true);
  f.ack(second.replace('update ', ''));
  expect(f.outbox.isSent(shop)).toBe(true);
  f.set('shop', 'u1', 2);
  f.set('shop', 'u1', 3);
  expect(f.outbox.isSent(shop)).toBe(false);
  f.remove('shop');
  expect(f.outbox.isSent(shop)).toBe(false);
});

test('without deletes nothing is said about what goes, acknowledged or not', () => {
  const f = new Fixture({ sendsDeletes: false });
  f.connect();
  f.set('shop', 'u1', 1);
  f.ack('shop_u1_1');
  f.set('web', 'u1', 1);
  f.take();
  f.remove('shop');
  f.remove('web');
  f.ack('web_u1_1');
  expect(f.take()).toEqual([]);
  expect(f.outbox.pending).toBe(0);
});

test('an acknowledgement from within send is taken', () => {
  const f = new Fixture();
  f.outbox.connected({
    send: (delivery) => {
      f.sent.push(delivery);
      f.outbox.acknowledged(delivery.resourceId, delivery.eventId);
      return true;
    },
  });
  f.set('shop', 'u1', 1);
  f.set('shop', 'u1', 2);
  f.remove('shop');
  expect(f.take()).toEqual(['create shop_u1_1', 'update shop_u1_2', 'delete shop_u1_2_delete']);
  expect(f.outbox.pending).toBe(0);
  expect(f.idle).toBeGreaterThan(0);
});

test('memory is bounded whatever the peer claims; what the source has is heard all the same', () => {
  const box = new Fixture();
  for (let index = 0; index < 60_000; index++) {
    box.outbox.peerHolds(key(`stray-${index}`), { uid: 'a' });
  }
  expect(box.outbox.pending).toBe(50_000);
  box.source.set('shop', { uid: 'a', version: '1', digest: 's1', object: 's1' });
  box.outbox.peerHolds(shop, { uid: 'a', digest: 's1' });
  expect(box.outbox.held(shop)).toEqual({ uid: 'a', digest: 's1' });

  const other = new Fixture();
  other.connect();
  other.set('shop', 'a', 1);
  for (let index = 0; index < 1_000; index++) {
    other.outbox.peerHolds(shop, { uid: `claimed-${index}` });
  }
  other.outbox.disconnected();
  other.sent.length = 0;
  other.remove('shop');
  other.connect();
  let answered = 0;
  for (const { resourceId, eventId } of other.sent) {
    answered += other.outbox.acknowledged(resourceId, eventId) ? 1 : 0;
  }
  expect(answered).toBe(100);
  expect(other.outbox.pending).toBe(0);
});

test('an incarnation that the peer was seen to have, though none was sent, is deleted before it is forgotten', () => {
  const f = new Fixture({ tuning: { maxInFlight: 1 } });
  f.connect();
  f.set('other', 'u0', 1);
  f.set('shop', 'u1', 2);
  expect(f.take()).toEqual(['create other_u0_1']);
  f.outbox.seen(shop, 'u1');
  f.remove('shop');
  f.ack('other_u0_1');
  expect(f.take()).toEqual(['delete shop_u1__delete']);
  f.ack('shop_u1__delete');
  expect([f.outbox.pending, f.outbox.knows(shop)]).toEqual([0, false]);
});

const pass = (f: Fixture, ms: number) => f.time.runUntil(f.time.now() + ms, 1_000);

test('says for how long the oldest change has waited, and how long each state was on its way', async () => {
  const f = new Fixture();
  f.set('shop', 'u1', 1);
  await pass(f, 2_000);
  f.set('other', 'u2', 1);
  await pass(f, 1_000);
  expect(f.outbox.oldestMs).toBe(3_000);
  const late = (afterMs: number, most = 10) => f.outbox.late(afterMs, most).map(({ key, ms }) => `${key.name} ${ms}`);
  expect([late(500), late(1_000), late(3_000), late(0, 1)]).toEqual([
    ['shop 3000', 'other 1000'],
    ['shop 3000'],
    [],
    ['shop 3000'],
  ]);
  f.connect();
  f.ack('shop_u1_1');
  expect([f.outbox.oldestMs, f.lags]).toEqual([1_000, [3_000]]);
  // In flight.
  expect(late(0)).toEqual(['other 1000']);
  // A change while an event is in flight counts from its own time.
  await pass(f, 500);
  f.set('other', 'u2', 2);
  await pass(f, 100);
  f.ack('other_u2_1');
  expect([f.outbox.oldestMs, f.lags]).toEqual([100, [3_000, 1_600]]);
  f.ack('other_u2_2');
  expect([f.outbox.oldestMs, f.lags]).toEqual([0, [3_000, 1_600, 100]]);
});

test('a lost link takes no age off a change, and what is equal has none', async () => {
  const f = new Fixture();
  f.connect();
  f.set('shop', 'u1', 1);
  await pass(f, 1_000);
  f.outbox.disconnected();
  await pass(f, 1_000);
  f.connect();
  expect(f.outbox.oldestMs).toBe(2_000);
  f.ack('shop_u1_1');
  await pass(f, 1_000);
  f.outbox.changed(shop);
  expect([f.outbox.oldestMs, f.lags]).toEqual([0, [2_000]]);
});

test('a resource that left and comes back as it was is told anew, and so is that it leaves again', () => {
  let count = 0;
  const f = new Fixture({ random: () => ++count / 2 ** 40 });
  f.connect();
  const told: string[] = [];
  const exchange = () => {
    const events = f.take();
    told.push(...events);
    for (const event of events) {
      f.ack(event.slice(event.indexOf(' ') + 1));
    }
  };
  for (let round = 0; round < 3; round++) {
    f.set('shop', 'u1', 1);
    exchange();
    f.remove('shop');
    exchange();
  }
  expect(told).toHaveLength(6);
  expect(new Set(told).size, 'the peer takes what has the same id for a repetition').toBe(6);
});

describe('in turns of the event loop', () => {
  /** Two of something in each turn; turns come when they are told to. */
  function start() {
    const later: (() => void)[] = [];
    const most = Number.POSITIVE_INFINITY;
    const limits = { bytes: most, milliseconds: most, millisecondsPerPeer: most, restFactor: 0 };
    const turns = new FairTurns<object>({ ...limits, messages: 2, messagesPerPeer: most }, (run) => later.push(run));
    const f = new Fixture({ turns });
    return { f, turn: () => later.shift()?.() };
  }

  test('the queue is looked at in order, some of it in each turn, and all of it is pending', () => {
    const { f, turn } = start();
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      f.set(name, `u${name}`, 1);
    }
    f.connect();
    expect(f.take()).toEqual(['create a_ua_1', 'create b_ub_1']);
    expect(f.outbox.pending).toBe(5);
    turn();
    expect(f.take()).toEqual(['create c_uc_1', 'create d_ud_1']);
    turn();
    expect(f.take()).toEqual(['create e_ue_1']);
    turn();
    expect(f.take()).toEqual([]);
  });

  test('what waits for its turn is sent as it is then, or not at all', () => {
    const { f, turn } = start();
    f.connect();
    for (const name of ['a', 'b', 'c', 'd']) {
      f.set(name, `u${name}`, 1);
    }
    f.set('c', 'uc', 2);
    f.remove('d');
    expect(f.take()).toEqual(['create a_ua_1', 'create b_ub_1']);
    turn();
    expect(f.take()).toEqual(['create c_uc_2']);
    expect(f.outbox.pending).toBe(3);
  });

  test('a lost link and a new one neither lose nor repeat what waits', () => {
    const { f, turn } = start();
    f.connect();
    for (const name of ['a', 'b', 'c']) {
      f.set(name, `u${name}`, 1);
    }
    f.outbox.disconnected();
    turn();
    expect(f.take()).toEqual(['create a_ua_1', 'create b_ub_1']);
    f.connect();
    turn();
    turn();
    expect(f.take().sort()).toEqual(['create a_ua_1', 'create b_ub_1', 'create c_uc_1']);
  });

  test('a closed outbox waits for no turn', () => {
    const { f, turn } = start();
    f.connect();
    for (const name of ['a', 'b', 'c']) {
      f.set(name, `u${name}`, 1);
    }
    f.take();
    f.outbox.close();
    turn();
    expect(f.take()).toEqual([]);
  });
});

test('what is not acknowledged is sent again, also if the clock rings a little early', async () => {
  const f = new Fixture();
  const after = f.time.after.bind(f.time);
  f.time.after = (ms, run) => after(ms > 1 ? ms - 1e-6 : ms, run);
  f.connect();
  f.set('a', 'u', 1);
  expect(f.take()).toEqual(['create a_u_1']);
  await f.time.runUntil(60_000, 1_000);
  expect(f.take()).toContain('create a_u_1');
});
