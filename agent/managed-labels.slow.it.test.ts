import { afterAll, beforeAll, test } from 'vitest';
import { application, namespace, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';

// The effect of a label on a watch with a selector needs a real API server.

const ignored = 'argocd-agent.argoproj-labs.io/ignore-sync';
const resources = 'resources-finalizer.argocd.argoproj.io';

let pair: Pair;
const logs = () => ({
  details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}`,
});

beforeAll(async () => {
  pair = await startPair();
});
afterAll(async () => {
  await pair?.stop();
});

const hubKey = (name: string) => ({ name, namespace: pair.name });
const onHub = (name: string) => pair.hub.client.get(pairApplications, hubKey(name));
const onManaged = (name: string) => pair.managed.client.get(pairApplications, { name, namespace });
const editHub = (name: string, patch: object) =>
  pair.hub.client.mergePatch(pairApplications, hubKey(name), { ...patch });
const editManaged = (name: string, patch: object) =>
  pair.managed.client.mergePatch(pairApplications, { name, namespace }, { ...patch });

async function conditions(name: string): Promise<string> {
  const all = ((await onHub(name))?.status?.conditions ?? []) as { type: string; message: string }[];
  return all.map(({ type, message }) => `${type}: ${message}`).join('\n');
}

async function deployed(name: string, finalizers: string[] = []): Promise<void> {
  const wanted = application({ name, namespace: pair.name });
  await pair.hub.client.create(pairApplications, { ...wanted, metadata: { ...wanted.metadata, finalizers } });
  await until(`${name} is on the managed cluster`, () => onManaged(name), logs());
}

test('a label on the hub takes an Application out of synchronisation, and its going brings it back', async () => {
  await deployed('out');
  await editHub('out', { metadata: { labels: { [ignored]: 'true' } } });
  await until('the copy is gone', async () => (await onManaged('out')) === undefined, logs());
  await pair.principal.says(/its copy is deleted, what it deployed there stays/);
  await editHub('out', { metadata: { labels: { [ignored]: null } } });
  await until('the copy is back', () => onManaged('out'), logs());
});

test('a label on the copy leaves it alone, which the hub shows, until the label goes', async () => {
  await deployed('alone');
  await editManaged('alone', { metadata: { labels: { [ignored]: 'true' } } });
  await until(
    'the hub shows it',
    async () => (await conditions('alone')).includes('takes no part in synchronisation'),
    logs(),
  );
  await editManaged('alone', { spec: { project: 'mine' } });
  await editHub('alone', { spec: { source: { path: 'late' } } });
  await editManaged('alone', { metadata: { labels: { [ignored]: null } } });
  await until(
    'it is in step again',
    async () => {
      const spec = (await onManaged('alone'))?.spec;
      return spec?.project === 'default' && (spec.source as { path?: string }).path === 'late';
    },
    logs(),
  );
  await editManaged('alone', { status: { health: { status: 'Healthy' } } });
  await until('the hub shows nothing any more', async () => (await conditions('alone')) === '', logs());
});

test('a deletion that waits for an absent agent reports it, and is released', async () => {
  await deployed('kept', [resources]);
  await deployed('released', [resources]);
  await pair.agent.stop('SIGKILL');
  for (const name of ['kept', 'released']) {
    await pair.hub.client.delete(pairApplications, hubKey(name));
  }
  for (const name of ['kept', 'released']) {
    await until(
      `${name} says what it waits for`,
      async () => (await conditions(name)).includes(`AgentWarning: waiting for agent ${pair.name}`),
      logs(),
    );
  }
  await editHub('released', { metadata: { annotations: { 'argocd-agent.argoproj-labs.io/release': 'true' } } });
  await until('it is gone', async () => (await onHub('released')) === undefined, logs());
  pair.agent.start();
  await until('the agent deletes it', async () => (await onManaged('kept'))?.metadata.deletionTimestamp, logs());
  // No Argo CD runs here that would do it.
  await editManaged('kept', { metadata: { finalizers: null } });
  // What was released does not ask for its workload, so nothing waits for Argo CD.
  await until('the other one goes by itself', async () => (await onManaged('released')) === undefined, logs());
  await until('it is gone', async () => (await onHub('kept')) === undefined, logs());
});

test('a stalled deletion is brought to the notice of Argo CD', async () => {
  await deployed('stuck', [resources]);
  await pair.hub.client.delete(pairApplications, hubKey('stuck'));
  await until(
    'the copy is touched',
    async () => (await onManaged('stuck'))?.metadata.annotations?.['argocd-agent.argoproj-labs.io/nudged-at'],
    logs(),
  );
  await editManaged('stuck', { metadata: { finalizers: null } });
  await until('it is gone', async () => (await onHub('stuck')) === undefined, logs());
});
