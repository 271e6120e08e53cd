import type { Http2Session } from 'node:http2';
import type { WebSocket } from 'ws';

/** When a quiet connection is probed. */
export interface KeepaliveTiming {
  /** Silence after which a ping is sent. */
  readonly intervalMs: number;
  /** How long the answer may take. */
  readonly timeoutMs: number;
  /**
   * Pings only when something was sent since the last sign of the peer, and not more often than this. A server of the
   * original cuts off clients that ping more than once in 5 minutes, unless it is configured otherwise.
   */
  readonly onSuspicionEveryMs?: number;
}

/**
 * Watches a connection: when nothing was received for `intervalMs` it is pinged, and destroyed when the answer takes
 * longer than `timeoutMs`. Returns the way to stop.
 */
export function watchSession(session: Http2Session, timing: KeepaliveTiming, dead: () => void): () => void {
  const { intervalMs, timeoutMs, onSuspicionEveryMs } = timing;
  let received = 0;
  let written = 0;
  let answered = 0;
  let pingedAt = Number.NEGATIVE_INFINITY;
  let deadline: NodeJS.Timeout | undefined;
  const probe = () => {
    if (session.destroyed || session.closed || deadline !== undefined) return;
    const { bytesRead, bytesWritten } = session.socket;
    const isQuiet = bytesRead === received;
    // What was written since the last look may have come after the last sign of the peer: it counts as unanswered.
    if (!isQuiet) answered = written;
    received = bytesRead;
    written = bytesWritten;
    if (!isQuiet) return;
    if (onSuspicionEveryMs !== undefined) {
      if (written === answered || performance.now() - pingedAt < onSuspicionEveryMs) return;
    }
    pingedAt = performance.now();
    deadline = setTimeout(() => {
      dead();
      session.destroy(new Error(`no answer to a ping within ${timeoutMs} ms`));
    }, timeoutMs);
    deadline.unref();
    session.ping(() => {
      clearTimeout(deadline);
      deadline = undefined;
      answered = written;
    });
  };
  const timer = setInterval(probe, intervalMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    clearTimeout(deadline);
  };
}

/**
 * Watches a WebSocket in the same way, with ping frames: proxies close connections on which nothing passes. While we do not
 * read from it the answer cannot be seen and is not waited for; a peer that is gone shows by what cannot be sent.
 *
 * @param socket what carries the WebSocket
 */
export function watchWebSocket(
  webSocket: WebSocket,
  socket: { readonly bytesRead: number },
  timing: KeepaliveTiming,
  dead: () => void,
): () => void {
  const { intervalMs, timeoutMs } = timing;
  let received = -1;
  let deadline: NodeJS.Timeout | undefined;
  const calm = () => {
    clearTimeout(deadline);
    deadline = undefined;
  };
  const giveUp = () => {
    deadline = undefined;
    if (webSocket.isPaused) return;
    dead();
    webSocket.terminate();
  };
  const probe = () => {
    if (webSocket.readyState !== webSocket.OPEN || deadline !== undefined) return;
    const isQuiet = socket.bytesRead === received;
    received = socket.bytesRead;
    if (!isQuiet) return;
    webSocket.ping();
    if (!webSocket.isPaused) deadline = setTimeout(giveUp, timeoutMs).unref();
  };
  webSocket.on('pong', calm);
  webSocket.on('message', calm);
  const timer = setInterval(probe, intervalMs).unref();
  return () => {
    clearInterval(timer);
    clearTimeout(deadline);
  };
}
