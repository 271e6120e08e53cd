import { expect, test } from 'vitest';
import { type FinishedSpan, Tracer } from '../tracing/index.ts';
import { kubeRequestSpans } from './index.ts';

test('requests to the API server are told without queries, bodies, and paths that are none of resources', () => {
  const spans: FinishedSpan[] = [];
  const tracer = new Tracer({ finished: (span) => void spans.push(span) });
  const observe = kubeRequestSpans(tracer);
  const made = { seconds: 2, waitedSeconds: 0 };
  const parent = tracer.start('parent', { kind: 'internal' });
  tracer.within(parent, () =>
    observe({
      method: 'PATCH',
      path: '/apis/argoproj.io/v1alpha1/namespaces/a/applications/b/status',
      status: 409,
      ...made,
    }),
  );
  observe({ method: 'GET', path: '/login/secret', status: 200, ...made });
  observe({ method: 'x'.repeat(1_000), path: `/api/v1/namespaces/a/pods/${'b'.repeat(253)}`, status: 0, ...made });
  expect(spans).toMatchObject([
    {
      name: 'PATCH applications/status',
      kind: 'client',
      parentId: parent.context.spanId,
      attributes: {
        'http.request.method': 'PATCH',
        'http.response.status_code': 409,
        'k8s.resource.group': 'argoproj.io',
        'k8s.resource.type': 'applications/status',
        'k8s.resource.namespace': 'a',
        'k8s.resource.name': 'b',
      },
      error: 'HTTP status 409',
    },
    { name: 'GET', parentId: undefined, error: undefined },
    { name: 'OTHER pods', error: 'no answer of the API server' },
  ]);
  expect(spans.every(({ start, end }) => end - start >= 1_900_000_000n)).toBe(true);
  expect(spans[1]?.attributes).toEqual({ 'http.request.method': 'GET', 'http.response.status_code': 200 });
});
