import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Network, startNetwork } from '../e2e/network/index.ts';
import { application, namespace, type Pair, type Program, pairApplications, startPair } from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';
import { leases } from '../lib/kube/index.ts';

// Two principals of one hub, as processes, with a real agent that reaches either of them through one address.

const args = ['--enable-replicas', '--agent-disconnect-grace-period=2s'];

let pair: Pair;
let second: { program: Program; port: number; metricsPort: number };
let service: Network;
/** Where the Service sends new connections. */
let target = 0;

const logs = () => ({
  details: () => [pair.principal, second.program, pair.agent].map(({ output }) => output.slice(-4_000)).join('\n---\n'),
});

beforeAll(async () => {
  service = await startNetwork(() => (target === 0 ? undefined : { host: '127.0.0.1', port: target }));
  pair = await startPair({ principal: { args }, idle: true, agent: { server: service.port } });
  second = await pair.newPrincipal({ args });
  target = pair.principalPort;
  pair.principal.start();
  second.program.start();
  await Promise.all([pair.principal, second.program].map((one) => one.says(/principal serves agents/)));
  pair.agent.start();
  await pair.principal.says(/An agent is connected/);
});
afterAll(async () => {
  await pair?.stop();
  await service?.close();
});

const key = (name: string) => ({ namespace, name });
const lease = () => pair.hub.client.get(leases, { namespace, name: `argocd-agent-${pair.name}` });
const holder = async () => (await lease())?.spec?.holderIdentity ?? '';

async function identityOf(program: Program): Promise<string> {
  return (await program.says(/this replica is alive.*?replica=(\S+)/))[1] ?? '';
}

/** An Application made on the hub reaches the cluster, and its status comes back. */
async function worksWith(name: string): Promise<void> {
  const { hub, managed } = pair;
  await hub.client.create(pairApplications, application({ name, namespace: pair.name }));
  await until(`copy ${name}`, () => managed.client.get(pairApplications, key(name)), logs());
  await managed.client.mergePatch(pairApplications, key(name), { status: { sync: { status: 'Synced' } } });
  await until(
    `status of ${name}`,
    async () => (await hub.client.get(pairApplications, { namespace: pair.name, name }))?.status?.sync,
    logs(),
  );
}

test('an agent that moves to another replica is handed over in no time, and goes on there', async () => {
  await worksWith('one');
  const first = await holder();
  expect(first).toBe(await identityOf(pair.principal));
  target = second.port;
  const after = second.program.output.length;
  service.cut();
  await second.program.says(/An agent is connected/, { after });
  await until('the other one holds it', async () => ![first, ''].includes(await holder()), logs());
  await worksWith('two');
});

test('an agent that has a second connection is handed over by its live holder', async () => {
  const before = await holder();
  const after = pair.principal.output.length;
  // The first process keeps its connection, as far as it knows, and cannot make another one.
  target = 0;
  const other = await pair.otherAgent();
  other.start();
  await second.program.says(/handed over to another replica/);
  await pair.principal.says(/An agent is connected/, { after });
  await pair.agent.stop('SIGKILL');
  await until('it is handed over', async () => ![before, ''].includes(await holder()), logs());
  expect((await lease())?.metadata.annotations?.['argocd-agent.argoproj-labs.io/connected']).toBe('true');
  await worksWith('three');
  await other.stop('SIGKILL');
  target = pair.principalPort;
  const again = pair.principal.output.length;
  pair.agent.start();
  await pair.principal.says(/An agent is connected/, { after: again });
  await until('it is held again', async () => (await holder()) === (await identityOf(pair.principal)), logs());
});

test('the agent of a replica that is killed is served by another one within seconds', async () => {
  const before = await holder();
  target = second.port;
  const at = performance.now();
  await pair.principal.stop('SIGKILL');
  service.cut();
  await until('another one holds it', async () => ![before, ''].includes(await holder()), logs());
  const ms = performance.now() - at;
  console.log(`taken over after ${Math.round(ms)} ms`);
  expect(ms).toBeLessThan(15_000);
  await worksWith('four');
  await second.program.says(/was deposed/);
});

test('a clean end frees the agent at once; what is to be done for one that is away is done by the one that is left', async () => {
  const after = pair.principal.output.length;
  pair.principal.start();
  await pair.principal.says(/principal serves agents/, { after });
  target = pair.principalPort;
  const before = await holder();
  const at = performance.now();
  const stopped = second.program.stop();
  await until('the other one holds it', async () => ![before, ''].includes(await holder()), logs());
  console.log(`taken over after ${Math.round(performance.now() - at)} ms`);
  await stopped;
  await worksWith('five');
  await pair.agent.stop('SIGKILL');
  await until(
    'its Applications say that it is away',
    async () => {
      const found = await pair.hub.client.get(pairApplications, { namespace: pair.name, name: 'five' });
      const conditions = (found?.status?.conditions ?? []) as { type: string }[];
      return conditions.some(({ type }) => type === 'AgentDisconnectedWarning');
    },
    logs(),
  );
});
