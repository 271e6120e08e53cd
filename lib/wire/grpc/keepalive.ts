import type { Http2Session } from 'node:http2';

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
