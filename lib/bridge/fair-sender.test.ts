import { expect, test } from 'vitest';
import { FairSender, type FairSenderLimits } from './index.ts';

/** Turns that come when they are told to, and peers with much to send. */
function start(limits: FairSenderLimits) {
  let next: (() => void) | undefined;
  const sender = new FairSender(limits, (run) => {
    if (next !== undefined) {
      throw new Error('one turn is due at a time');
    }
    next = run;
  });
  const sent: string[] = [];
  const peer = (name: string, messages: number, bytes = 1) => {
    let left = messages;
    const resume = () => {
      for (; left > 0 && sender.tryAcquire(resume); left--) {
        sender.sent(resume, bytes);
        sent.push(name);
      }
    };
    resume();
  };
  const turn = () => {
    const run = next;
    next = undefined;
    run?.();
    return sent.splice(0).join('');
  };
  return { peer, turn, begun: () => sent.splice(0).join(''), isIdle: () => next === undefined };
}

test('in one turn so much is sent, and the rest in later ones', () => {
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

test('who begins in a turn of others waits for the next like them', () => {
  const { peer, turn, begun } = start({ messages: 2, bytes: 100, messagesPerPeer: 2 });
  peer('a', 4);
  peer('b', 1);
  expect([begun(), turn(), turn()]).toEqual(['aa', 'aa', 'b']);
});
