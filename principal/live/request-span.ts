import type { IncomingMessage } from 'node:http';
import { kubernetesRequest } from '../../lib/bridge/index.ts';
import { parseTraceparent, type Tracer } from '../../lib/tracing/index.ts';

/** The trace of a request for the API of an agent's cluster. */
export interface RequestSpan {
  /** Does work for the request. */
  within<T>(work: () => T): T;
  /** The request has ended with this status; the agent is empty for a caller who was refused. */
  end(code: number, agent: string): void;
}

/** The span of a request, under the caller's if it names one. Without a tracer nothing is recorded. */
export function requestSpan(tracer: Tracer | undefined, request: IncomingMessage): RequestSpan {
  if (tracer === undefined) {
    return { within: (work) => work(), end: () => undefined };
  }
  const { method = '', url = '', headers } = request;
  const [path = ''] = url.split('?', 1);
  const { name, attributes } = kubernetesRequest(method, path);
  const [parent, state] = [headers.traceparent, headers.tracestate].map((value) => value?.toString());
  const span = tracer.start(`resource-proxy ${name}`, {
    kind: 'server',
    parent: parseTraceparent(parent, state),
    attributes,
  });
  return {
    within: (work) => tracer.within(span, work),
    end: (code, agent) =>
      span.end(code < 400 ? undefined : `HTTP status ${code}`, {
        'http.response.status_code': code,
        ...(agent === '' ? {} : { 'argocd.agent.name': agent }),
      }),
  };
}
