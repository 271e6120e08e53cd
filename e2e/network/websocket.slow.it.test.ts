import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { application, namespace, type Pair, pairApplications, startPair } from '../pair/index.ts';

// Principal and agents as processes: one agent over WebSocket, one over HTTP/2 on the same port.

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({
    principal: { args: ['--enable-websocket', '--tls-min-version=tls1.2'] },
    agent: { args: ['--enable-websocket', '--enable-compression'] },
  });
});
afterAll(() => pair?.stop());

const logs = () => ({
  details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}`,
});

test('an Application comes and goes over WebSocket, beside an agent over HTTP/2', async () => {
  const hub = pair.hub.client;
  const other = await pair.addAgent({ name: 'over-http2' });
  for (const [agent, cluster] of [
    [pair.name, pair.managed],
    ['over-http2', other.cluster],
  ] as const) {
    await hub.create(pairApplications, application({ name: 'guestbook', namespace: agent, spec: {} }));
    const copy = () => cluster.client.get(pairApplications, { name: 'guestbook', namespace });
    const there = await until(`the Application is with ${agent}`, copy, logs());
    expect(there.metadata.annotations).toHaveProperty('argocd.argoproj.io/source-uid');
    await hub.delete(pairApplications, { name: 'guestbook', namespace: agent });
    const isGone = async () => (await copy()) === undefined;
    await until(`the Application is gone from ${agent}`, isGone, logs());
  }
}, 300_000);
