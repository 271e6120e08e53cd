import { gzipSync } from 'node:zlib';
import { eventBytes, frame } from '../../e2e/hostile/index.ts';
import { agentSource, eventTypes, objectEvent, targets } from '../../lib/wire/index.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';

/** What one attack sends: frames of one call, compressed or not. */
export interface Attack {
  readonly name: string;
  readonly method: 'Subscribe' | 'StreamLogs';
  readonly isCompressed: boolean;
  readonly frames: readonly Buffer[];
}

const mebibyte = 2 ** 20;
const origin = { source: agentSource };

/**
 * The attacks of one agent with a valid certificate, by what they are to exhaust. They are made once.
 * @param agent the attacker's name
 */
export function attacksOf(agent: string): Attack[] {
  return [
    compressed('projects of many empty destinations', 'Subscribe', repeated(150, manyDestinations())),
    compressed('a Redis answer of 150 MiB', 'Subscribe', [redisAnswer(150 * mebibyte)]),
    compressed('an event of 16 MiB of attributes', 'Subscribe', [manyAttributes(16 * mebibyte)]),
    compressed('a log message of 64 MiB of unknown fields', 'StreamLogs', [Buffer.alloc(64 * mebibyte, 'x\x01')]),
    plain(
      'reports on Applications that nobody knows',
      reports(2_000, (index) => `unknown-${index}`, 'x'),
    ),
    plain(
      'reports of 400 KiB on its own Applications',
      reports(20, (index) => `app-000${index % 5}`, big()),
    ),
  ];

  function reports(count: number, nameOf: (index: number) => string, text: string): Buffer[] {
    return Array.from({ length: count }, (_, index) => {
      const metadata = { name: nameOf(index), namespace: agent, uid: `u${index}`, resourceVersion: String(index) };
      const object = { metadata, spec: {}, status: { health: { status: 'Progressing', message: `${index}${text}` } } };
      return Buffer.from(eventBytes(objectEvent(targets.application, eventTypes.statusUpdate, object, origin)));
    });
  }
}

function plain(name: string, messages: readonly Buffer[]): Attack {
  return { name, method: 'Subscribe', isCompressed: false, frames: messages.map((one) => frame(one)) };
}

function compressed(name: string, method: Attack['method'], messages: readonly Buffer[]): Attack {
  const packed = new Map(messages.map((one) => [one, frame(gzipSync(one), 1)]));
  return { name, method, isCompressed: true, frames: messages.map((one) => packed.get(one) as Buffer) };
}

function repeated(count: number, message: Buffer): Buffer[] {
  return Array.from({ length: count }, () => message);
}

function big(): string {
  return 'x'.repeat(400 * 1024);
}

function manyDestinations(): Buffer {
  const json = `{"metadata":{"name":"p"},"spec":{"destinations":[${'{},'.repeat(170_000)}{}]}}`;
  return event('spec-update', 'appproject', Buffer.from(json));
}

function redisAnswer(size: number): Buffer {
  const json = Buffer.alloc(size, '[],');
  json.write('{"z":[', 0);
  json.write('0]}', size - 3);
  return event('redis-response', 'redis', json);
}

function event(type: string, target: string, binaryData: Buffer): Buffer {
  return Buffer.from(
    Event.encode({
      event: {
        id: '',
        source: agentSource,
        specVersion: '1.0',
        type: `io.argoproj.argocd-agent.event.${type}`,
        attributes: { dataschema: { ceUri: target }, resourceid: { ceString: 'a' }, eventid: { ceString: 'b' } },
        binaryData,
      },
    }).finish(),
  );
}

/** An Event whose map of attributes has as many entries as fit, in protobuf's own bytes. */
function manyAttributes(size: number): Buffer {
  const entries: Buffer[] = [];
  for (let length = 0, index = 0; length < size; index++) {
    const key = Buffer.from(index.toString(36));
    const entry = Buffer.concat([Buffer.from([0x0a, key.length]), key, Buffer.from([0x12, 2, 0x1a, 0])]);
    const field = Buffer.concat([Buffer.from([0x2a, entry.length]), entry]);
    entries.push(field);
    length += field.length;
  }
  const inner = Buffer.concat(entries);
  return Buffer.concat([Buffer.from([0x0a]), varint(inner.length), inner]);
}

function varint(value: number): Buffer {
  const bytes = [];
  let left = value;
  for (; left > 127; left >>>= 7) {
    bytes.push((left & 127) | 128);
  }
  return Buffer.from([...bytes, left]);
}
