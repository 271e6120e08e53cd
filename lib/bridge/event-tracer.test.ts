import { expect, test } from 'vitest';
import { type FinishedSpan, parseTraceparent, Tracer } from '../tracing/index.ts';
import { acknowledgement, eventTypes, objectEvent, targets, type WireEvent } from '../wire/index.ts';
import { EventTracer } from './index.ts';

function side(name: string) {
  const spans: FinishedSpan[] = [];
  const tracer = new Tracer({ finished: (span) => void spans.push(span) });
  return { spans, events: new EventTracer(tracer, { 'argocd.component.type': name }) };
}

const application = (type: string = eventTypes.create): WireEvent =>
  objectEvent(
    targets.application,
    type,
    { metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '7' } },
    { source: '' },
  );

test('what the peer does about an event belongs to the trace of who sent it', () => {
  const [hub, agent] = [side('principal'), side('agent')];
  const sent = hub.events.outgoing(application());
  agent.events.received(sent);
  const answer = acknowledgement(sent, '');
  agent.events.sent(answer);
  hub.events.received(answer);
  const [made] = hub.spans;
  const [taken] = agent.spans;
  expect(made).toMatchObject({
    name: 'Application.create',
    parentId: undefined,
    attributes: {
      'argocd.component.type': 'principal',
      'argocd.event.target': 'application',
      'k8s.resource.kind': 'Application',
      'k8s.resource.name': 'shop/web',
      'k8s.resource.uid': 'web_u',
    },
  });
  expect(taken).toMatchObject({
    name: `application.${eventTypes.create}`,
    context: { traceId: made?.context.traceId },
    parentId: made?.context.spanId,
    error: undefined,
  });
});

test('a repetition keeps its span, a peer that does not trace costs nothing, a failure shows', () => {
  const hub = side('principal');
  const first = hub.events.outgoing(application());
  expect(hub.events.outgoing(application()).extensions).toEqual(first.extensions);
  expect(parseTraceparent(first.extensions.traceparent)).toBeDefined();
  const agent = side('agent');
  const plain = application(eventTypes.specUpdate);
  agent.events.received(plain);
  agent.events.received(plain);
  agent.events.failed(plain, 'cannot be read');
  agent.events.sent(acknowledgement(plain, ''));
  expect(agent.spans).toMatchObject([{ parentId: undefined, error: 'cannot be read' }]);
});

test('what an event asks for is done as part of its span; requests for live data have spans of their own', () => {
  const spans: FinishedSpan[] = [];
  const tracer = new Tracer({ finished: (span) => void spans.push(span) });
  const events = new EventTracer(tracer, {});
  const event = application();
  events.received(event);
  const found: unknown[] = [];
  events.within(event, () => found.push(tracer.active));
  const live = { ...event, target: targets.redis, eventId: 'live' };
  events.received(live);
  events.within(live, () => found.push(tracer.active));
  events.close();
  expect(spans.map(({ name }) => name)).toEqual([`application.${eventTypes.create}`]);
  expect(found).toEqual([spans[0]?.context, undefined]);
});

test('the end of the connection ends all', () => {
  const hub = side('principal');
  hub.events.outgoing(application());
  hub.events.received(application(eventTypes.statusUpdate));
  hub.events.close();
  expect(hub.spans.map(({ error }) => error)).toEqual(['the connection has ended', 'the connection has ended']);
});
