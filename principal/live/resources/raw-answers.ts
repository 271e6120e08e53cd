import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { statusText } from '../../../lib/live/index.ts';

/** Answers a request that has no response object, with a Kubernetes Status, and ends its connection. */
export function answerRaw(socket: Duplex, code: number, text: string): void {
  const lines = [
    `HTTP/1.1 ${code} ${STATUS_CODES[code] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Connection: close',
  ];
  socket.once('finish', () => socket.destroy());
  socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`);
}

/** What is wrong with a request that Node's parser refuses: HTTP status and message. */
const faults: Readonly<Record<string, readonly [code: number, message: string]>> = {
  HPE_INVALID_METHOD: [403, 'the method is not served by the resource proxy'],
  HPE_HEADER_OVERFLOW: [431, 'the headers of the request are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request did not arrive in time'],
};

/** Bytes after a request with `Connection: close`. They are ignored. */
const dataAfterLast = 'HPE_CLOSED_CONNECTION';

interface Connection {
  /** Requests whose responses have not ended. */
  unanswered: number;
  last?: { readonly request: IncomingMessage; readonly response: ServerResponse };
  /** Sends a refusal as soon as all requests before have been answered. */
  refusal?: (() => void) | undefined;
}

/**
 * Answers with a Kubernetes Status what Node would answer otherwise, or not at all: `CONNECT`, and requests that cannot be
 * parsed. Requests that came before on the same connection are answered first: clients assign answers by their order. Unknown
 * expectations are ignored, as HTTP allows.
 */
export function answerUnserved(server: Server): void {
  const connections = new WeakMap<Duplex, Connection>();
  const connectionOf = (socket: Duplex) => {
    const connection = connections.get(socket) ?? { unanswered: 0 };
    connections.set(socket, connection);
    return connection;
  };
  const refuse = (socket: Duplex, code: number, message: string) => {
    socket.on('error', () => undefined);
    const connection = connectionOf(socket);
    const { request, response } = connection.last ?? {};
    // The body of that request is at fault, and the refusal is the response to it.
    const isWithinBody = request?.complete === false;
    connection.refusal = () => {
      if (connection.unanswered > (isWithinBody ? 1 : 0) && socket.writable) {
        return;
      }
      connection.refusal = undefined;
      if (socket.writable && !(isWithinBody && response?.headersSent === true)) {
        answerRaw(socket, code, statusText(code, message));
      } else {
        socket.destroy();
      }
    };
    connection.refusal();
  };
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = connectionOf(request.socket);
    connection.unanswered++;
    connection.last = { request, response };
    response.once('close', () => {
      connection.unanswered--;
      connection.refusal?.();
    });
  });
  server.on('connect', (_request, socket) => refuse(socket, 403, 'CONNECT is not served by the resource proxy'));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== dataAfterLast) {
      const [code, message] = faults[error.code ?? ''] ?? [400, 'the request is not valid HTTP'];
      refuse(socket, code, message);
    }
  });
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Node would write it after the head of a response that waits for the response before it.
    if (connectionOf(request.socket).unanswered === 0) {
      response.writeContinue();
    }
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
}
