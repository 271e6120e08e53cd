import { afterAll, beforeAll, expect, test } from 'vitest';
import { application, metricsNow, namespace, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';

let pair: Pair;
const autonomous = 'edge';
const logs = () => ({
  details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}`,
});

beforeAll(async () => {
  pair = await startPair({ principal: { args: ['--agent-disconnect-grace-period=2s'] } });
});
afterAll(() => pair?.stop());

const onHub = (name: string, from = pair.name) => pair.hub.client.get(pairApplications, { namespace: from, name });

async function told(name: string, from = pair.name): Promise<string | undefined> {
  const all = ((await onHub(name, from))?.status?.conditions ?? []) as { type: string; message: string }[];
  return all.find(({ type }) => type === 'AgentDisconnectedWarning')?.message;
}

async function metric(name: string): Promise<string | undefined> {
  const text = await metricsNow(pair.principalMetricsPort).catch(() => undefined);
  return text
    ?.split('\n')
    .find((line) => line.startsWith(`${name} `))
    ?.slice(name.length + 1);
}

test('Applications of an agent that is away say so, over restarts of the principal, until it is back', async () => {
  const { hub, managed, principal, agent, name } = pair;
  await hub.client.create(pairApplications, application({ name: 'shop', namespace: name }));
  const key = { namespace, name: 'shop' };
  await until('the copy is made', () => managed.client.get(pairApplications, key), logs());
  await managed.client.mergePatch(pairApplications, key, { status: { sync: { status: 'Synced' } } });
  await until('its status is on the hub', async () => (await onHub('shop'))?.status?.sync, logs());

  await agent.stop('SIGKILL');
  const said = await until('it says that the agent is away', () => told('shop'), logs());
  expect(said).toMatch(
    new RegExp(`^agent ${name} has not been connected since [-0-9]{10}T[:0-9]{8}Z: what is shown here`),
  );
  expect((await onHub('shop'))?.status?.sync, 'the rest of the status stays').toEqual({ status: 'Synced' });
  const series = `argocd_principal_disconnected_agent_applications{agent_name="${name}"}`;
  expect([await metric('argocd_principal_disconnected_agents'), await metric(series)]).toEqual(['1', '1']);

  const { resourceVersion } = (await onHub('shop'))?.metadata ?? {};
  await principal.stop();
  principal.start();
  await until('the new process knows it', async () => (await metric(series)) === '1', logs());
  await hub.client.create(pairApplications, application({ name: 'late', namespace: name }));
  await until('a new Application says it too', async () => (await told('late')) === said, logs());
  expect((await onHub('shop'))?.metadata.resourceVersion, 'what was said has not been written again').toBe(
    resourceVersion,
  );

  agent.start();
  for (const one of ['shop', 'late']) {
    await until(`${one} says nothing any more`, async () => (await told(one)) === undefined, logs());
  }
  expect((await onHub('shop'))?.status?.sync).toEqual({ status: 'Synced' });
  expect(await metric('argocd_principal_disconnected_agents')).toBe('0');
  expect(
    (await managed.client.get(pairApplications, key))?.status?.conditions,
    'nothing of it is sent',
  ).toBeUndefined();
});

test('mirrors of an autonomous agent that is away say so too', async () => {
  const { cluster, agent } = await pair.addAgent({ name: autonomous, mode: 'autonomous' });
  const own = application({
    name: 'shop',
    namespace,
    spec: { destination: { name: 'in-cluster', namespace: 'shop' } },
  });
  await cluster.client.create(pairApplications, own);
  await until('the mirror is made', () => onHub('shop', autonomous), logs());
  await agent.stop('SIGKILL');
  await until(
    'it says that the agent is away',
    async () => (await told('shop', autonomous))?.startsWith(`agent ${autonomous} has not been connected since`),
    logs(),
  );
  agent.start();
  await until('it says nothing any more', async () => (await told('shop', autonomous)) === undefined, logs());
});
