import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CloudEvent } from '../../../proto/gen/cloudevents/cloudevent.ts';
import { Event } from '../../../proto/gen/eventstreamapi/eventstream.ts';
import {
  acknowledgement,
  agentSource,
  dataOf,
  decodeEvent,
  encodeEvent,
  eventTypes,
  heartbeatEvent,
  messageEvent,
  objectEvent,
  principalSource,
  sentAt,
  targets,
  type WireEvent,
} from '../index.ts';

const text = (event: WireEvent) => Buffer.from(event.data).toString();
const fromHex = (hex: string) => decodeEvent(Event.decode(Buffer.from(hex, 'hex')).event);
const throughWire = (event: WireEvent) =>
  decodeEvent(Event.decode(Event.encode({ event: encodeEvent(event) }).finish()).event);

// Computed by hand from the protocol's rules; Go peers read them.
const golden = {
  acknowledgement:
    '0aaa0112156167656e743a2f2f6167656e742d6d616e616765641a03312e302228696f2e6172676f70726f6a2e6172676f63642d6167656e742e6576656e742e70726f6365737365642a1e0a0a64617461736368656d6112102a0e6576656e7450726f6365737365642a1f0a076576656e74696412141a126775657374626f6f6b5f7569642d315f34322a1f0a0a7265736f75726365696412111a0f6775657374626f6f6b5f7569642d313200',
  resourceList:
    '0ac00212156167656e743a2f2f6167656e742d6d616e616765641a03312e30223b696f2e6172676f70726f6a2e6172676f63642d6167656e742e6576656e742e726571756573742d73796e6365642d7265736f757263652d6c6973742a250a0f64617461636f6e74656e747479706512121a106170706c69636174696f6e2f6a736f6e2a1e0a0a64617461736368656d6112102a0e7265736f75726365526573796e632a310a076576656e74696412261a2431313131313131312d313131312d343131312d383131312d3131313131313131313131312a340a0a7265736f75726365696412261a2431313131313131312d313131312d343131312d383131312d3131313131313131313131312a220a0673656e74617412181a16323032362d30382d32315430343a30353a31362e355a32117b22636865636b73756d223a6e756c6c7d',
};

describe('golden messages', () => {
  test('defect 54: an acknowledgement by an agent', () => {
    const created = objectEvent(
      targets.application,
      eventTypes.create,
      { metadata: { name: 'guestbook', namespace: 'c1', uid: 'uid-1', resourceVersion: '42' } },
      { source: principalSource },
    );
    const ack = acknowledgement(created, agentSource);
    const bytes = Event.encode({ event: encodeEvent(ack) }).finish();
    expect(bytes).toHaveLength(173);
    // Attributes are a map: their order on the wire is arbitrary, so meanings are compared.
    expect(Event.decode(bytes)).toEqual(Event.decode(Buffer.from(golden.acknowledgement, 'hex')));
    expect(fromHex(golden.acknowledgement)).toEqual({ ...ack, data: Buffer.alloc(0) });
  });

  test('a list request', () => {
    const id = '11111111-1111-4111-8111-111111111111';
    const event = messageEvent(
      targets.resourceResync,
      eventTypes.requestSyncedResourceList,
      { checksum: null },
      { source: agentSource },
      { resourceId: id, eventId: id },
    );
    const stamped = {
      ...event,
      extensions: { ...event.extensions, sentat: sentAt(new Date('2026-08-21T04:05:16.500Z')) },
    };
    const bytes = Event.encode({ event: encodeEvent(stamped) }).finish();
    expect(bytes).toHaveLength(323);
    expect(Event.decode(bytes)).toEqual(Event.decode(Buffer.from(golden.resourceList, 'hex')));
    expect(fromHex(golden.resourceList)).toEqual(stamped);
  });
});

describe('made events', () => {
  test('about an object', () => {
    const object = { apiVersion: 'v1', metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '3' } };
    const event = throughWire(
      objectEvent(targets.application, eventTypes.specUpdate, object, { source: principalSource, principalUid: 'p' }),
    );
    expect(event).toMatchObject({
      type: 'io.argoproj.argocd-agent.event.spec-update',
      target: 'application',
      source: '',
      subject: 'n/a',
      contentType: 'application/json',
      resourceId: 'a_u',
      eventId: 'a_u_3',
      extensions: { resourceid: 'a_u', eventid: 'a_u_3', principaluid: 'p' },
    });
    expect(JSON.parse(text(event))).toEqual(object);
  });

  test('without data still carry the field', () => {
    const event = encodeEvent(heartbeatEvent({ source: agentSource }));
    expect(event.binaryData).toHaveLength(0);
    expect(Buffer.from(CloudEvent.encode(event).finish()).toString('hex')).toMatch(/3200$/);
    expect(event.attributes).not.toHaveProperty('datacontenttype');
    expect(event.attributes.eventid).toEqual(event.attributes.resourceid);
  });

  test('have ids even when the object has no uid', () => {
    const event = objectEvent(targets.application, eventTypes.delete, { metadata: { name: 'a' } }, { source: '' });
    expect([event.resourceId, event.eventId, event.subject]).toEqual(['a_', 'a__', '/a']);
  });

  test('sentat trims zeros like Go', () => {
    expect(sentAt(new Date('2026-01-01T00:00:00.120Z'))).toBe('2026-01-01T00:00:00.12Z');
    expect(sentAt(new Date('2026-01-01T00:00:00.000Z'))).toBe('2026-01-01T00:00:00Z');
    expect(sentAt(new Date('2026-01-01T00:00:10.001Z'))).toBe('2026-01-01T00:00:10.001Z');
  });
});

describe('hostile input', () => {
  const valid = encodeEvent(heartbeatEvent({ source: agentSource }));
  const rejected = (event: CloudEvent | undefined, code: string, message: RegExp) =>
    expect(() => decodeEvent(event)).toThrow(
      expect.objectContaining({ name: 'WireError', code, message: expect.stringMatching(message) }),
    );

  test.each<[string, () => CloudEvent | undefined, string, RegExp]>([
    ['no CloudEvent', () => undefined, 'invalid-event', /no CloudEvent/],
    [
      'attribute without a value',
      () => ({ ...valid, attributes: { ...valid.attributes, x: {} } }),
      'invalid-event',
      /"x".*no value/,
    ],
    ['no type', () => ({ ...valid, type: '' }), 'invalid-event', /no type/],
    [
      'no resourceid',
      () => ({ ...valid, attributes: { eventid: { ceString: 'x' } } }),
      'invalid-event',
      /no resourceid/,
    ],
    [
      'resourceid of another kind',
      () => ({ ...valid, attributes: { ...valid.attributes, resourceid: { ceBytes: Buffer.from('x') } } }),
      'invalid-event',
      /no resourceid/,
    ],
    [
      'huge attribute',
      () => ({ ...valid, attributes: { ...valid.attributes, a: { ceString: 'x'.repeat(9000) } } }),
      'too-large',
      /has 9000 characters/,
    ],
    ['huge type', () => ({ ...valid, type: 'x'.repeat(9000) }), 'too-large', /type/],
    [
      'many attributes',
      () => ({
        ...valid,
        attributes: Object.fromEntries(Array.from({ length: 70 }, (_, i) => [`a${i}`, { ceString: 'x' }])),
      }),
      'too-large',
      /70 attributes/,
    ],
    [
      'protobuf data',
      () => ({ ...valid, binaryData: undefined, protoData: { typeUrl: 't', value: Buffer.alloc(0) } }),
      'invalid-event',
      /protobuf/,
    ],
  ])('%s', (_, make, code, message) => {
    rejected(make(), code, message);
  });

  test('a dataschema that is not a URI is not a target, as for Go peers', () => {
    const event = decodeEvent({ ...valid, attributes: { ...valid.attributes, dataschema: { ceString: 'heartbeat' } } });
    expect(event.target).toBe('');
  });

  test('attributes named like parts of a prototype harm nothing', () => {
    const attributes = JSON.parse('{"__proto__": {"ceString": "x"}, "constructor": {"ceString": "y"}}');
    const event = decodeEvent({ ...valid, attributes: { ...valid.attributes, ...attributes } });
    expect(event.resourceId).toBe(valid.attributes.resourceid?.ceString);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });

  test('random bytes decode to an event or to an error, never to anything else', () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    let state = seed;
    const random = () => {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
      return state / 0x7fffffff;
    };
    const original = Event.encode({ event: valid }).finish();
    for (let round = 0; round < 2000; round++) {
      const bytes = Uint8Array.from(original);
      for (let flips = 0; flips < 3; flips++) {
        bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      }
      try {
        const event = decodeEvent(Event.decode(bytes).event);
        expect(event.resourceId, `seed ${seed}, round ${round}`).not.toBe('');
      } catch (error) {
        expect(error, `seed ${seed}, round ${round}`).toBeInstanceOf(Error);
      }
    }
  });
});

describe('payloads', () => {
  const schema = z.object({ name: z.string().optional(), count: z.number().optional() });
  const withData = (data: string): WireEvent => ({ ...heartbeatEvent({ source: '' }), data: Buffer.from(data) });

  test('are read against a schema', () => {
    expect(dataOf(withData('{"name":"a","other":1}'), schema)).toEqual({ name: 'a' });
    expect(dataOf(withData(''), schema)).toEqual({});
  });

  test('errors name the invalid field', () => {
    expect(() => dataOf(withData('{'), schema)).toThrow(/is not JSON/);
    expect(() => dataOf(withData('{"count":"x"}'), schema)).toThrow(/heartbeat event .* count: /);
  });
});
