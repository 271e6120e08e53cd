import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { eventTypes, targets } from './event.ts';
import { limitOf, type PayloadLimit } from './limits.ts';
import { dataOf, parseLimited } from './payload.ts';

const parse = (json: string, limit: Partial<PayloadLimit> = {}) =>
  parseLimited(Buffer.from(json), { bytes: 10_000_000, values: 1_000, ...limit }, 'It');

describe('JSON from a peer', () => {
  test.each([
    ['{}', {}],
    ['', {}],
    ['"text"', 'text'],
    ['{"a":[1,{"b":"\\"]}"}],"ü":"\\\\"}', { a: [1, { b: '"]}' }], ü: '\\' }],
    [JSON.stringify({ long: `${'x'.repeat(1_000)}"\\${'y'.repeat(1_000)}\\"` }), expect.anything()],
  ])('%s is parsed', (json, value) => {
    expect(parse(json)).toEqual(value);
  });

  test('its values are counted before it is parsed', () => {
    expect(parse('[1,{"a":[]}]', { values: 5 })).toEqual([1, { a: [] }]);
    // What follows is no JSON, and is not looked at.
    expect(() => parse(`[${'[],'.repeat(1_000)}and so on`)).toThrow(/^It has more than 1000 values$/);
    expect(() => parse(`{"a":[${'{},'.repeat(1_000)}{}]}`)).toThrow(/more than 1000 values/);
    expect(() => parse(`[${'1,'.repeat(1_000)}1]`)).toThrow(/more than 1000 values/);
  });

  test('what stands in a text is no value, wherever its escapes are', () => {
    for (let length = 0; length < 200; length++) {
      const text = `${'x'.repeat(length)}"\\${',[{"'.repeat(2_000)}${'\\'.repeat(length)}`;
      expect(parse(JSON.stringify([text, 1]))).toEqual([text, 1]);
    }
  });

  test('its names, escapes and spaces are counted as well', () => {
    const lax = { values: 100_000 };
    const object = (names: number) =>
      JSON.stringify(Array.from({ length: names }, (_, index) => ({ [`n${index}`]: 1 })));
    expect(parse(object(8_000), lax)).toHaveLength(8_000);
    expect(() => parse(object(9_000), lax)).toThrow(/^It has more than 8192 different names$/);
    expect(parse(`[${'{"a":{"b":1}},'.repeat(20_000)}1]`, lax)).toHaveLength(20_001);
    expect(() => parse(`"${'\\n'.repeat(600_000)}"`)).toThrow(/more than 524288 escapes/);
    expect(() => parse(`[${' '.repeat(20_000)}]`)).toThrow(/more than 16000 bytes beside its texts/);
  });

  test('its length and depth are limited', () => {
    expect(() => parse('"text"', { bytes: 5 })).toThrow(/^It has 6 bytes; 5 are accepted$/);
    expect(() => parse('['.repeat(1_001), { values: 10_000 })).toThrow(/nested more than 1000 deep/);
    expect(() => parse('{"a":1')).toThrow(/^It is not JSON$/);
    expect(() => parse('"text')).toThrow(/is not JSON/);
  });

  test('a text with many escapes and without end is looked at once', () => {
    expect(() => parse(`["${`${'x'.repeat(65)}\\"`.repeat(100_000)}`)).toThrow(/is not JSON/);
  });
});

describe('events', () => {
  const event = (target: string, type: string, data: string) => ({
    target,
    type,
    source: '',
    resourceId: 'r',
    eventId: 'e',
    extensions: {},
    data: Buffer.from(data),
  });
  const read = (...[target, type, data]: Parameters<typeof event>) => dataOf(event(target, type, data), z.unknown());

  test('an Application as large as etcd stores it is read', () => {
    const resource = { group: 'apps', kind: 'Deployment', name: 'a', namespace: 'a', status: 'Synced', version: 'v1' };
    const resources = Array.from({ length: 7_500 }, (_, index) => ({
      ...resource,
      name: `guestbook-${index}`,
      namespace: 'guestbook',
      health: { status: 'Healthy' },
    }));
    const object = { metadata: { name: 'guestbook' }, spec: {}, status: { resources } };
    const json = JSON.stringify(object);
    expect(json.length).toBeGreaterThan(1_000_000);
    expect(read(targets.application, eventTypes.statusUpdate, json)).toEqual(object);
  });

  test('the cached state of an Application is read at any size', () => {
    const answer = { uuid: 'u', connectionUuid: 'c', body: { get: { bytes: 'x'.repeat(12_000_000), cacheHit: true } } };
    expect(read(targets.redis, eventTypes.redisResponse, JSON.stringify(answer))).toEqual(answer);
  });

  test.each([
    ['an answer of the cache', targets.redis, eventTypes.redisResponse, `{"z":[${'[],'.repeat(5_000)}[]]}`],
    ['a request to the cache', targets.redis, eventTypes.redisRequest, `{"z":"${'x'.repeat(20_000)}"}`],
    ['a project', targets.appProject, eventTypes.create, `{"spec":{"destinations":[${'{},'.repeat(20_000)}{}]}}`],
    ['an Application', targets.application, eventTypes.create, `{"spec":{"a":[${'[],'.repeat(200_000)}[]]}}`],
    ['an error', targets.application, eventTypes.error, `{"message":"${'x'.repeat(20_000)}"}`],
    [
      'the statistics of a cluster',
      targets.clusterCacheInfoUpdate,
      eventTypes.clusterCacheInfoUpdate,
      '[1,'.repeat(99),
    ],
    ['a report about a copy', targets.resourceResync, eventTypes.requestUpdate, `{"a":"${'x'.repeat(20_000)}"}`],
    ['of an unknown kind', 'whatever', 'whatever', `{"a":"${'x'.repeat(20_000)}"}`],
  ])('%s with more than it can have is refused', (_, target, type, data) => {
    expect(() => read(target, type, data)).toThrow(expect.objectContaining({ name: 'WireError', code: 'too-large' }));
  });

  test('no target has a limit above what a few milliseconds can read', () => {
    for (const target of Object.values(targets)) {
      expect(limitOf({ target, type: '' }).values).toBeLessThanOrEqual(131_072);
    }
  });
});
