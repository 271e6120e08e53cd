import { expect, test } from 'vitest';
import type { ServerCall } from './server-call.ts';
import { WaitingCalls } from './waiting-calls.ts';

const limits = { ofClient: 10, ofStrangers: 20 };

/** Calls of clients, and what became of them. */
function played() {
  const waiting = new WaitingCalls(limits);
  const expelled: string[] = [];
  const reasons = new Set<string>();
  const add = (client: string, name = client) => {
    const endings: (() => void)[] = [];
    const call = { onOver: (listener: () => void) => endings.push(listener) } as unknown as ServerCall;
    const over = () => {
      for (const ending of endings) {
        ending();
      }
    };
    const begin = waiting.add(client, call, (reason) => {
      reasons.add(reason);
      if (endings.length > 0) {
        expelled.push(name);
        over();
      }
    });
    return { begin, over };
  };
  const fill = (client: string, count: number) => {
    const calls = Array.from({ length: count }, (_, index) => add(client, `${client} ${index}`));
    return calls.filter(({ begin }) => begin !== undefined);
  };
  return { add, fill, expelled, reasons };
}

test.each(['agent', 'stranger 10.0.0.1'])('a client has so many: %s', (client) => {
  const { fill, add } = played();
  const calls = fill(client, 15);
  expect(calls).toHaveLength(limits.ofClient);
  calls[0]?.begin?.();
  calls[0]?.over();
  expect(fill(client, 2)).toHaveLength(1);
  calls[1]?.over();
  expect(fill(client, 2)).toHaveLength(1);
  expect(add('agent of another name').begin).toBeDefined();
});

test('strangers have so many together, agents beside them', () => {
  const { fill, expelled, reasons } = played();
  const networks = Array.from({ length: 5 }, (_, index) => `stranger 10.0.0.${index}`);
  expect(networks.map((network) => fill(network, 4).length)).toEqual([4, 4, 4, 4, 4]);
  expect(fill('stranger 10.0.0.0', 5)).toHaveLength(0);
  expect([...reasons]).toEqual(['too many of strangers wait already']);
  expect(fill('agent', 15)).toHaveLength(limits.ofClient);
  expect(expelled).toEqual([]);
});

test('a network with few calls gets in: the oldest of the one with most makes room', () => {
  const { fill, expelled } = played();
  fill('stranger 10.0.0.1', 10);
  fill('stranger 10.0.0.2', 10);
  expect(fill('stranger 10.0.0.3', 10)).toHaveLength(6);
  expect(expelled).toHaveLength(6);
  expect(expelled.slice(0, 2)).toEqual(['stranger 10.0.0.1 0', 'stranger 10.0.0.2 0']);
  expect(fill('stranger 10.0.0.1', 1)).toHaveLength(0);
});

test('a call that leaves without its turn makes room for another', () => {
  const { fill } = played();
  for (let round = 0; round < 3; round++) {
    const calls = [...fill('stranger 10.0.0.1', 10), ...fill('stranger 10.0.0.2', 10)];
    expect(calls).toHaveLength(limits.ofStrangers);
    for (const call of calls) {
      call.over();
      call.begin?.();
    }
  }
});
