import { once } from 'node:events';
import { createServer, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type CollectedSpan, OtlpError, readExport } from './otlp.ts';

/**
 * A collector for tests: OTLP over gRPC on 127.0.0.1, decoded on its own. It refuses what OTLP does not allow, with the reason.
 */
export interface Collector {
  readonly address: string;
  readonly spans: CollectedSpan[];
  /** Why requests were refused. */
  readonly refusals: string[];
  /** The gRPC status of answers from now on. */
  answer(status: number, message?: string): void;
  stop(): Promise<void>;
}

/** Starts a collector on a port, or a free one. */
export async function startCollector(port = 0): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const refusals: string[] = [];
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
      let [code, reason] = [status, message];
      if (status === 0) {
        try {
          spans.push(...readExport(requestOf(headers, Buffer.concat(chunks))));
        } catch (error) {
          [code, reason] = [3, (error as Error).message];
          refusals.push(reason);
        }
      }
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': `${code}`, 'grpc-message': reason }));
      stream.end(Buffer.alloc(5));
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    refusals,
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

/** The message of a unary gRPC request. @throws OtlpError when it is none to a collector of traces */
function requestOf(headers: IncomingHttpHeaders, body: Buffer): Uint8Array {
  const path = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
  const { ':method': method, ':path': asked, 'content-type': type, te } = headers;
  if (method !== 'POST' || asked !== path || !/^application\/grpc(\+proto)?$/.test(type ?? '') || te !== 'trailers') {
    throw new OtlpError(`${method} ${asked} ${type} ${te} is no request of OTLP over gRPC`);
  }
  if (body[0] !== 0 || body.length < 5 || body.readUInt32BE(1) !== body.length - 5) {
    throw new OtlpError('the frame of the message is wrong');
  }
  return body.subarray(5);
}
