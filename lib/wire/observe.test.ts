import { afterEach, expect, test } from 'vitest';
import { playAgent, playPrincipal, wirePeer } from '../../e2e/peer/index.ts';
import { until } from '../base/testing.ts';
import { type FinishedSpan, Tracer } from '../tracing/index.ts';
import { agentSource, heartbeatEvent, type ObservedCall } from './index.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

/** The observations, as `method: begun, sent, received, status codes`. */
function tally(calls: readonly ObservedCall[]): Record<string, [number, number, number, string]> {
  const result: Record<string, [number, number, number, string]> = {};
  for (const { method, message, ended } of calls) {
    const row = result[method] ?? [0, 0, 0, ''];
    result[method] = row;
    if (ended !== undefined) {
      row[3] += ended.code;
    } else if (message === 'sent') {
      row[1]++;
    } else if (message === 'received') {
      row[2]++;
    } else {
      row[0]++;
    }
  }
  return result;
}

/** The spans of one side. */
function traced() {
  const spans: FinishedSpan[] = [];
  return { spans, tracer: new Tracer({ finished: (span) => void spans.push(span) }) };
}

test.each(['grpc', 'websocket'] as const)(
  'both sides count and trace the same calls and messages (%s)',
  async (transport) => {
    const [atServer, atClient]: ObservedCall[][] = [[], []];
    const [hub, cluster] = [traced(), traced()];
    const principal = await playPrincipal({
      webSocket: true,
      peer: () => wirePeer('principal'),
      called: (call) => atServer?.push(call),
      tracer: hub.tracer,
    });
    stops.push(principal.close);
    let answers = 0;
    const agent = playAgent(principal.port, {
      transport,
      onConnected: (stream) => {
        for (let count = 0; count < 3; count++) {
          stream.send(heartbeatEvent({ source: agentSource }));
        }
        return { event: () => answers++, closed: () => undefined };
      },
      called: (call) => atClient?.push(call),
      tracer: cluster.tracer,
    });
    stops.push(agent.stop);
    await until(() => answers === 3);
    await agent.stop();
    await until(() => Boolean(atServer?.some(({ method, ended }) => method === 'Subscribe' && ended)));
    expect(tally(atServer ?? [])).toEqual({ Authenticate: [1, 1, 1, 'OK'], Subscribe: [1, 3, 3, 'Canceled'] });
    expect(tally(atClient ?? [])).toEqual({ Authenticate: [1, 1, 1, 'OK'], Subscribe: [1, 3, 3, 'Canceled'] });
    for (const method of ['authapi.Authentication/Authenticate', 'eventstreamapi.EventStream/Subscribe']) {
      const [made, served] = [cluster, hub].map(({ spans }) => spans.find(({ name }) => name === method));
      const code = method.endsWith('Subscribe') ? 1 : 0;
      expect(made).toMatchObject({ kind: 'client', error: undefined, attributes: { 'rpc.grpc.status_code': code } });
      expect(served).toMatchObject({
        kind: 'server',
        parentId: made?.context.spanId,
        context: { traceId: made?.context.traceId },
        attributes: { 'rpc.system': 'grpc', 'rpc.grpc.status_code': code },
      });
    }
  },
);
