import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** A span as a collector reads it; only what tests look at. */
export interface CollectedSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  /** Numbers and truth values as text. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly error: string | undefined;
}

/** The bytes are no request that OpenTelemetry's `trace/v1/trace.proto` and its rules allow. */
export class OtlpError extends Error {
  override readonly name = 'OtlpError';
}

type Value = Uint8Array | number | bigint;
type Fields = ReadonlyMap<number, readonly Value[]>;

/** The fields of a message that we send, with their type on the wire. Every other field is an error. */
const shapes = {
  request: { 1: 'message*' },
  resourceSpans: { 1: 'message', 2: 'message*' },
  resource: { 1: 'message*' },
  scopeSpans: { 1: 'message', 2: 'message*' },
  scope: { 1: 'text' },
  span: {
    1: 'bytes',
    2: 'bytes',
    3: 'text',
    4: 'bytes',
    5: 'text',
    6: 'int',
    7: 'fixed64',
    8: 'fixed64',
    9: 'message*',
    15: 'message',
    16: 'fixed32',
  },
  attribute: { 1: 'text', 2: 'message' },
  value: { 1: 'text', 2: 'bool', 3: 'int64' },
  status: { 2: 'text', 3: 'int' },
} as const satisfies Record<string, Record<number, string>>;

const kinds = ['', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
const dayMs = 86_400_000;

/** Reads an `ExportTraceServiceRequest`. @throws OtlpError that says what is wrong with it */
export function readExport(bytes: Uint8Array): CollectedSpan[] {
  const groups = many(fieldsOf('request', bytes), 1);
  demand(groups.length > 0, 'the request has no spans');
  return groups.flatMap((group) => {
    const fields = fieldsOf('resourceSpans', group);
    const resource = attributesOf(many(fieldsOf('resource', one(fields, 1, 'resource')), 1));
    const service = resource['service.name'] ?? '';
    demand(service !== '', 'the resource has no service.name');
    return many(fields, 2).flatMap((scoped) => {
      const parts = fieldsOf('scopeSpans', scoped);
      demand(textOf(one(fieldsOf('scope', one(parts, 1, 'scope')), 1, 'name')) !== '', 'the scope has no name');
      return many(parts, 2).map((span) => spanOf(service, fieldsOf('span', span)));
    });
  });
}

function spanOf(service: string, fields: Fields): CollectedSpan {
  const name = textOf(one(fields, 5, 'name'));
  demand(name !== '' && name.length <= 300, 'a span has no name, or a long one');
  const ids = [one(fields, 1, 'trace_id'), one(fields, 2, 'span_id'), fields.get(4)?.[0] ?? Buffer.alloc(0)];
  const [traceId = '', spanId = '', parentId = ''] = ids.map((id) => Buffer.from(id as Uint8Array).toString('hex'));
  demand(/^(?!0+$)[0-9a-f]{32}$/.test(traceId), `span ${name}: trace_id ${traceId}`);
  demand(/^(?!0+$)[0-9a-f]{16}$/.test(spanId), `span ${name}: span_id ${spanId}`);
  demand(/^((?!0+$)[0-9a-f]{16})?$/.test(parentId) && parentId !== spanId, `span ${name}: parent ${parentId}`);
  const kind = kinds[Number(one(fields, 6, 'kind'))];
  demand(kind !== undefined && kind !== '', `span ${name}: no such kind`);
  const [start, end] = [BigInt(one(fields, 7, 'start') as bigint), BigInt(one(fields, 8, 'end') as bigint)];
  demand(start <= end, `span ${name}: it ends before it starts`);
  demand(Math.abs(Number(end / 1_000_000n) - Date.now()) < dayMs, `span ${name}: its time is none of today`);
  const status = fieldsOf('status', one(fields, 15, 'status'));
  const code = Number(one(status, 3, 'code'));
  const message = status.get(2)?.[0];
  demand(code === 1 || code === 2, `span ${name}: status ${code}`);
  demand((code === 2) === (message !== undefined), `span ${name}: a message belongs to an error, and only to one`);
  return {
    service,
    traceId,
    spanId,
    parentId,
    name,
    kind: kind as CollectedSpan['kind'],
    attributes: attributesOf(many(fields, 9)),
    error: message === undefined ? undefined : textOf(message),
  };
}

function attributesOf(pairs: readonly Uint8Array[]): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const pair of pairs) {
    const fields = fieldsOf('attribute', pair);
    const key = textOf(one(fields, 1, 'key'));
    demand(/^[a-z][a-z0-9_.]*$/.test(key), `attribute ${key}: its name is not as OpenTelemetry wants it`);
    demand(attributes[key] === undefined, `attribute ${key} is there twice`);
    const values = [...fieldsOf('value', one(fields, 2, key)).entries()];
    const [field, [value] = []] = values[0] ?? [];
    demand(values.length === 1 && value !== undefined, `attribute ${key} has no value, or several`);
    const text = field === 1 ? textOf(value as Value) : field === 2 ? String(value !== 0) : String(value);
    demand(text.length <= 512, `attribute ${key} is long`);
    attributes[key] = text;
  }
  return attributes;
}

/** The fields of a message: the known ones, of the right type, and as often as they may be there. */
function fieldsOf(message: keyof typeof shapes, bytes: Value): Fields {
  const shape: Readonly<Record<number, string>> = shapes[message];
  const reader = new BinaryReader(bytes as Uint8Array);
  const fields = new Map<number, Value[]>();
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    const type = shape[field];
    demand(type !== undefined, `${message} has the unknown field ${field}`);
    const values = fields.get(field) ?? [];
    demand(values.length === 0 || type?.endsWith('*') === true, `${message} has field ${field} twice`);
    fields.set(field, [...values, readValue(reader, type ?? '', wireType, `${message}.${field}`)]);
  }
  return fields;
}

function readValue(reader: BinaryReader, type: string, wireType: WireType, where: string): Value {
  const wanted = { int: WireType.Varint, bool: WireType.Varint, int64: WireType.Varint, fixed64: WireType.Bit64 };
  const expected =
    type === 'fixed32' ? WireType.Bit32 : (wanted[type as keyof typeof wanted] ?? WireType.LengthDelimited);
  demand(wireType === expected, `${where} has wire type ${wireType}`);
  switch (type) {
    case 'int':
    case 'bool':
      return reader.uint32();
    case 'int64':
      return BigInt(reader.int64());
    case 'fixed64':
      return BigInt(reader.fixed64());
    case 'fixed32':
      return reader.fixed32();
    default:
      return reader.bytes();
  }
}

function one(fields: Fields, field: number, name: string): Value {
  const value = fields.get(field)?.[0];
  if (value === undefined) {
    throw new OtlpError(`${name} is missing`);
  }
  return value;
}

function many(fields: Fields, field: number): readonly Uint8Array[] {
  return (fields.get(field) ?? []) as readonly Uint8Array[];
}

/** @throws TypeError for bytes that are no UTF-8 */
function textOf(value: Value): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(value as Uint8Array);
}

function demand(isTrue: boolean, problem: string): void {
  if (!isTrue) {
    throw new OtlpError(problem);
  }
}
