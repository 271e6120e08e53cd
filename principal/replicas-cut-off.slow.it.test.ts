import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Network, startNetwork } from '../e2e/network/index.ts';
import {
  application,
  freePort,
  namespace,
  type Pair,
  type Program,
  pairApplications,
  startApiWay,
  startPair,
} from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';
import { leases } from '../lib/kube/index.ts';

// Two principals of one hub; the first reaches the API server through a network that fails.

let pair: Pair;
let first: { program: Program; port: number };
let second: { program: Program; port: number };
let service: Network;
let way: Network;
let target = 0;

const logs = () => ({
  details: () => [first.program, second.program, pair.agent].map(({ output }) => output.slice(-4_000)).join('\n---\n'),
});

beforeAll(async () => {
  service = await startNetwork(() => ({ host: '127.0.0.1', port: target }));
  pair = await startPair({ idle: true, agent: { server: service.port } });
  const api = await startApiWay(pair.hub);
  way = api.way;
  first = await pair.newPrincipal({ replica: { listen: await freePort() }, kubeconfig: api.kubeconfig });
  second = await pair.newPrincipal({ replica: { listen: await freePort() } });
  target = first.port;
  first.program.start();
  second.program.start();
  await Promise.all([first, second].map(({ program }) => program.says(/principal serves agents/)));
  pair.agent.start();
  await first.program.says(/An agent is connected/);
});
afterAll(async () => {
  await pair?.stop();
  await Promise.all([service?.close(), way?.close()]);
});

const holder = async () =>
  (await pair.hub.client.get(leases, { namespace, name: `argocd-agent-${pair.name}` }))?.spec?.holderIdentity ?? '';
const onHub = (name: string) => pair.hub.client.get(pairApplications, { namespace: pair.name, name });
const report = (name: string, message: string) =>
  pair.managed.client.mergePatch(
    pairApplications,
    { namespace, name },
    { status: { health: { status: 'Healthy', message } } },
  );
const shown = async (name: string) =>
  ((await onHub(name))?.status?.health as { message?: string } | undefined)?.message;

test('a replica that is cut off from the API server writes nothing any more when another one has taken over', async () => {
  const { hub, managed } = pair;
  await hub.client.create(pairApplications, application({ name: 'shop', namespace: pair.name }));
  await until('the copy', () => managed.client.get(pairApplications, { namespace, name: 'shop' }), logs());
  await report('shop', 'before');
  await until('its report', async () => (await shown('shop')) === 'before', logs());
  const former = await holder();

  way.blackHole();
  await first.program.says(/cannot renew its Lease: it writes nothing until it can/);
  // The agent still reaches the one that is cut off, and reports to it.
  await report('shop', 'while cut off');
  await second.program.says(/has not renewed its Lease and was deposed/);
  const at = performance.now();
  await first.program.says(/is cut off from the API server and sends its agents away.* isDeposed=true/);
  await first.program.says(/An agent is refused: this principal is cut off from its hub/);
  target = second.port;
  await until('another one holds it', async () => ![former, ''].includes(await holder()), logs());
  console.log(`taken over ${Math.round(performance.now() - at)} ms after it was deposed`);
  await until('what was reported meanwhile is there', async () => (await shown('shop')) === 'while cut off', logs());
  await report('shop', 'after');
  await until('the other one writes', async () => (await shown('shop')) === 'after', logs());
  const { resourceVersion } = (await onHub('shop'))?.metadata ?? {};

  const said = first.program.output.length;
  way.heal();
  await first.program.says(/this replica was deposed and begins anew/, { after: said });
  await first.program.says(/this replica is alive/, { after: said });
  expect((await onHub('shop'))?.metadata.resourceVersion, 'nothing was written by the one that came back').toBe(
    resourceVersion,
  );
  await until('there are two again', async () => {
    const live = (await hub.client.list(leases, { namespace })).filter(
      ({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === 'replica',
    );
    return live.length === 2;
  });
});

test('it takes agents again', async () => {
  const before = await holder();
  target = first.port;
  service.cut();
  await until('it holds the agent', async () => ![before, ''].includes(await holder()), logs());
  await report('shop', 'again');
  await until('it writes', async () => (await shown('shop')) === 'again', logs());
});

test('a replica whose watches hang does not serve an agent before it knows what the last one knew', async () => {
  const { hub, managed } = pair;
  const before = await holder();
  target = second.port;
  service.cut();
  await until('the other one holds the agent', async () => ![before, ''].includes(await holder()), logs());
  const holding = await holder();
  // The connections that the first one has are dead, and it has not noticed. New ones work.
  way.blackHole();
  way.heal();
  await hub.client.create(pairApplications, application({ name: 'fresh', namespace: pair.name }));
  const copyOf = (name: string) => managed.client.get(pairApplications, { namespace, name });
  const copy = await until('its copy', () => copyOf('fresh'), logs());
  target = first.port;
  await second.program.stop('SIGTERM');
  await until('the first one holds it', async () => ![holding, ''].includes(await holder()), logs());
  await hub.client.create(pairApplications, application({ name: 'later', namespace: pair.name }));
  await until('the next copy', () => copyOf('later'), logs());
  expect((await copyOf('fresh'))?.metadata.uid, 'the copy was not deleted and made again').toBe(copy.metadata.uid);
});
