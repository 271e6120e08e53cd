import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { MergePatch } from '../../base/index.ts';
import { processRuntime, type Store } from '../../sync/index.ts';
import { type Application, annotations, HubApplications, HubSync, type Message } from '../index.ts';
import { hubApplication, Lab } from '../testing/lab.ts';

beforeAll(() => void vi.useFakeTimers());
afterAll(() => void vi.useRealTimers());

const nothing = () => undefined;
const hub: Application = { metadata: { namespace: 'argocd', name: 'x', uid: 'u', resourceVersion: '1' }, spec: {} };
const report: Message = {
  target: 'application',
  type: 'status-update',
  principalUid: 'p',
  resourceId: 'r',
  eventId: 'e',
  object: {
    metadata: { namespace: 'argocd', name: 'x', annotations: { [annotations.sourceUid]: 'u' } },
    spec: {},
    status: { health: { status: 'Healthy' } },
  },
};

/** A hub whose API server refuses the first writes with a status, and an agent that reports once. */
async function reportTo(status: number, refusals: number) {
  const patches: MergePatch[] = [];
  let left = refusals;
  const applications = {
    subscribe: (listener) => {
      listener({ old: undefined, now: hub });
      return nothing;
    },
    read: async () => hub,
    patch: async (_, patch) => {
      if (left-- > 0) {
        throw Object.assign(new Error('refused'), { status });
      }
      patches.push(patch);
      return { ...hub, status: { health: { status: 'Healthy' } } };
    },
  } as Partial<Store<Application>> as Store<Application>;
  const acknowledged: unknown[] = [];
  const runtime = processRuntime({ debug: nothing, info: nothing, warn: nothing, error: nothing });
  const managed = new HubApplications({
    applications,
    principalUid: 'p',
    agentOf: () => 'a',
    runtime,
    namespaceOf: (_, local) => local,
  });
  const stop = new AbortController();
  const sync = new HubSync({ managed: [managed], runtime });
  sync.start(stop.signal);
  sync.connected('a', 'managed', { send: () => true, acknowledge: (event) => acknowledged.push(event) });
  sync.receive('a', report);
  await vi.advanceTimersByTimeAsync(60_000);
  stop.abort();
  return { patches, acknowledged };
}

test('a report that an API server forbids while it has not loaded its rights yet is written when it has', async () => {
  const { patches, acknowledged } = await reportTo(403, 3);
  expect(patches).toMatchObject([{ status: { health: { status: 'Healthy' } } }]);
  expect(acknowledged).toHaveLength(1);
});

test('a report that an API server does not take is kept, and nobody waits for it', async () => {
  const { patches, acknowledged } = await reportTo(422, Number.POSITIVE_INFINITY);
  expect(patches).toEqual([]);
  expect(acknowledged).toHaveLength(1);
});

test('a status that another agent reported, in a gap of the watch, is replaced by that of the agent that has the Application', async () => {
  const lab = new Lab();
  const ref = { namespace: 'one', name: 'shop' };
  const principal = lab.principal({ agentOf: ({ spec }) => spec.destination?.name });
  const agent = lab.agent();
  lab.join(principal, agent, 'one');
  lab.hub.objects.create(hubApplication({ namespace: 'one' }, { spec: { destination: { name: 'one' } } }));
  await lab.run(5_000);
  agent.cluster.objects.patch({ namespace: 'argocd', name: 'shop' }, { status: { health: { status: 'Healthy' } } });
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)?.status?.health?.status).toBe('Healthy');

  const relist = lab.hub.breakWatch();
  lab.hub.objects.patch(ref, { spec: { destination: { name: 'two' } } });
  lab.hub.objects.patch(ref, { status: { health: { status: 'Missing' } } });
  lab.hub.objects.patch(ref, { spec: { destination: { name: 'one' } } });
  relist();
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)?.status?.health?.status).toBe('Healthy');
});
