import { expect, test } from 'vitest';
import { eventTypes, messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import { AgentRequests } from './agent-requests.ts';

const request = (uuid: string) =>
  messageEvent(targets.resource, 'GET', { uuid }, { source: '' }, { resourceId: uuid, eventId: uuid });
const answer = (uuid: string) =>
  messageEvent(targets.resource, eventTypes.response, { uuid, status: 200 }, { source: '' }, { eventId: uuid });

function start(connected: string[] = ['a', 'b']) {
  const sent: [agent: string, id: string][] = [];
  const exchange = new AgentRequests((agent, event) => {
    sent.push([agent, event.eventId]);
    return connected.includes(agent);
  });
  const stop = new AbortController();
  const ask = (agent: string, uuid: string, timeoutMs = 60_000): Promise<WireEvent> =>
    exchange.ask(agent, request(uuid), { timeoutMs, signal: stop.signal });
  return { exchange, sent, ask, stop };
}

test('an answer reaches its request', async () => {
  const { exchange, sent, ask } = start();
  const [first, second] = [ask('a', '1'), ask('a', '2')];
  expect(sent).toEqual([
    ['a', '1'],
    ['a', '2'],
  ]);
  expect(exchange.answered('a', answer('2'))).toBe(true);
  expect((await second).eventId).toBe('2');
  expect(exchange.underWay('a')).toBe(1);
  exchange.answered('a', answer('1'));
  await first;
  expect(exchange.underWay('a')).toBe(0);
});

test('only the agent that was asked answers', async () => {
  const { exchange, ask } = start();
  const asked = ask('a', '1');
  expect(exchange.answered('b', answer('1'))).toBe(false);
  expect(exchange.answered('a', answer('other'))).toBe(false);
  expect(exchange.answered('a', answer('1'))).toBe(true);
  await asked;
});

test('an absent, disconnecting or silent agent is reported', async () => {
  const { exchange, ask, stop } = start(['a']);
  await expect(ask('b', '1')).rejects.toMatchObject({ reason: 'disconnected' });
  const asked = ask('a', '2');
  exchange.disconnected('a');
  await expect(asked).rejects.toMatchObject({ reason: 'disconnected' });
  await expect(ask('a', '3', 1)).rejects.toMatchObject({ reason: 'timeout' });
  const left = ask('a', '4');
  stop.abort(new Error('the client left'));
  await expect(left).rejects.toThrow('the client left');
  expect(exchange.answered('a', answer('4'))).toBe(false);
  expect(exchange.underWay('a')).toBe(0);
});

test('one agent has a bounded number of requests', async () => {
  const { exchange, ask } = start();
  const asked = Array.from({ length: 1_000 }, (_, index) => ask('a', `${index}`));
  await expect(ask('a', 'one more')).rejects.toMatchObject({ reason: 'busy' });
  const other = ask('b', 'other');
  exchange.answered('b', answer('other'));
  await other;
  exchange.disconnected('a');
  expect((await Promise.allSettled(asked)).every(({ status }) => status === 'rejected')).toBe(true);
});
