import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { onAbort, trusting } from '../../base/index.ts';
import { ApiError, ConnectionError, errorFromResponse } from '../errors.ts';
import { connectionError } from './connection.ts';
import type { Credentials, Identity } from './credentials.ts';

/** A WebSocket to the API server: its path and subprotocols. */
export interface WebSocketRequest {
  /** Path and query, from `/`. */
  readonly path: string;
  /** Subprotocols in the order of preference. */
  readonly protocols: readonly string[];
  readonly signal?: AbortSignal | undefined;
  /** Time limit of the handshake. */
  readonly timeoutMs: number;
  readonly headers: Readonly<Record<string, string>>;
}

const limits = {
  perMessageDeflate: false,
  /** Messages that are longer end the connection. */
  maxPayload: 4 * 1024 * 1024,
  /** Time limit of the server's part of the closing handshake, in ms. */
  closeTimeout: 5_000,
};
/** Most bytes that are read of a refusal's body. */
const mostRefusalBytes = 64 * 1024;

/**
 * Opens a WebSocket and pauses it, so that no message is lost before the caller listens and resumes it.
 * @throws ApiError when the server refuses, ConnectionError when it cannot be reached, the signal's reason
 */
export async function openWebSocket(credentials: Credentials, request: WebSocketRequest): Promise<WebSocket> {
  for (let attempt = 1; ; attempt++) {
    request.signal?.throwIfAborted();
    if (credentials.proxyUrl !== undefined) {
      throw new ConnectionError(
        'terminals and forwarded ports are not available through the proxy-url of a kubeconfig',
        {
          code: 'PROXY',
          sent: false,
        },
      );
    }
    try {
      return await open(credentials.server, await credentials.current(), request);
    } catch (error) {
      if (request.signal?.aborted) {
        throw request.signal.reason;
      }
      // Credentials may have been rotated.
      if (!(error instanceof ApiError) || error.status !== 401 || attempt > 1) {
        throw error;
      }
      credentials.invalidate();
    }
  }
}

function open(server: string, identity: Identity, request: WebSocketRequest): Promise<WebSocket> {
  const { path, protocols, signal, timeoutMs } = request;
  const what = `WebSocket ${server}${path.replace(/\?.*/, '')}`;
  return new Promise((resolve, reject) => {
    const { ca, cert, key, servername, rejectUnauthorized } = identity.tls;
    const webSocket = new WebSocket(new URL(server).origin.replace(/^http/, 'ws') + path, [...protocols], {
      ...limits,
      headers: { ...request.headers, ...identity.headers },
      ...trusting(ca),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(servername ? { servername } : {}),
      ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
      minVersion: 'TLSv1.2',
      handshakeTimeout: timeoutMs,
    });
    const unlisten = onAbort(signal, () => webSocket.terminate());
    const done = (settle: () => void) => {
      unlisten();
      settle();
    };
    webSocket.once('open', () => {
      webSocket.pause();
      done(() => resolve(webSocket));
    });
    webSocket.once('unexpected-response', (_sent, response) => {
      void refusalOf(what, response).then((error) => {
        webSocket.terminate();
        done(() => reject(error));
      });
    });
    // Stays: an error without a listener would end the process. The `close` event reports the end of an open WebSocket.
    webSocket.on('error', (error) => done(() => reject(connectionError(what, error))));
  });
}

async function refusalOf(what: string, response: IncomingMessage): Promise<ApiError | ConnectionError> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length > mostRefusalBytes) {
        break;
      }
    }
  } catch (error) {
    return connectionError(what, error);
  }
  return errorFromResponse(what, response.statusCode ?? 0, Buffer.concat(parts).toString('utf8'));
}
