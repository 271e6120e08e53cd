import { execFile } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { events } from '../../lib/kube/index.ts';
import { namespace, type Pair, startPair } from '../pair/index.ts';
import { programCommand } from '../programs/index.ts';
import { type Network, startNetwork } from './index.ts';

// An agent behind a proxy that closes connections that are idle.

let pair: Pair;
let network: Network;
beforeAll(async () => {
  pair = await startPair();
  network = await startNetwork(() => ({ host: '127.0.0.1', port: pair.principalPort }));
});
afterAll(async () => {
  await network?.close();
  await pair?.stop();
});

/** What doctor finds on the hub, in its order. */
function findings(): Promise<{ readonly id: string; readonly cluster: string; readonly what: string }[]> {
  const [node, tool] = programCommand('argocd-agentctl');
  const args = ['doctor', pair.name, '-o', 'json', '--kubeconfig', pair.hub.kubeconfig, '--namespace', namespace];
  return new Promise((resolve, reject) => {
    // It exits with 1 when it finds something.
    execFile(node, [tool, ...args], { env: { PATH: process.env.PATH, HOME: '/nonexistent' } }, (_, out, err) =>
      out === '' ? reject(new Error(err)) : resolve(JSON.parse(out).findings),
    );
  });
}

test('the principal says that connections end again and again, and doctor finds it', async () => {
  expect((await findings()).map(({ id }) => id)).not.toContain('connection-unsteady');
  await pair.agent.stop();
  network.closeIdle(500);
  const agent = await pair.otherAgent({ server: network.port });
  agent.start();
  const said = await until(
    'the Event',
    async () =>
      (await pair.hub.client.list(events, { namespace })).find(({ reason }) => reason === 'AgentConnectionUnsteady'),
    { details: () => `${network.accepted} connections\n${agent.output.slice(-3_000)}` },
  );
  expect(said.note).toMatch(
    new RegExp(
      `^Agent ${pair.name} lost 5 connections after \\d+( to \\d+)? s: something on the way closes connections`,
    ),
  );
  const found = (await findings()).find(({ id }) => id === 'connection-unsteady');
  expect(found).toMatchObject({ cluster: pair.name, what: said.note });
}, 300_000);
