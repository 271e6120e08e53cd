import { expect, test } from 'vitest';
import { z } from 'zod';
import { dataOf, eventTypes, messageEvent, targets, type WireEvent } from '../wire/index.ts';
import { refusalOf, UnservedEvents } from './index.ts';

const from = { source: '' };
const ids = { resourceId: 'r', eventId: 'r' };
const get = (uuid: string) =>
  messageEvent(targets.resource, 'GET', { uuid, name: 'x', group: '', version: 'v1', resource: 'pods' }, from, {
    resourceId: uuid,
    eventId: uuid,
  });
const redis = (body: object) =>
  messageEvent(targets.redis, eventTypes.redisRequest, { uuid: 'u', connectionUuid: 'c', body }, from, ids);
const payloadOf = (event: WireEvent | undefined) => event && dataOf(event, z.unknown());

test('what is not served is said once per kind where operators see it, and a peer cannot fill the log', () => {
  const said: string[] = [];
  const unserved = new UnservedEvents({ warn: (_, message) => said.push(message ?? ''), debug: () => undefined });
  unserved.report(get('a'));
  unserved.report({ ...get('b'), type: 'POST' });
  unserved.report(redis({ ping: {} }));
  expect(said).toEqual([
    'live resources are not served by this version; the request is refused',
    "Argo CD's cache is not served by this version; the request is refused",
  ]);
  for (let i = 0; i < 1_000; i++) {
    unserved.report({ ...get('a'), target: `made-up-${i}` });
  }
  expect(said.length).toBeLessThan(40);
});

test('whoever waits for a live resource hears at once that there is none', () => {
  const answer = refusalOf(get('the-request'), 'us');
  expect(answer).toMatchObject({ type: eventTypes.response, target: 'resource', eventId: 'the-request', source: 'us' });
  expect(answer?.resourceId).not.toBe('the-request');
  expect(payloadOf(answer)).toMatchObject({
    uuid: 'the-request',
    status: 501,
    resource: expect.stringContaining('501'),
  });
});

test('requests to the cache are refused in their own form', () => {
  const bodyOf = (body: object) => payloadOf(refusalOf(redis(body), 'us'));
  const error = 'the cache is not served by this version of the agent';
  const common = { uuid: 'u', connectionUuid: 'c' };
  expect(bodyOf({ get: { key: 'k' } })).toEqual({ ...common, body: { get: { bytes: null, cacheHit: false, error } } });
  expect(bodyOf({ subscribe: { channel: 'k' } })).toEqual({ ...common, body: { subscribeResponse: { error } } });
  expect(bodyOf({ ping: {} })).toEqual({ ...common, body: { pong: {} } });
});

test('what cannot be read, and what is not answered on the stream, has no answer', () => {
  expect(refusalOf({ ...get('a'), data: Buffer.from('nonsense') }, 'us')).toBeUndefined();
  expect(
    refusalOf(messageEvent(targets.terminal, eventTypes.terminalRequest, { uuid: 'u' }, from), 'us'),
  ).toBeUndefined();
});
