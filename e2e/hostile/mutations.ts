import { CloudEvent } from '../../proto/gen/cloudevents/cloudevent.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import type { Random } from '../random/index.ts';

/**
 * Spoils a valid message: bits, cut and spliced bytes, attributes that change places, other names and types in the payload.
 * @param messages what is spoilt and what it is crossed with, protobuf `Event`s
 * @param words texts that mean something to the receiver: names, kinds, types
 */
export function mutated(messages: readonly Uint8Array[], words: readonly string[], random: Random): Uint8Array {
  const original = Buffer.from(random.pick(messages));
  switch (random.integer(0, 5)) {
    case 0:
      return flipped(original, random);
    case 1:
      return original.subarray(0, random.integer(0, original.length));
    case 2: {
      const other = Buffer.from(random.pick(messages));
      const cut = random.integer(0, original.length);
      return Buffer.concat([original.subarray(0, cut), other.subarray(random.integer(0, other.length))]);
    }
    case 3:
      return withEvent(original, (event) => spoilAttributes(event, words, random));
    default:
      return withEvent(original, (event) => {
        for (let count = random.integer(1, 3); count > 0; count--) {
          spoilPayload(event, words, random);
        }
      });
  }
}

function flipped(bytes: Buffer, random: Random): Buffer {
  for (let count = random.integer(1, 8); count > 0 && bytes.length > 0; count--) {
    const at = random.integer(0, bytes.length - 1);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.integer(0, 7));
  }
  return bytes;
}

function withEvent(bytes: Buffer, spoil: (event: CloudEvent) => void): Uint8Array {
  const message = Event.decode(bytes);
  const event = message.event ?? CloudEvent.fromPartial({});
  spoil(event);
  return Event.encode({ event }).finish();
}

function spoilAttributes(event: CloudEvent, words: readonly string[], random: Random): void {
  const names = Object.keys(event.attributes);
  const name = random.pick([
    ...names,
    'resourceid',
    'eventid',
    'dataschema',
    '__proto__',
    'constructor',
    'x'.repeat(40),
  ]);
  switch (random.integer(0, 6)) {
    case 0:
      delete event.attributes[name];
      break;
    case 1:
      event.attributes[name] = { ceString: random.pick(words) };
      break;
    case 2:
      event.attributes[name] = { ceUri: random.pick(words) };
      break;
    case 3:
      event.attributes[name] = random.pick([{}, { ceInteger: -1 }, { ceBoolean: true }, { ceBytes: Buffer.alloc(9) }]);
      break;
    case 4:
      event.type = random.pick(words);
      break;
    case 5:
      event.source = random.pick(words);
      break;
    default: {
      const [first, second] = random.shuffle(names);
      if (first === undefined || second === undefined) {
        return;
      }
      const kept = event.attributes[first];
      if (kept === undefined) {
        return;
      }
      event.attributes[first] = event.attributes[second] ?? {};
      event.attributes[second] = kept;
    }
  }
}

function spoilPayload(event: CloudEvent, words: readonly string[], random: Random): void {
  let payload: unknown;
  try {
    payload = JSON.parse(Buffer.from(event.binaryData ?? Buffer.alloc(0)).toString());
  } catch {
    payload = {};
  }
  payload = spoilt(payload, words, random);
  event.binaryData = Buffer.from(unrolled(payload));
}

/**
 * Spoils a JSON value in one place: it goes, takes another place's value or an odd one, or gets a member more. The value is
 * changed, and may contain itself afterwards.
 */
export function spoilt(value: unknown, words: readonly string[], random: Random): unknown {
  const places = placesIn(value);
  if (places.length === 0) {
    return oddValue(words, random);
  }
  spoilPlace(random.pick(places), places, words, random);
  return value;
}

function spoilPlace({ parent, key }: Place, places: readonly Place[], words: readonly string[], random: Random): void {
  switch (random.integer(0, 4)) {
    case 0:
      delete parent[key];
      break;
    case 1:
      parent[key] = random.pick(places).value;
      break;
    case 2:
      parent[random.pick(words)] = oddValue(words, random);
      break;
    default:
      parent[key] = oddValue(words, random);
  }
}

interface Place {
  readonly parent: Record<string, unknown>;
  readonly key: string;
  readonly value: unknown;
}

function placesIn(value: unknown, depth = 0): Place[] {
  if (typeof value !== 'object' || value === null || depth > 20) {
    return [];
  }
  const parent = value as Record<string, unknown>;
  return Object.keys(parent).flatMap((key) => [
    { parent, key, value: parent[key] },
    ...placesIn(parent[key], depth + 1),
  ]);
}

function oddValue(words: readonly string[], random: Random): unknown {
  return random.pick<() => unknown>([
    () => random.pick(words),
    () => random.pick(words),
    () => null,
    () => [],
    () => ({}),
    () => [random.pick(words)],
    () => ({ [random.pick(words)]: random.pick(words) }),
    () => true,
    () => -0,
    () => 1e308,
    () => 2 ** 53,
    () => '',
    () => 'x'.repeat(random.integer(1, 5_000)),
    () => '\u0000\ud800\u202e\n',
  ])();
}

/** JSON of what may, by now, contain itself. */
function unrolled(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '{"circular":';
  }
}
