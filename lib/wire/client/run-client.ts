import { Backoff, onAbort, sleep } from '../../base/index.ts';
import { WireError } from '../errors.ts';
import type { GrpcTransport } from '../grpc/client/client.ts';
import type { ClientCall } from '../grpc/client/client-call.ts';
import type { GrpcError } from '../grpc/status.ts';
import { paths } from '../methods.ts';
import { CallEventStream } from '../streams/event-stream.ts';
import { LogStreamResponse, openLiveStream, terminalStreamCodec } from '../streams/live-streams.ts';
import { logStreamCodec } from '../streams/log-stream-data.ts';
import { defaultMaxMessageBytes } from '../streams/stream.ts';
import type { ClientTls } from '../tls.ts';
import { renewCertificate } from './certificates.ts';
import { factorAfter } from './client-keepalive.ts';
import type { PrincipalInfo, SessionCalls, WireClientOptions } from './client-options.ts';
import { connect } from './connect.ts';
import { ConnectTimeout } from './connect-timeout.ts';
import { explain } from './failures.ts';
import { type LoggedIn, type LoginLife, logIn } from './login.ts';
import { RenewalWatch } from './renewal-watch.ts';

/** After this time without a refusal the event stream counts as accepted; originals send nothing before their first event. */
const acceptedAfterMs = 250;
/** The longest wait bounds how late an agent reconnects after a long outage of the principal. */
const defaultBackoff = { initialMs: 200, maxMs: 10_000 };
/** After a stream that lasted this long the next attempt starts with the shortest wait again. */
const goodAfterMs = 5000;

/**
 * Keeps an agent connected until `signal` aborts: connects, logs in, opens the event stream, and starts over whenever
 * that ends, after a wait that doubles with each failure. Every failure is logged with advice to the operator.
 *
 * Of several principals the first is tried first, also after a connection to another one. When a principal cannot be used the
 * next is tried; at once when it says that it takes no agents now.
 *
 * The agent adopts the principal's version string when the principal requires it, as originals do.
 */
export async function runWireClient(all: WireClientOptions): Promise<void> {
  const { signal, logger } = all;
  const backoff = new Backoff(all.backoff ?? defaultBackoff);
  const principals = [all.server, ...(all.otherServers ?? [])].map((server) => ({ server, learned: newKnowledge() }));
  let turn = 0;
  let successor: LogIn | undefined;
  while (!signal.aborted) {
    const { server, learned } = principals[turn] ?? { server: all.server, learned: newKnowledge() };
    const began = performance.now();
    let wasConnected = false;
    const options: WireClientOptions = {
      ...all,
      server,
      onConnected(...connected) {
        wasConnected = true;
        return all.onConnected(...connected);
      },
    };
    const ended = await runConnection(options, learned, successor);
    if (signal.aborted) {
      break;
    }
    if ('transport' in ended) {
      successor = ended;
      continue;
    }
    wasConnected ||= successor !== undefined;
    successor = undefined;
    const error = ended;
    if (performance.now() - began >= goodAfterMs) {
      backoff.reset();
    }
    turn = wasConnected ? 0 : (turn + 1) % principals.length;
    const isNextAtOnce = turn > 0 && error.code === 'not-accepting';
    const retryInMs = isNextAtOnce ? 0 : Math.round(backoff.next());
    const hint = error.hint === undefined ? undefined : { hint: error.hint };
    const next = principals.length > 1 ? { next: principals[turn]?.server } : undefined;
    logger.warn({ server, code: error.code, ...hint, retryInMs, ...next }, error.message);
    options.onDisconnected?.(error, retryInMs);
    await sleep(retryInMs, signal);
  }
}

/** A connection after the login, before its event stream is opened. */
interface LogIn {
  readonly transport: GrpcTransport;
  readonly tls: ClientTls | 'plaintext';
  readonly login: LoggedIn;
}

/** Knowledge about the principal from earlier connections. */
interface Learned {
  /** The version that it requires. */
  adopted?: string;
  /** Factor on the configured interval of pings. */
  pingFactor: number;
  readonly connectTimeout: ConnectTimeout;
}

function newKnowledge(): Learned {
  return { pingFactor: 1, connectTimeout: new ConnectTimeout() };
}

const connection = ({ connectTimeout: { connectMs }, pingFactor }: Learned) => ({ connectMs, pingFactor });

/**
 * Runs one connection, from connecting or from the login to its end. Never throws: the result is the error that ended it, or
 * the connection that replaces it.
 */
async function runConnection(
  options: WireClientOptions,
  learned: Learned,
  begun: LogIn | undefined,
): Promise<WireError | LogIn> {
  const { server } = options;
  const began = performance.now();
  let transport = begun?.transport;
  try {
    const tls = begun?.tls ?? options.tls();
    transport ??= await connect(options, tls, connection(learned));
    const opened = await openStream(transport, options, learned, begun?.login);
    learned.connectTimeout.succeeded();
    return await followStream(opened, { transport, tls }, options, learned);
  } catch (error) {
    learned.connectTimeout.failedAfter(performance.now() - began);
    return await explain(error, transport, server);
  } finally {
    learned.pingFactor = factorAfter(transport?.failure, learned.pingFactor);
    transport?.destroy();
  }
}

/** An event stream that was requested; the principal may still refuse it. */
interface OpenedStream {
  readonly call: ClientCall;
  readonly principal: PrincipalInfo;
  readonly calls: SessionCalls;
  readonly life: LoginLife | undefined;
}

/** Requests the event stream, after logging in unless that is done. */
async function openStream(
  transport: GrpcTransport,
  options: WireClientOptions,
  learned: Learned,
  done: LoggedIn | undefined,
): Promise<OpenedStream> {
  return inTimeForLogin(transport, options, learned, async () => {
    const login = done ?? (await logIn(transport, options, learned));
    const { agent, principalNamespace, version, life } = login;
    const principal = { agent, principalNamespace, version };
    return { call: await login.call(paths.subscribe), principal, calls: sessionCalls(login, options), life };
  });
}

/** Destroys the connection when the work takes longer than a login may. */
async function inTimeForLogin<T>(
  transport: GrpcTransport,
  options: WireClientOptions,
  { connectTimeout: { loginMs } }: Learned,
  work: () => Promise<T>,
): Promise<T> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    transport.destroy();
  }, loginMs);
  try {
    return await work();
  } catch (error) {
    if (!isLate) {
      throw error;
    }
    const message = `The principal at ${options.server} did not answer the login within ${loginMs / 1000} s`;
    throw new WireError('unreachable', message, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Connects and logs in anew, while the present connection stays open.
 * @returns undefined when that fails, after logging the reason
 */
async function prepareSuccessor(options: WireClientOptions, learned: Learned): Promise<LogIn | undefined> {
  const { server, logger } = options;
  let transport: GrpcTransport | undefined;
  try {
    const tls = options.tls();
    const connected = await connect(options, tls, connection(learned));
    transport = connected;
    const login = await inTimeForLogin(connected, options, learned, () => logIn(connected, options, learned));
    return { transport, tls, login };
  } catch (error) {
    const { code, message } = await explain(error, transport, server);
    transport?.destroy();
    if (!options.signal.aborted) {
      logger.warn({ server, code }, `No connection that takes the place of the present one yet: ${message}`);
    }
    return undefined;
  }
}

function sessionCalls(login: LoggedIn, { server, signal }: WireClientOptions): SessionCalls {
  return {
    renewCertificate: (request) => renewCertificate(login, { server, request, signal }),
    logs: async (handlers) =>
      openLiveStream(
        await login.call(paths.streamLogs),
        { incoming: LogStreamResponse, outgoing: logStreamCodec },
        handlers,
      ),
    terminal: async (handlers) =>
      openLiveStream(
        await login.call(paths.streamTerminal),
        { incoming: terminalStreamCodec, outgoing: terminalStreamCodec },
        handlers,
      ),
  };
}

/**
 * Passes the stream to the user once the principal has accepted it; resolves with the reason of its end. After a renewal of the
 * certificate, or near the end of the login, the next connection is made first, and this one is closed after the login there: only
 * the time to open a stream is lost.
 */
function followStream(
  { call, principal, calls, life }: OpenedStream,
  { transport, tls }: Omit<LogIn, 'login'>,
  options: WireClientOptions,
  learned: Learned,
): Promise<WireError | LogIn> {
  const { signal, logger, server } = options;
  const maxMessageBytes = Math.min(options.maxMessageBytes ?? defaultMaxMessageBytes, call.maxMessageBytes);
  return new Promise<WireError | LogIn>((resolve, reject) => {
    const stream = new CallEventStream(call, {
      maxMessageBytes,
      logger,
      about: { server },
      end: () => call.cancel(),
    });
    let isAccepted = false;
    const accepted = () => {
      if (isAccepted || call.isOver) {
        return;
      }
      isAccepted = true;
      logger.info({ server, ...principal }, 'Connected to the principal');
      try {
        stream.attach(options.onConnected(stream, principal, calls));
      } catch (error) {
        reject(error);
      }
    };
    let timer: NodeJS.Timeout | undefined;
    let successor: LogIn | undefined;
    let isPreparing = false;
    const changeOver = async (why: string) => {
      isPreparing = true;
      const prepared = await prepareSuccessor(options, learned);
      isPreparing = false;
      if (prepared === undefined) {
        return;
      }
      if (call.isOver) {
        prepared.transport.destroy();
        return;
      }
      successor = prepared;
      logger.info({ server }, `${why}: a new connection takes the place of this one`);
      stream.close();
    };
    const renewal = new RenewalWatch({ used: tls, current: options.tls, life }, (why) => {
      if (!isPreparing && successor === undefined) {
        void changeOver(why);
      }
    });
    const unlisten = onAbort(signal, () => stream.close());
    call.listen({
      opened: () => {
        timer = setTimeout(accepted, acceptedAfterMs);
      },
      accepted,
      message: (bytes) => stream.received(bytes),
      end: (status) => {
        clearTimeout(timer);
        renewal.stop();
        unlisten();
        if (successor !== undefined) {
          stream.finished(undefined);
          resolve(successor);
          return;
        }
        void endOf(status, transport, server).then((error) => {
          stream.finished(status === undefined || signal.aborted ? undefined : error);
          resolve(error);
        });
      },
    });
  });
}

async function endOf(status: GrpcError | undefined, transport: GrpcTransport | undefined, server: string) {
  if (status === undefined) {
    return new WireError('closed', `The principal at ${server} ended the stream`);
  }
  return explain(status, transport, server);
}
