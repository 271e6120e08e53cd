import { setTimeout as sleep } from 'node:timers/promises';
import { Backoff } from './backoff.ts';
import type { WireClientOptions } from './client-options.ts';
import { WireError } from './errors.ts';
import { CallEventStream } from './event-stream.ts';
import { explainFailure } from './failures.ts';
import { connectGrpc, type GrpcTransport } from './grpc/client.ts';
import { GrpcError } from './grpc/status.ts';
import { logIn } from './login.ts';
import { paths } from './services.ts';
import { defaultMaxMessageBytes } from './stream.ts';

const connectTimeoutMs = 15_000;
const defaultBackoff = { initialMs: 200, maxMs: 30_000 };
/** A stream that lasted this long was a good one: the next attempt starts with the shortest wait again. */
const goodAfterMs = 5000;
/** grpc-go's lower bound for pings, and its patience. */
const minPingIntervalMs = 10_000;
const pingTimeoutMs = 20_000;
/** Idle connections are left to TCP keep-alive; one that swallows what we send is pinged, as rarely as originals allow. */
const defaultKeepalive = { intervalMs: 10_000, timeoutMs: 10_000, onSuspicionEveryMs: 5 * 60_000 + 5000 };
/** How long the reason of a broken connection may come after the failure that it caused. */
const reasonDelayMs = 250;

/**
 * Keeps an agent connected until `signal` aborts: connects, logs in, opens the event stream, and starts over whenever
 * that ends, after a wait that doubles with each failure. Every failure is logged in words that say what to do.
 *
 * The principal's version string is taken over when it insists on it, as originals do.
 */
export async function runWireClient(options: WireClientOptions): Promise<void> {
  const { signal, logger, server } = options;
  const backoff = new Backoff(options.backoff ?? defaultBackoff);
  const versions: { adopted?: string } = {};
  while (!signal.aborted) {
    const began = performance.now();
    const error = await runConnection(options, versions);
    if (signal.aborted) break;
    if (performance.now() - began >= goodAfterMs) backoff.reset();
    const retryInMs = backoff.next();
    const hint = error.hint === undefined ? undefined : { hint: error.hint };
    logger.warn({ server, code: error.code, ...hint, retryInMs }, error.message);
    options.onDisconnected?.(error, retryInMs);
    await sleep(retryInMs, undefined, { signal }).catch(() => undefined);
  }
}

/** One connection, from start to end. Never throws: how it ended is the result. */
async function runConnection(options: WireClientOptions, versions: { adopted?: string }): Promise<WireError> {
  const { signal, server } = options;
  let transport: GrpcTransport | undefined;
  try {
    transport = await connect(options);
    const principal = await logIn(transport, options, versions);
    const { agent, principalNamespace, version } = principal;
    const call = await principal.call(paths.subscribe);
    const logger = options.logger;
    return await new Promise<WireError>((resolve) => {
      const stream = new CallEventStream(call, {
        maxMessageBytes: options.maxMessageBytes ?? defaultMaxMessageBytes,
        logger,
        end: () => call.cancel(),
      });
      const onAbort = () => stream.close();
      signal.addEventListener('abort', onAbort, { once: true });
      call.listen({
        message: (bytes) => stream.received(bytes),
        end: (status) => {
          signal.removeEventListener('abort', onAbort);
          void endOf(status, transport, server).then((error) => {
            stream.finished(status === undefined || signal.aborted ? undefined : error);
            resolve(error);
          });
        },
      });
      logger.info({ server, agent, principalNamespace, version }, 'Connected to the principal');
      stream.attach(options.onConnected(stream, { agent, principalNamespace, version }));
    });
  } catch (error) {
    return await explain(error, transport, server);
  } finally {
    transport?.destroy();
  }
}

function connect(options: WireClientOptions): Promise<GrpcTransport> {
  const { host, port } = parseServer(options.server);
  const interval = options.keepalivePingIntervalMs;
  return connectGrpc({
    host,
    port,
    tls: options.tls(),
    timeoutMs: connectTimeoutMs,
    maxMessageBytes: options.maxMessageBytes ?? defaultMaxMessageBytes,
    compression: options.compression ?? false,
    keepalive: interval
      ? { intervalMs: Math.max(interval, minPingIntervalMs), timeoutMs: pingTimeoutMs }
      : defaultKeepalive,
    signal: options.signal,
  });
}

function parseServer(server: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^\[?([^[\]]+)\]?:(\d{1,5})$/.exec(server) ?? [];
  if (host === '' || Number(port) > 65535) {
    throw new WireError('unreachable', `"${server}" is no address of the form host:port`);
  }
  return { host, port: Number(port) };
}

async function endOf(status: GrpcError | undefined, transport: GrpcTransport | undefined, server: string) {
  if (status === undefined) return new WireError('closed', `The principal at ${server} ended the stream`);
  return explain(status, transport, server);
}

async function explain(error: unknown, transport: GrpcTransport | undefined, server: string): Promise<WireError> {
  const isLost = error instanceof GrpcError && error.isConnectionLoss;
  if (isLost && transport !== undefined && transport.failure === undefined) {
    await Promise.race([transport.closed, sleep(reasonDelayMs)]);
  }
  return explainFailure(error, server, transport?.failure);
}
