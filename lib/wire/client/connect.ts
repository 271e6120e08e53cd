import { traceparentOf } from '../../tracing/index.ts';
import { WireError } from '../errors.ts';
import { connectGrpc, type GrpcTransport } from '../grpc/client/client.ts';
import { proxyFromEnvironment } from '../grpc/client/proxy.ts';
import { webSocketTransport } from '../grpc/client/websocket-client.ts';
import { callSpan, observeCall } from '../observe.ts';
import { defaultMaxMessageBytes } from '../streams/stream.ts';
import type { ClientTls } from '../tls.ts';
import { clientKeepalive } from './client-keepalive.ts';
import type { WireClientOptions } from './client-options.ts';

/** Where a principal is and how it is reached. */
export type ConnectionOptions = Pick<
  WireClientOptions,
  | 'server'
  | 'transport'
  | 'environment'
  | 'compression'
  | 'keepalivePingIntervalMs'
  | 'maxMessageBytes'
  | 'called'
  | 'tracer'
  | 'signal'
>;

/**
 * Connects to a principal.
 * @param learned the time to wait for the connection, and the factor on the configured interval of pings
 * @throws the error of the connection, the proxy or the TLS handshake; WireError for an address that is none
 */
export async function connect(
  options: ConnectionOptions,
  tls: ClientTls | 'plaintext',
  learned: { readonly connectMs: number; readonly pingFactor: number },
): Promise<GrpcTransport> {
  const { host, port } = parseServer(options.server);
  const { transport: kind = 'grpc' } = options;
  // grpc-go asks for the proxy of https whatever it speaks, Go's HTTP client for that of the scheme.
  const scheme = kind === 'websocket' && tls === 'plaintext' ? 'http' : 'https';
  const transport = {
    host,
    port,
    tls,
    proxy: proxyFromEnvironment(options.environment ?? process.env, { scheme, host, port }),
    timeoutMs: learned.connectMs,
    maxMessageBytes: options.maxMessageBytes ?? defaultMaxMessageBytes,
    compression: options.compression ?? false,
    keepalive: clientKeepalive(kind, {
      intervalMs: options.keepalivePingIntervalMs ?? 0,
      factor: learned.pingFactor,
    }),
    signal: options.signal,
  };
  const connected = kind === 'websocket' ? webSocketTransport(transport) : await connectGrpc(transport);
  return options.called === undefined && options.tracer === undefined ? connected : observed(connected, options);
}

/** The transport with each call observed and traced; the principal learns of the span. */
function observed(transport: GrpcTransport, options: Pick<ConnectionOptions, 'called' | 'tracer'>): GrpcTransport {
  const { tracer } = options;
  return {
    call(path, headers) {
      const span = callSpan(tracer, path, 'client', tracer?.active);
      try {
        const call = transport.call(path, span ? { ...headers, traceparent: traceparentOf(span.context) } : headers);
        observeCall(call, path, (observed) => options.called?.(observed), span);
        return call;
      } catch (error) {
        span?.end((error as Error).message);
        throw error;
      }
    },
    get failure() {
      return transport.failure;
    },
    closed: transport.closed,
    destroy: () => transport.destroy(),
  };
}

function parseServer(server: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^\[?([^[\]]+)\]?:(\d{1,5})$/.exec(server) ?? [];
  if (host === '' || Number(port) > 65535) {
    throw new WireError('unreachable', `"${server}" is no address of the form host:port`);
  }
  return { host, port: Number(port) };
}
