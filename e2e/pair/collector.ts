import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { BinaryReader } from '@bufbuild/protobuf/wire';

/** A span as a collector reads it; only what tests look at. */
export interface CollectedSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly error: string | undefined;
}

/** A collector for tests: OTLP over gRPC on 127.0.0.1, decoded on its own. */
export interface Collector {
  readonly address: string;
  readonly spans: CollectedSpan[];
  /** The gRPC status of answers from now on. */
  answer(status: number, message?: string): void;
  stop(): Promise<void>;
}

/** Starts a collector on a port, or a free one. */
export async function startCollector(port = 0): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  let [status, message] = [0, ''];
  const server: Http2Server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      const isExport = headers[':path'] === '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
      if (isExport && status === 0) {
        spans.push(...decode(Buffer.concat(chunks).subarray(5)));
      }
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () =>
        stream.sendTrailers({ 'grpc-status': isExport ? `${status}` : '12', 'grpc-message': message }),
      );
      stream.end(Buffer.alloc(5));
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    answer: (nextStatus, nextMessage = '') => {
      status = nextStatus;
      message = nextMessage;
    },
    async stop() {
      server.close();
      for (const session of sessions) {
        session.destroy();
      }
      await once(server, 'close');
    },
  };
}

type Fields = Map<number, Uint8Array[]>;

/** The length-delimited fields of a message; numbers are skipped. */
function fieldsOf(bytes: Uint8Array): Fields {
  const reader = new BinaryReader(bytes);
  const fields: Fields = new Map();
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (type === 2) {
      fields.set(field, [...(fields.get(field) ?? []), reader.bytes()]);
    } else {
      reader.skip(type, field);
    }
  }
  return fields;
}

const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();
const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex');
const only = (fields: Fields, field: number) => fieldsOf(fields.get(field)?.[0] ?? new Uint8Array());

function decode(bytes: Uint8Array): CollectedSpan[] {
  return (fieldsOf(bytes).get(1) ?? []).flatMap((resourceSpans) => {
    const fields = fieldsOf(resourceSpans);
    const service = text(only(only(only(fields, 1), 1), 2).get(1)?.[0]);
    return (fields.get(2) ?? []).flatMap((scopeSpans) =>
      (fieldsOf(scopeSpans).get(2) ?? []).map((span) => decodeSpan(service, fieldsOf(span))),
    );
  });
}

function decodeSpan(service: string, span: Fields): CollectedSpan {
  const attributes = (span.get(9) ?? []).map((pair) => {
    const fields = fieldsOf(pair);
    return [text(fields.get(1)?.[0]), text(only(fields, 2).get(1)?.[0])] as const;
  });
  const error = only(span, 15).get(2)?.[0];
  return {
    service,
    traceId: hex(span.get(1)?.[0]),
    spanId: hex(span.get(2)?.[0]),
    parentId: hex(span.get(4)?.[0]),
    name: text(span.get(5)?.[0]),
    attributes: Object.fromEntries(attributes),
    error: error && text(error),
  };
}
