import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { networkOf } from '../base/index.ts';
import { guard } from './guard.ts';
import type { RefusalLog } from './refusal-log.ts';

/** What one connection may ask for. */
export interface RequestCaps {
  /**
   * Requests of one connection that have no answer yet. Node begins every request that a client sends at once, and keeps the answers:
   * 64 KiB are 2,000 of them. Browsers, Prometheus and Go's clients wait for each answer; the next request may come before the
   * server has noticed that the answer has left, so at least 2.
   */
  readonly requestsUnderWay: number;
  /** How long, in ms, a client may take none of an answer that waits for it; 0: for ever. */
  readonly stallMs: number;
  /** How long, in ms, a request may take until its answer has left; not given where answers are streams. */
  readonly answerMs?: number;
}

/** Limits the requests of each connection, to be called when the server has its listeners. */
export function limitRequests(server: Server, caps: RequestCaps, refusals: RefusalLog): void {
  const underWay = new WeakMap<Duplex, number>();
  const admitted = new WeakSet<IncomingMessage>();

  const end = (socket: Socket, why: string) => {
    const network = networkOf(socket.remoteAddress ?? '');
    socket.destroy();
    refusals.add(why, network);
  };
  const admits = (request: IncomingMessage, response: ServerResponse): boolean => {
    const { socket } = request;
    // What stands behind the request that was too much has been read already. And a listener may pass a request on.
    if (socket.destroyed || admitted.has(request)) {
      return !socket.destroyed;
    }
    const before = underWay.get(socket) ?? 0;
    if (before >= caps.requestsUnderWay) {
      closeWithoutStacks(socket);
      end(socket, 'it has too many requests without an answer');
      return false;
    }
    admitted.add(request);
    underWay.set(socket, before + 1);
    const deadline =
      caps.answerMs === undefined
        ? undefined
        : setTimeout(() => end(socket, 'its answer has not left in time'), caps.answerMs).unref();
    response.once('close', () => {
      clearTimeout(deadline);
      underWay.set(socket, (underWay.get(socket) ?? 1) - 1);
    });
    return true;
  };
  if (server.listenerCount('checkExpectation') === 0) {
    server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) =>
      response.writeHead(417).end(),
    );
  }
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    if (server.listenerCount(event) > 0) {
      guard(server, event, admits);
    }
  }

  // Node notices that a client takes some of what is written, and calls this only when nothing has moved.
  server.setTimeout(caps.stallMs);
  server.on('timeout', (socket: Socket) => {
    if (socket.writableLength > 0) {
      end(socket, 'it does not take its answer');
    } else if ((underWay.get(socket) ?? 0) === 0) {
      socket.destroy();
    }
  });
}

/**
 * When a connection closes, Node makes an error for each request that has no answer. Their stacks would take longer than to read the
 * requests, and nobody sees them.
 */
function closeWithoutStacks(socket: Duplex): void {
  let limit = Error.stackTraceLimit;
  socket.prependOnceListener('close', () => {
    limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = limit;
  });
}
