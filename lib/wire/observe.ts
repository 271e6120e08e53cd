import type { Span, SpanContext, Tracer } from '../tracing/index.ts';
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

/** Starts the span of a call, with the names of OpenTelemetry. Undefined for an unknown method: see {@link observeCall}. */
export function callSpan(
  tracer: Tracer | undefined,
  path: string,
  kind: 'client' | 'server',
  parent: SpanContext | undefined,
): Span | undefined {
  if (tracer === undefined || !types.has(path)) {
    return undefined;
  }
  const [, service = '', method = ''] = path.split('/');
  const attributes = { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method };
  return tracer.start(path.slice(1), { kind, parent, attributes });
}

/**
 * Calls `called` now, at each message and at the end of a call, and ends the call's span with it. Unknown methods are left
 * out: clients could invent any number.
 */
export function observeCall(
  call: { observe(observer: CallObserver): void },
  path: string,
  called: (call: ObservedCall) => void = () => undefined,
  span?: Span,
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
      const name = codeName(code);
      called({ service, method, type, ended: { code: name, seconds: (performance.now() - began) / 1000 } });
      // A call that somebody gave up has not failed: streams end so.
      const isGood = code === grpcStatus.ok || code === grpcStatus.canceled;
      span?.end(isGood ? undefined : name, { 'rpc.grpc.status_code': code });
    },
  });
}

/** A status as Go names it: `OK`, `InvalidArgument`. */
function codeName(code: GrpcStatusCode): string {
  const [name = 'unknown'] = Object.entries(grpcStatus).find(([, known]) => known === code) ?? [];
  return name === 'ok' ? 'OK' : name.charAt(0).toUpperCase() + name.slice(1);
}
