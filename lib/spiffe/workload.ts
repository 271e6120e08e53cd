import { createPrivateKey, X509Certificate } from 'node:crypto';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket, isIP } from 'node:net';
import { X509SVIDResponse } from '../../proto/gen/workloadapi/workload.ts';
import { Backoff, type Logger, sleep, splitHostPort } from '../base/index.ts';

/** The default identity of a workload, PEM. The names are those of TLS Secrets. */
export interface WorkloadFields {
  /** The X.509-SVID, and intermediate certificates. */
  readonly 'tls.crt': string;
  readonly 'tls.key': string;
  /** The authorities of its trust domain. */
  readonly 'ca.crt': string;
}

/** The largest answer that is read. An SVID with its bundle takes a few KiB. */
const largestAnswer = 4 * 1024 * 1024;
/** Status codes of gRPC that the specification gives a meaning, and what to do about them. */
const advice: Readonly<Record<string, string>> = {
  '3': 'the endpoint did not take the request for one of the Workload API',
  '7': 'no identity is registered for this workload: create an entry for it',
};

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
 * Gives the workload's default identity, now and whenever it changes, until aborted: the SPIFFE Workload API's
 * `FetchX509SVID`. An endpoint that does not answer, or ends the stream, is asked again; what it gave last stays good.
 * @param options.endpoint an address without {@link endpointProblem}
 */
export async function followWorkload(options: {
  readonly endpoint: string;
  readonly offer: (fields: WorkloadFields) => void;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { endpoint, offer, logger, signal } = options;
  const backoff = new Backoff({ initialMs: 1_000, maxMs: 30_000 });
  while (!signal.aborted) {
    const problem = await follow(endpoint, signal, (answer) => {
      offer(fieldsOf(answer));
      backoff.reset();
    });
    if (signal.aborted) {
      return;
    }
    const waitMs = backoff.next();
    logger.warn(
      { endpoint, reason: problem, retryInMs: Math.round(waitMs) },
      'the SPIFFE Workload API gives no identity',
    );
    await sleep(waitMs, signal);
  }
}

/** Reads one stream to its end, and says why it ended. */
function follow(endpoint: string, signal: AbortSignal, answered: (answer: Uint8Array) => void): Promise<string> {
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
  const aborted = () => end('it is no longer wanted');
  signal.addEventListener('abort', aborted, { once: true });
  void promise.then(() => signal.removeEventListener('abort', aborted));
  const stream = session.request({
    ':method': 'POST',
    ':path': '/SpiffeWorkloadAPI/FetchX509SVID',
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
  // An empty message: no compression, no bytes.
  stream.end(Buffer.alloc(5));
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

function fieldsOf(answer: Uint8Array): WorkloadFields {
  const [svid] = X509SVIDResponse.decode(answer).svids;
  if (svid === undefined) {
    throw new Error('its answer has no identity');
  }
  try {
    const key = createPrivateKey({ key: Buffer.from(svid.x509SvidKey), format: 'der', type: 'pkcs8' });
    return {
      'tls.crt': certificatesOf(svid.x509Svid),
      'tls.key': key.export({ format: 'pem', type: 'pkcs8' }).toString(),
      'ca.crt': certificatesOf(svid.bundle),
    };
  } catch (error) {
    throw new Error(`its identity cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** Certificates that stand one after the other as DER, as PEM. @throws Error when the bytes are none */
function certificatesOf(der: Uint8Array): string {
  let text = '';
  for (let at = 0; at < der.length; ) {
    const certificate = new X509Certificate(der.subarray(at));
    text += certificate.toString();
    at += certificate.raw.length;
  }
  return text;
}
