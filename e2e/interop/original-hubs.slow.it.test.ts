import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { namespaces } from '../../lib/kube/index.ts';
import {
  application,
  mapAgent,
  namesOf,
  namespace,
  type PairedHub,
  pairApplications,
  startTwoHubs,
  type TwoHubs,
  uidsOf,
} from '../pair/index.ts';

// Two hubs, one of them with the real argocd-agent as its principal: it follows, it is followed, and roles change both ways.
// No copy on the cluster is deleted or made again.

const original = process.env.ARGOCD_AGENT_BIN || undefined;
const patient = { timeoutMs: 120_000 };

describe.each([
  { hub: 'the second hub is of argocd-agent', originals: { second: original } },
  { hub: 'the first hub is of argocd-agent', originals: { first: original } },
])('$hub', { tags: 'argocd-agent' }, ({ originals }) => {
  let hubs: TwoHubs;

  beforeAll(async () => {
    hubs = await startTwoHubs({ originals });
    await hubs.second.cluster.client.create(namespaces, { metadata: { name: hubs.agentName } });
    if (originals.first !== undefined) {
      // Its principals do not tell each other of agents' cluster Secrets that they have not made themselves.
      await mapAgent(hubs.second.cluster.client, hubs.agentName);
    }
    hubs.first.principal.start();
    await until('the active hub is up', async () => (await hubs.first.admin.status()).state === 'active', patient);
    hubs.second.principal.start();
    hubs.agent.start();
  }, 300_000);
  afterAll(() => hubs?.stop());

  const logs = () => ({
    ...patient,
    details: () =>
      [hubs.first.principal, hubs.second.principal, hubs.agent]
        .map(({ output }) => output.slice(-4_000))
        .join('\n---\n'),
  });
  const appsOf = ({ cluster }: PairedHub) => cluster.client.list(pairApplications, { namespace: hubs.agentName });
  const copies = () => hubs.managed.client.list(pairApplications, { namespace });
  const create = (hub: PairedHub, name: string) =>
    hub.cluster.client.create(pairApplications, application({ name, namespace: hubs.agentName }));
  const remove = (hub: PairedHub, name: string) =>
    hub.cluster.client.delete(pairApplications, { namespace: hubs.agentName, name });
  const reaches = (hub: PairedHub, state: string) =>
    until(`the hub is ${state}`, async () => (await hub.admin.status()).state === state, logs());
  const have = (names: readonly string[]) =>
    until(async () => {
      for (const found of [await appsOf(hubs.first), await appsOf(hubs.second), await copies()]) {
        expect(namesOf(found)).toEqual([...names].sort());
      }
    }, logs());
  const promote = (hub: PairedHub, force = false) =>
    until(
      'it is promoted',
      async () => {
        const state = await hub.admin.promote(force).catch(() => undefined);
        return state === 'active';
      },
      logs(),
    );

  test('the standby gets what the active hub has, and each change', async () => {
    await create(hubs.first, 'web');
    await reaches(hubs.second, 'replicating');
    await create(hubs.first, 'shop');
    await create(hubs.first, 'brief');
    await have(['web', 'shop', 'brief']);
    const shop = { namespace: hubs.agentName, name: 'shop' };
    const edit = { spec: { source: { targetRevision: 'v2' } } };
    await hubs.first.cluster.client.mergePatch(pairApplications, shop, edit);
    await remove(hubs.first, 'brief');
    await have(['web', 'shop']);
    const isEdited = async () => JSON.stringify((await appsOf(hubs.second)).map(({ spec }) => spec)).includes('"v2"');
    await until('the edit is there', isEdited, logs());
  }, 300_000);

  test('a planned failover: nothing is lost, and the former active hub follows', async () => {
    const before = uidsOf(await copies());
    await create(hubs.first, 'last');
    await have(['web', 'shop', 'last']);
    await hubs.first.admin.demote();
    // argocd-agent's principal does not end the stream of its standby when it is demoted: that cannot know.
    await promote(hubs.second, originals.first !== undefined);
    await reaches(hubs.first, 'replicating');
    await create(hubs.second, 'after');
    await have(['web', 'shop', 'last', 'after']);
    expect(uidsOf(await copies())).toMatchObject(before);
  }, 300_000);

  test('the active hub dies: the other one takes over what it has acknowledged', async () => {
    const before = uidsOf(await copies());
    await hubs.second.principal.stop('SIGKILL');
    await promote(hubs.first);
    await create(hubs.first, 'later');
    await until(async () => expect(namesOf(await copies())).toContain('later'), logs());
    expect(uidsOf(await copies())).toMatchObject(before);
    await remove(hubs.first, 'after');
    await until(async () => expect(namesOf(await copies())).toEqual(['last', 'later', 'shop', 'web']), logs());
  }, 300_000);

  test('it comes back, and follows', async () => {
    hubs.second.principal.start();
    await reaches(hubs.second, 'replicating');
    if (originals.second === undefined) {
      await have(['web', 'shop', 'last', 'later']);
    } else {
      // Its principal knows only what it has written itself since it was started: it keeps what was deleted before.
      await until(async () => expect(namesOf(await appsOf(hubs.second))).toContain('later'), logs());
      expect(namesOf(await appsOf(hubs.second))).toContain('after');
    }
    expect((await hubs.first.admin.status()).state).toBe('active');
  }, 300_000);
});
