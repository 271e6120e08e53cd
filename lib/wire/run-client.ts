import { setTimeout as sleep } from 'node:timers/promises';
import { Backoff } from './backoff.ts';
import { CertificateWatch } from './certificate-watch.ts';
import { clientKeepalive, factorAfter } from './client-keepalive.ts';
import type { PrincipalInfo, WireClientOptions } from './client-options.ts';
import { WireError } from './errors.ts';
import { CallEventStream } from './event-stream.ts';
import { explainFailure } from './failures.ts';
import { connectGrpc, type GrpcTransport } from './grpc/client.ts';
import type { ClientCall } from './grpc/client-call.ts';
import { proxyFromEnvironment } from './grpc/proxy.ts';
import { GrpcError } from './grpc/status.ts';
import { webSocketTransport } from './grpc/websocket-client.ts';
import {
  type LiveCalls,
  LogStreamData,
  LogStreamResponse,
  openLiveStream,
  TerminalStreamData,
} from './live-streams.ts';
import { type LoggedIn, logIn } from './login.ts';
import { type ObservedCall, observeCall } from './observe.ts';
import { Patience } from './patience.ts';
import { paths } from './services.ts';
import { defaultMaxMessageBytes } from './stream.ts';
import type { ClientTls } from './tls.ts';

/** A principal that has not refused the event stream by then has taken it; originals say nothing before their first event. */
const acceptedAfterMs = 250;
/** The longest wait is what a fleet needs at most to be back after a long absence of the principal. */
const defaultBackoff = { initialMs: 200, maxMs: 10_000 };
/** A stream that lasted this long was a good one: the next attempt starts with the shortest wait again. */
const goodAfterMs = 5000;
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
  const learned: Learned = { pingFactor: 1, patience: new Patience() };
  while (!signal.aborted) {
    const began = performance.now();
    const error = await runConnection(options, learned);
    if (signal.aborted) break;
    if (performance.now() - began >= goodAfterMs) backoff.reset();
    const retryInMs = backoff.next();
    const hint = error.hint === undefined ? undefined : { hint: error.hint };
    logger.warn({ server, code: error.code, ...hint, retryInMs }, error.message);
    options.onDisconnected?.(error, retryInMs);
    await sleep(retryInMs, undefined, { signal }).catch(() => undefined);
  }
}

/** What former connections have taught about the principal. */
interface Learned {
  /** The version that it insists on. */
  adopted?: string;
  /** How much rarer than configured our pings have to be. */
  pingFactor: number;
  /** How long it takes. */
  readonly patience: Patience;
}

/** One connection, from start to end. Never throws: how it ended is the result. */
async function runConnection(options: WireClientOptions, learned: Learned): Promise<WireError> {
  const { server } = options;
  const began = performance.now();
  let transport: GrpcTransport | undefined;
  try {
    const tls = options.tls();
    transport = await connect(options, tls, learned);
    const opened = await openStream(transport, options, learned);
    learned.patience.rewarded();
    return await followStream(opened, transport, options, tls);
  } catch (error) {
    learned.patience.failedAfter(performance.now() - began);
    return await explain(error, transport, server);
  } finally {
    learned.pingFactor = factorAfter(transport?.failure, learned.pingFactor);
    transport?.destroy();
  }
}

/** An event stream that was asked for; the principal may still refuse it. */
interface OpenedStream {
  readonly call: ClientCall;
  readonly principal: PrincipalInfo;
  readonly live: LiveCalls;
}

/** Logs in and asks for the event stream. */
async function openStream(
  transport: GrpcTransport,
  options: WireClientOptions,
  learned: Learned,
): Promise<OpenedStream> {
  const { loginMs } = learned.patience;
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    transport.destroy();
  }, loginMs);
  try {
    const login = await logIn(transport, options, learned);
    const { agent, principalNamespace, version } = login;
    const principal = { agent, principalNamespace, version };
    return { call: await login.call(paths.subscribe), principal, live: liveCalls(login) };
  } catch (error) {
    if (!isLate) throw error;
    const message = `The principal at ${options.server} did not answer the login within ${loginMs / 1000} s`;
    throw new WireError('unreachable', message, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function liveCalls(login: LoggedIn): LiveCalls {
  return {
    logs: async (handlers) =>
      openLiveStream(
        await login.call(paths.streamLogs),
        { incoming: LogStreamResponse, outgoing: LogStreamData },
        handlers,
      ),
    terminal: async (handlers) =>
      openLiveStream(
        await login.call(paths.streamTerminal),
        { incoming: TerminalStreamData, outgoing: TerminalStreamData },
        handlers,
      ),
  };
}

/** Hands the stream to the user once the principal has taken it; resolves with how it ended. */
function followStream(
  { call, principal, live }: OpenedStream,
  transport: GrpcTransport,
  options: WireClientOptions,
  tls: ClientTls | 'plaintext',
): Promise<WireError> {
  const { signal, logger, server } = options;
  const maxMessageBytes = Math.min(options.maxMessageBytes ?? defaultMaxMessageBytes, call.maxMessageBytes);
  return new Promise<WireError>((resolve, reject) => {
    const stream = new CallEventStream(call, {
      maxMessageBytes,
      logger,
      about: { server },
      end: () => call.cancel(),
    });
    let isTaken = false;
    const taken = () => {
      if (isTaken || call.isOver) return;
      isTaken = true;
      logger.info({ server, ...principal }, 'Connected to the principal');
      try {
        stream.attach(options.onConnected(stream, principal, live));
      } catch (error) {
        reject(error);
      }
    };
    let timer: NodeJS.Timeout | undefined;
    let isRenewed = false;
    const certificate = new CertificateWatch(tls, options.tls, () => {
      isRenewed = true;
      stream.close();
    });
    const onAbort = () => stream.close();
    signal.addEventListener('abort', onAbort, { once: true });
    call.listen({
      opened: () => {
        timer = setTimeout(taken, acceptedAfterMs);
      },
      accepted: taken,
      message: (bytes) => stream.received(bytes),
      end: (status) => {
        clearTimeout(timer);
        certificate.stop();
        signal.removeEventListener('abort', onAbort);
        const ended = isRenewed ? Promise.resolve(renewed()) : endOf(status, transport, server);
        void ended.then((error) => {
          stream.finished(status === undefined || signal.aborted ? undefined : error);
          resolve(error);
        });
      },
    });
  });
}

function renewed(): WireError {
  return new WireError('closed', 'Our client certificate was renewed and is used from the next connection on');
}

async function connect(
  options: WireClientOptions,
  tls: ClientTls | 'plaintext',
  learned: Learned,
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
    timeoutMs: learned.patience.connectMs,
    maxMessageBytes: options.maxMessageBytes ?? defaultMaxMessageBytes,
    compression: options.compression ?? false,
    keepalive: clientKeepalive(kind, {
      intervalMs: options.keepalivePingIntervalMs ?? 0,
      factor: learned.pingFactor,
    }),
    signal: options.signal,
  };
  const connected = kind === 'websocket' ? webSocketTransport(transport) : await connectGrpc(transport);
  return options.called === undefined ? connected : observed(connected, (call) => options.called?.(call));
}

/** Tells of all calls of a transport. */
function observed(transport: GrpcTransport, called: (call: ObservedCall) => void): GrpcTransport {
  return {
    call(path, headers) {
      const call = transport.call(path, headers);
      observeCall(call, path, called);
      return call;
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
