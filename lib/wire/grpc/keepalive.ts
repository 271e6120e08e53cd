import type { Http2Session } from 'node:http2';
import type { WebSocket } from 'ws';
import { every } from '../../base/index.ts';

/** When a quiet connection is probed. */
export interface KeepaliveTiming {
  /** Longest silence after which a ping is sent; it may come up to a fifth earlier. */
  readonly intervalMs: number;
  /** Time limit of the answer. Any received data counts as one. */
  readonly timeoutMs: number;
  /**
   * Pings only when something was sent since the last sign of the peer, and not more often than this. A server of the
   * original disconnects clients that ping more than once in 5 minutes, unless configured otherwise. A server that pings by
   * itself is not an original: it is pinged after a silence of twice `intervalMs`, which means that something is wrong.
   */
  readonly onSuspicionEveryMs?: number;
}

/** How often in each interval it is looked whether something came. */
const looksPerInterval = 5;

/** How long nothing came, by looks at a count of received bytes. */
class Silence {
  #bytes: number;
  #lookedAt = performance.now();
  #since = this.#lookedAt;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  /** Looks. Returns whether something came since the last look. */
  look(bytes: number): boolean {
    const hasCome = bytes !== this.#bytes;
    // It may have come right after the last look: no silence is to last longer than it seems.
    if (hasCome) {
      this.#since = this.#lookedAt;
    }
    this.#bytes = bytes;
    this.#lookedAt = performance.now();
    return hasCome;
  }

  /** Milliseconds, up to the time between two looks too many. */
  get lastsMs(): number {
    return this.#lookedAt - this.#since;
  }
}

/** Calls `silent` after `timeoutMs` unless something came until then. Returns the way to stop. */
function expectBytes(count: () => number, timeoutMs: number, outcome: { silent(): void; heard(): void }): () => void {
  const before = count();
  let immediate: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    // A program that was busy must first read the data that arrived in the meantime.
    immediate = setImmediate(() => (count() === before ? outcome.silent() : outcome.heard()));
  }, timeoutMs).unref();
  return () => {
    clearTimeout(timer);
    clearImmediate(immediate);
  };
}

/**
 * Watches a connection: when nothing was received for `intervalMs` it is pinged, and destroyed when nothing comes for another
 * `timeoutMs`; so a peer that is gone is noticed after the sum of both at the latest. Returns the way to stop.
 */
export function watchSession(session: Http2Session, timing: KeepaliveTiming, dead: () => void): () => void {
  const { intervalMs, timeoutMs, onSuspicionEveryMs } = timing;
  const silence = new Silence(session.socket.bytesRead);
  let written = 0;
  let answered = 0;
  let pingedAt = Number.NEGATIVE_INFINITY;
  let doesPeerPing = false;
  let calm: (() => void) | undefined;
  session.on('ping', () => {
    doesPeerPing = true;
  });
  const heard = () => {
    calm?.();
    calm = undefined;
  };
  const isSuspicious = (now: number): boolean => {
    if (onSuspicionEveryMs === undefined) {
      return true;
    }
    if (doesPeerPing && silence.lastsMs >= 2 * intervalMs) {
      return true;
    }
    return written !== answered && now - pingedAt >= onSuspicionEveryMs;
  };
  const look = () => {
    if (session.destroyed || session.closed) {
      return;
    }
    const { bytesRead, bytesWritten } = session.socket;
    // Data written since the last check may have followed the peer's last data: it counts as unanswered.
    if (silence.look(bytesRead)) {
      answered = written;
    }
    written = bytesWritten;
    const now = performance.now();
    if (calm !== undefined || silence.lastsMs < intervalMs || now - pingedAt < intervalMs) {
      return;
    }
    if (!isSuspicious(now)) {
      return;
    }
    pingedAt = now;
    calm = expectBytes(() => (session.destroyed ? Number.NaN : session.socket.bytesRead), timeoutMs, {
      silent() {
        dead();
        session.destroy(new Error(`no answer to a ping within ${timeoutMs} ms`));
      },
      heard,
    });
    session.ping(() => {
      heard();
      if (session.destroyed) {
        return;
      }
      silence.look(session.socket.bytesRead);
      written = session.socket.bytesWritten;
      answered = written;
    });
  };
  const end = every(intervalMs / looksPerInterval, look, { unref: true });
  return () => {
    end();
    heard();
  };
}

/**
 * Watches a WebSocket in the same way, with ping frames: proxies close connections on which nothing passes. While we do not
 * read from it the answer cannot be seen and is not waited for; a dead peer is then detected by unsent data.
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
  const silence = new Silence(socket.bytesRead);
  let pingedAt = Number.NEGATIVE_INFINITY;
  let calm: (() => void) | undefined;
  const heard = () => {
    calm?.();
    calm = undefined;
  };
  const look = () => {
    silence.look(socket.bytesRead);
    const now = performance.now();
    if (webSocket.readyState !== webSocket.OPEN || calm !== undefined) {
      return;
    }
    if (silence.lastsMs < intervalMs || now - pingedAt < intervalMs) {
      return;
    }
    pingedAt = now;
    webSocket.ping();
    if (webSocket.isPaused) {
      return;
    }
    calm = expectBytes(() => socket.bytesRead, timeoutMs, {
      silent() {
        heard();
        if (webSocket.isPaused) {
          return;
        }
        dead();
        webSocket.terminate();
      },
      heard,
    });
  };
  webSocket.on('pong', heard);
  webSocket.on('message', heard);
  const end = every(intervalMs / looksPerInterval, look, { unref: true });
  return () => {
    end();
    heard();
  };
}
