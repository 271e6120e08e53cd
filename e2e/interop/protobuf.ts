/**
 * Protobuf, read and written by tables of field numbers: a second opinion that shares nothing with the codec of the
 * programs. Covers what argocd-agent's messages use.
 */

/** What a field holds. `present` marks members of a oneof: they are written even when they are empty. */
export interface Field {
  readonly number: number;
  readonly type: 'string' | 'bytes' | 'bool' | 'int32' | 'uint32' | Schema;
  readonly map?: true;
  readonly present?: true;
}

/** The fields of a message by name. */
export interface Schema {
  readonly [name: string]: Field;
}

/** A message in plain form: fields that are not there are undefined, maps are Maps. */
export type Fields = Record<string, unknown>;

/** @throws Error for anything that is not exactly a message of this schema */
export function readMessage(schema: Schema, bytes: Buffer): Fields {
  const message: Fields = {};
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 63n) {
        throw new Error('a number is cut off');
      }
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const [name, field] = Object.entries(schema).find(([, { number }]) => number === tag >> 3) ?? [];
    if (name === undefined || field === undefined) {
      throw new Error(`there is no field ${tag >> 3}`);
    }
    const isNumber = field.type === 'bool' || field.type === 'int32' || field.type === 'uint32';
    if ((tag & 7) !== (isNumber && !field.map ? 0 : 2)) {
      throw new Error(`field ${name} has wire type ${tag & 7}`);
    }
    if (isNumber && !field.map) {
      const number = varint();
      message[name] = field.type === 'bool' ? number !== 0n : Number(BigInt.asIntN(64, number));
      continue;
    }
    const length = Number(varint());
    if (at + length > bytes.length) {
      throw new Error(`field ${name} is cut off`);
    }
    const content = bytes.subarray(at, at + length);
    at += length;
    if (field.map) {
      const entry = readMessage(entryOf(field), content);
      const map = (message[name] as Map<string, unknown>) ?? new Map();
      if (map.has(String(entry.key ?? ''))) {
        throw new Error(`${name} has ${entry.key} twice`);
      }
      map.set(String(entry.key ?? ''), entry.value);
      message[name] = map;
    } else {
      message[name] = contentOf(field.type, content);
    }
  }
  return message;
}

/** The bytes of a message, fields in the order of their numbers. */
export function writeMessage(schema: Schema, message: Fields): Buffer {
  const parts: Buffer[] = [];
  for (const [name, field] of Object.entries(schema).sort(([, a], [, b]) => a.number - b.number)) {
    const value = message[name];
    if (value === undefined) {
      continue;
    }
    const type = field.map ? entryOf(field) : field.type;
    for (const each of field.map ? entriesOf(value) : [value]) {
      if (field.present || field.map || !isEmpty(each)) {
        parts.push(writeField(field.number, type, each));
      }
    }
  }
  return Buffer.concat(parts);
}

function entryOf({ type }: Field): Schema {
  return { key: { number: 1, type: 'string' }, value: { number: 2, type, present: true } };
}

function entriesOf(map: unknown): Fields[] {
  return [...(map as Map<string, unknown>)].map(([key, value]) => ({ key, value }));
}

function isEmpty(value: unknown): boolean {
  return value === '' || value === 0 || value === false || (Buffer.isBuffer(value) && value.length === 0);
}

function contentOf(type: Field['type'], content: Buffer): unknown {
  if (type === 'string') {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  }
  return typeof type === 'object' ? readMessage(type, content) : Buffer.from(content);
}

function writeField(number: number, type: Field['type'], value: unknown): Buffer {
  if (typeof value === 'number' || typeof value === 'boolean') {
    return Buffer.concat([writeVarint(number << 3), writeVarint(BigInt.asUintN(64, BigInt(value)))]);
  }
  const content =
    typeof type === 'object'
      ? writeMessage(type, value as Fields)
      : Buffer.from(value as string | Uint8Array<ArrayBuffer>);
  return Buffer.concat([writeVarint((number << 3) | 2), writeVarint(content.length), content]);
}

function writeVarint(value: number | bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt(value);
  for (; rest >= 0x80n; rest >>= 7n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
  return Buffer.from([...bytes, Number(rest)]);
}
