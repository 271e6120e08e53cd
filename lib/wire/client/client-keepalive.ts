import { tooManyPings } from '../grpc/client/client.ts';
import type { KeepaliveTiming } from '../grpc/keepalive.ts';

/** grpc-go's lower bound for pings. */
const minPingIntervalMs = 10_000;
/** Half of grpc-go's, because any received data counts as an answer. */
const pingTimeoutMs = 10_000;
/**
 * Idle connections are left to TCP keep-alive; one that swallows what we send is pinged, as rarely as originals allow: once
 * in 5 minutes.
 */
const onSuspicion: KeepaliveTiming = {
  intervalMs: 10_000,
  timeoutMs: pingTimeoutMs,
  onSuspicionEveryMs: 5 * 60_000 + 5000,
};
/** Proxies close WebSockets on which nothing passes, many after a minute; no principal minds pings there. */
const overWebSocket: KeepaliveTiming = { intervalMs: 15_000, timeoutMs: pingTimeoutMs };

/**
 * When an agent pings.
 *
 * @param intervalMs the value of `--keep-alive-ping-interval`; 0 for none
 * @param factor how much rarer it has to be, since principals have complained
 */
export function clientKeepalive(
  transport: 'grpc' | 'websocket',
  { intervalMs, factor }: { readonly intervalMs: number; readonly factor: number },
): KeepaliveTiming {
  if (intervalMs > 0) {
    return { intervalMs: Math.max(intervalMs, minPingIntervalMs) * factor, timeoutMs: pingTimeoutMs };
  }
  return transport === 'websocket' ? overWebSocket : onSuspicion;
}

/** The factor after a connection that ended with `failure`: doubled when the principal complained, as grpc-go does. */
export function factorAfter(failure: Error | undefined, factor: number): number {
  const isComplaint = failure !== undefined && 'code' in failure && failure.code === tooManyPings;
  return isComplaint ? factor * 2 : factor;
}
