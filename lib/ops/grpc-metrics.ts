import type { Registry } from 'prom-client';
import { instruments } from './instruments.ts';

/** A gRPC call that has begun, passed a message, or ended with a status as Go names it. */
interface Call {
  readonly service: string;
  readonly method: string;
  readonly type: string;
  readonly message?: 'received' | 'sent';
  readonly ended?: { readonly code: string; readonly seconds: number };
}

/** Counts and times gRPC calls, under the names of go-grpc-middleware. */
export function grpcMetrics(registry: Registry, side: 'server' | 'client'): (call: Call) => void {
  const register = instruments(registry);
  const labelNames = ['grpc_type', 'grpc_service', 'grpc_method'];
  const counter = (name: string, help: string, more: string[] = []) =>
    register.counter(`grpc_${side}_${name}`, help, [...labelNames, ...more]);
  const started = counter('started_total', 'gRPC calls that started');
  const handled = counter('handled_total', 'gRPC calls that ended, by status code', ['grpc_code']);
  const messages = {
    received: counter('msg_received_total', 'Messages received in gRPC calls'),
    sent: counter('msg_sent_total', 'Messages sent in gRPC calls'),
  };
  const handling = register.histogram(
    `grpc_${side}_handling_seconds`,
    'Duration of gRPC calls in seconds; an event stream is one call',
    labelNames,
  );
  return ({ service, method, type, message, ended }) => {
    const labels = { grpc_type: type, grpc_service: service, grpc_method: method };
    if (message !== undefined) {
      messages[message].inc(labels);
    } else if (ended === undefined) {
      started.inc(labels);
    } else {
      handled.inc({ ...labels, grpc_code: ended.code });
      handling.observe(labels, ended.seconds);
    }
  };
}
