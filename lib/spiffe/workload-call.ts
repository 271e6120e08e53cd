import { connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket, isIP } from 'node:net';
import { Backoff, type Logger, onAbort, sleep, splitHostPort } from '../base/index.ts';

/** The largest answer that is read. An SVID with its bundle takes a few KiB. */
const largestAnswer = 4 * 1024 * 1024;
/** Status codes of gRPC that the specification gives a meaning, and what to do about them. */
const advice: Readonly<Record<string, string>> = {
  '3': 'the endpoint did not take the request for one of the Workload API',
  '7': 'no identity is registered for this workload: create an entry for it',
};

/** The calls of the Workload API that are used here. */
export type WorkloadCall = 'FetchX509SVID' | 'FetchJWTSVID' | 'FetchJWTBundles';

/** What is wrong with the address of a Workload API; undefined when nothing is. */
export function endpointProblem(address: string): string | undefined {
  return addressOf(address) === undefined
    ? `must be unix:///path/of/the/socket or tcp://<IP address>:<port>, not ${JSON.stringify(address)}`
    : undefined;
}

/** The forms of an address that the specification knows. */
function addressOf(address: string): { path: string } | { host: string; port: number } | undefined {
  const [, path] = /^unix:\/\/(\/[^?#]+)$/.exec(address) ?? /^unix:(\/(?!\/)[^?#]+)$/.exec(address) ?? [];
  if (path !== undefined) {
    return { path };
  }
  const [, authority = ''] = /^tcp:\/\/([^/?#]+)$/.exec(address) ?? [];
  const split = splitHostPort(authority);
  return split !== undefined && isIP(split.host) !== 0 && split.port > 0 ? split : undefined;
}

/**
 * Keeps a streaming call open until aborted. An endpoint that does not answer, or ends the stream, is called again after a wait;
 * the log says why.
 * @param options.endpoint an address without {@link endpointProblem}
 * @param options.answered takes an answer; it throws an Error for one that cannot be used, which ends the stream
 */
export async function followCall(options: {
  readonly endpoint: string;
  readonly call: WorkloadCall;
  readonly answered: (answer: Uint8Array) => void;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { endpoint, call, answered, logger, signal } = options;
  const backoff = new Backoff({ initialMs: 1_000, maxMs: 30_000 });
  while (!signal.aborted) {
    const problem = await callWorkload(endpoint, { call, request: new Uint8Array(), signal }, (answer) => {
      answered(answer);
      backoff.reset();
    });
    if (signal.aborted) {
      return;
    }
    const waitMs = backoff.next();
    logger.warn(
      { endpoint, call, reason: problem, retryInMs: Math.round(waitMs) },
      'the SPIFFE Workload API gives no identity',
    );
    await sleep(waitMs, signal);
  }
}

/**
 * Makes one call and reads it to its end.
 * @returns why it has ended: each call does so at some time
 */
export function callWorkload(
  endpoint: string,
  options: { readonly call: WorkloadCall; readonly request: Uint8Array; readonly signal: AbortSignal },
  answered: (answer: Uint8Array) => void,
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const to = addressOf(endpoint);
  if (to === undefined) {
    throw new RangeError(`the address ${endpointProblem(endpoint)}`);
  }
  const session = connectHttp2('http://localhost', { createConnection: () => connectSocket(to) });
  const end = (why: string) => {
    resolve(why);
    session.destroy();
  };
  session.on('error', (error) => end(error.message));
  session.on('close', () => end('the connection has ended'));
  void promise.then(onAbort(options.signal, () => end('it is no longer wanted')));
  const stream = session.request({
    ':method': 'POST',
    ':path': `/SpiffeWorkloadAPI/${options.call}`,
    'content-type': 'application/grpc',
    te: 'trailers',
    // Without it the endpoint must refuse: a request that a browser was made to send does not have it.
    'workload.spiffe.io': 'true',
  });
  const status = (headers: Readonly<Record<string, unknown>>) => {
    const code = headers['grpc-status'];
    if (code !== undefined) {
      const text = typeof headers['grpc-message'] === 'string' ? headers['grpc-message'].slice(0, 500) : '';
      end(advice[String(code)] ?? `it ended with status ${String(code)} ${text}`.trim());
    }
  };
  stream.on('response', status);
  stream.on('trailers', status);
  stream.on('error', (error) => end(error.message));
  stream.on('close', () => end('the stream has ended'));
  let rest = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    try {
      for (let message = firstMessage(rest); message !== undefined; message = firstMessage(rest)) {
        rest = rest.subarray(5 + message.length);
        answered(message);
      }
    } catch (error) {
      end((error as Error).message);
    }
  });
  const head = Buffer.alloc(5);
  head.writeUInt32BE(options.request.length, 1);
  stream.end(Buffer.concat([head, options.request]));
  return promise;
}

/** The first message of a gRPC stream, when all of it has come. @throws Error when it cannot be read */
function firstMessage(bytes: Buffer): Buffer | undefined {
  if (bytes.length < 5) {
    return undefined;
  }
  const length = bytes.readUInt32BE(1);
  if (bytes[0] !== 0 || length > largestAnswer) {
    throw new Error(`its answer of ${length} bytes is compressed or too large`);
  }
  return bytes.length < 5 + length ? undefined : bytes.subarray(5, 5 + length);
}
