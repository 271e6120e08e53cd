import { constants, type ServerHttp2Session } from 'node:http2';

/** Pings that come too early before a connection is cut off, as in grpc-go. */
const maxStrikes = 2;
/** grpc-go's interval for connections without a call. */
const withoutCallsMs = 2 * 60 * 60 * 1000;
/** Where no interval is configured only floods are stopped: 5 minutes, as in grpc-go, would cut off usual settings of agents. */
const defaultMinIntervalMs = 1000;
/** More than answers to pings and window updates come to between two pings: part of a message is on its way. */
const dataBytes = 1024;

/**
 * Cuts a client off that pings more often than once in `minIntervalMs`, by GOAWAY `ENHANCE_YOUR_CALM` with
 * `too_many_pings`: grpc-go's policy, which argocd-agent's `--keepalive-min-interval` sets. The count starts anew
 * whenever the server has sent something (`written`, or part of a long message), so pings that grpc-go sends to measure a
 * connection do not count.
 */
export function watchPings(
  session: ServerHttp2Session,
  minIntervalMs: number | undefined,
  tooMany: () => void,
): { written(): void } {
  let strikes = 0;
  let hasWritten = false;
  let sentBytes = 0;
  let calls = 0;
  let last = Number.NEGATIVE_INFINITY;
  session.on('stream', (stream) => {
    calls++;
    stream.once('close', () => calls--);
  });
  const pinged = () => {
    const now = performance.now();
    const since = now - last;
    last = now;
    const { bytesWritten } = session.socket;
    const isSending = bytesWritten - sentBytes > dataBytes;
    sentBytes = bytesWritten;
    if (hasWritten || isSending) {
      hasWritten = false;
      strikes = 0;
      return;
    }
    const isPatient = minIntervalMs === undefined || calls > 0;
    if (since < (isPatient ? (minIntervalMs ?? defaultMinIntervalMs) : withoutCallsMs)) {
      strikes++;
    }
    if (strikes <= maxStrikes || session.destroyed) {
      return;
    }
    // What it had sent before it is cut off is still read.
    session.off('ping', pinged);
    tooMany();
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings'));
    setImmediate(() => session.destroy());
  };
  session.on('ping', pinged);
  return {
    written() {
      hasWritten = true;
    },
  };
}
