import type { CallObserver } from './grpc/call-observer.ts';
import { type GrpcStatusCode, grpcStatus } from './grpc/status.ts';
import { paths, replicationPaths } from './methods.ts';

/** A call of a known method that has begun, passed a message, or ended with a gRPC status as Go names it. */
export interface ObservedCall {
  readonly service: string;
  readonly method: string;
  readonly type: 'unary' | 'bidi_stream' | 'client_stream';
  readonly message?: 'received' | 'sent';
  readonly ended?: { readonly code: string; readonly seconds: number };
}

const types = new Map<string, ObservedCall['type']>([
  ...Object.values(paths).map((path): [string, ObservedCall['type']] => [path, 'unary']),
  ...Object.values(replicationPaths).map((path): [string, ObservedCall['type']] => [path, 'unary']),
  [replicationPaths.subscribe, 'bidi_stream'],
  [paths.subscribe, 'bidi_stream'],
  [paths.streamTerminal, 'bidi_stream'],
  [paths.push, 'client_stream'],
  [paths.streamLogs, 'client_stream'],
]);

/**
 * Calls `called` now, at each message and at the end of a call. Unknown methods are left out: clients could invent
 * any number.
 */
export function observeCall(
  call: { observe(observer: CallObserver): void },
  path: string,
  called: (call: ObservedCall) => void,
): void {
  const type = types.get(path);
  const [, service, method] = path.split('/');
  if (type === undefined || service === undefined || method === undefined) {
    return;
  }
  const began = performance.now();
  const received: ObservedCall = { service, method, type, message: 'received' };
  const sent: ObservedCall = { service, method, type, message: 'sent' };
  called({ service, method, type });
  call.observe({
    received: () => called(received),
    sent: () => called(sent),
    over: (code) => {
      called({ service, method, type, ended: { code: codeName(code), seconds: (performance.now() - began) / 1000 } });
    },
  });
}

/** A status as Go names it: `OK`, `InvalidArgument`. */
function codeName(code: GrpcStatusCode): string {
  const [name = 'unknown'] = Object.entries(grpcStatus).find(([, known]) => known === code) ?? [];
  return name === 'ok' ? 'OK' : name.charAt(0).toUpperCase() + name.slice(1);
}
