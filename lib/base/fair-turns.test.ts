import { afterEach, expect, test, vi } from 'vitest';
import { FairTurns, type TurnLimits } from './index.ts';

/** Turns that come when they are told to, and peers with much to send. */
const endless = {
  milliseconds: Number.POSITIVE_INFINITY,
  millisecondsPerPeer: Number.POSITIVE_INFINITY,
  restFactor: 0,
};

afterEach(() => {
  vi.useRealTimers();
});

function start(limits: Partial<TurnLimits> & Pick<TurnLimits, 'messages' | 'bytes' | 'messagesPerPeer'>) {
  let next: (() => void) | undefined;
  const turns = new FairTurns<string>({ ...endless, ...limits }, (run) => {
    if (next !== undefined) {
      throw new Error('one turn is due at a time');
    }
    next = run;
  });
  const sent: string[] = [];
  const peer = (name: string, messages: number, bytes = 1, milliseconds = 0) => {
    let left = messages;
    const resume = () => {
      for (; left > 0 && turns.tryAcquire(name, resume); left--) {
        turns.used(name, bytes, milliseconds);
        sent.push(name);
      }
    };
    resume();
    return { withdraw: () => turns.withdraw(resume) };
  };
  const turn = () => {
    const run = next;
    next = undefined;
    run?.();
    return sent.splice(0).join('');
  };
  return { peer, turn, begun: () => sent.splice(0).join(''), isIdle: () => next === undefined };
}

test('one turn does a limited amount, later ones the rest', () => {
  const { peer, turn, begun, isIdle } = start({ messages: 4, bytes: 100, messagesPerPeer: 3 });
  peer('a', 8);
  expect(begun()).toBe('aaa');
  expect([turn(), turn(), turn()]).toEqual(['aaa', 'aa', '']);
  expect(isIdle()).toBe(true);
});

test('the peers take turns', () => {
  const { peer, turn, begun } = start({ messages: 4, bytes: 100, messagesPerPeer: 2 });
  for (const name of ['a', 'b', 'c']) {
    peer(name, 5);
  }
  expect(begun()).toBe('aabb');
  expect([turn(), turn(), turn(), turn()]).toEqual(['aabb', 'ccab', 'cc', 'c']);
});

test('large messages count by their bytes', () => {
  const { peer, turn, begun } = start({ messages: 100, bytes: 10, messagesPerPeer: 100 });
  peer('a', 5, 6);
  expect([begun(), turn(), turn()]).toEqual(['aa', 'aa', 'a']);
});

test('a peer that begins in a turn of others waits for the next like them', () => {
  const { peer, turn, begun } = start({ messages: 2, bytes: 100, messagesPerPeer: 2 });
  peer('a', 4);
  peer('b', 1);
  expect([begun(), turn(), turn()]).toEqual(['aa', 'aa', 'b']);
});

test('messages that take long count by their time', () => {
  const { peer, turn, begun } = start({ messages: 100, bytes: 100, messagesPerPeer: 100, millisecondsPerPeer: 5 });
  peer('a', 5, 1, 3);
  peer('b', 1);
  expect([begun(), turn(), turn()]).toEqual(['aab', 'aa', 'a']);
});

test('what is waited for elsewhere in the turn counts for all', () => {
  const { peer, turn, begun } = start({ messages: 100, bytes: 100, messagesPerPeer: 100, milliseconds: 5 });
  peer('a', 1, 1, 10);
  peer('b', 1);
  expect([begun(), turn(), turn()]).toEqual(['a', 'b', '']);
});

test('a peer that does several things at once has one share', () => {
  const { peer, turn, begun } = start({ messages: 6, bytes: 100, messagesPerPeer: 2 });
  for (let call = 0; call < 10; call++) {
    peer('a', 5);
  }
  peer('b', 2);
  expect([begun(), turn()]).toEqual(['aabb', 'aa']);
});

test('what is withdrawn is not resumed', () => {
  const { peer, turn, begun } = start({ messages: 1, bytes: 100, messagesPerPeer: 1 });
  peer('a', 1);
  peer('b', 1).withdraw();
  expect([begun(), turn()]).toEqual(['a', '']);
});

test('a peer whose message took long rests with all that it does, and costs the others one turn', () => {
  vi.useFakeTimers();
  const limits = {
    messages: 100,
    bytes: 100,
    messagesPerPeer: 100,
    milliseconds: 20,
    millisecondsPerPeer: 5,
    restFactor: 3,
  };
  const { peer, turn, begun, isIdle } = start(limits);
  for (let call = 0; call < 10; call++) {
    peer('a', 1, 1, 40);
  }
  expect(begun()).toBe('a');
  peer('b', 3, 1, 1);
  expect(turn()).toBe('bbb');
  expect(turn()).toBe('');
  // 35 ms too long, three times that to rest; nothing runs meanwhile.
  vi.advanceTimersByTime(104);
  expect(isIdle()).toBe(true);
  vi.advanceTimersByTime(1);
  expect(turn()).toBe('a');
});

test('a rest is not longer than a second, and what is withdrawn meanwhile is not resumed', () => {
  vi.useFakeTimers();
  const limits = { messages: 100, bytes: 100, messagesPerPeer: 100, millisecondsPerPeer: 5, restFactor: 3 };
  const { peer, turn, begun, isIdle } = start(limits);
  peer('a', 2, 1, 60_000);
  peer('a', 1).withdraw();
  expect([begun(), turn()]).toEqual(['a', '']);
  vi.advanceTimersByTime(999);
  expect(isIdle()).toBe(true);
  vi.advanceTimersByTime(1);
  expect([turn(), turn()]).toEqual(['a', '']);
});

test('a peer with many small messages has its share of the time, and the others are not concerned', () => {
  vi.useFakeTimers();
  const share = { perSecond: 250, burst: 100, perMessage: 1 };
  const { peer, turn, begun, isIdle } = start({ messages: 1_000, bytes: 1_000, messagesPerPeer: 1_000, share });
  peer('a', 500);
  expect(begun().length).toBeGreaterThan(99);
  expect(turn()).toBe('');
  peer('b', 5);
  expect(begun()).toBe('bbbbb');
  turn();
  const counts = Array.from({ length: 10 }, () => {
    vi.advanceTimersByTime(100);
    return isIdle() ? 0 : turn().length + turn().length;
  });
  const sum = counts.reduce((a, b) => a + b, 0);
  expect(sum).toBeGreaterThan(200);
  expect(sum).toBeLessThan(300);
});
