import { expect, test } from 'vitest';
import { FairTurns } from '../../base/index.ts';
import { annotations } from '../index.ts';
import { hubApplication, Lab, type LabAgent, LabCluster } from '../testing/lab.ts';

const ref = { namespace: 'a', name: 'shop' };
const finalizers = ['resources-finalizer.argocd.argoproj.io'];
const spec = { project: 'default', destination: { name: 'a', namespace: 'kube-system' } };

/** A hub whose projects permit what the test says, and an agent. */
function start() {
  const lab = new Lab();
  const said = { permits: false };
  const principal = lab.principal({ permits: () => said.permits });
  const agent = lab.agent();
  lab.join(principal, agent);
  const say = (permits: boolean) => {
    said.permits = permits;
    principal.applications.permissionsChanged({ projects: (name) => name === 'default' });
  };
  return { lab, principal, agent, say };
}

const destination = (agent: LabAgent) => agent.copy()?.spec.destination?.namespace;

test('an Application that its AppProject on the hub does not admit does not come to the cluster', async () => {
  const { lab, principal, agent, say } = start();
  lab.hub.objects.create(hubApplication({}));
  await lab.run(600_000);
  expect(agent.copy()).toBeUndefined();
  expect(principal.applications.syncFor('a').stats(), 'nothing waits for the agent').toMatchObject({
    pending: 0,
    inFlight: 0,
  });
  say(true);
  await lab.run(1_000);
  expect(destination(agent)).toBe('shop');
});

test('what the agent has stays as it is when the project admits it no more, also over connections, and follows again', async () => {
  const { lab, principal, agent, say } = start();
  say(true);
  lab.hub.objects.create(hubApplication({ finalizers }));
  await lab.run(1_000);
  const before = agent.copy();
  expect(before).toBeDefined();
  say(false);
  lab.hub.objects.patch(ref, { spec });
  lab.hub.objects.patch(ref, { operation: { sync: {} } });
  await lab.run(60_000);
  lab.join(principal, agent);
  await lab.run(60_000);
  principal.stop.abort();
  const other = lab.principal({ permits: () => false });
  lab.join(other, agent);
  await lab.run(60_000);
  expect(agent.copy()).toEqual(before);
  other.stop.abort();
  lab.join(lab.principal(), agent);
  await lab.run(10_000);
  expect(destination(agent)).toBe('kube-system');
  expect(agent.copy()?.operation).toBeDefined();
});

test('a deletion is not withheld', async () => {
  const { lab, agent, say } = start();
  say(true);
  lab.hub.objects.create(hubApplication({ finalizers }));
  await lab.run(1_000);
  say(false);
  lab.hub.objects.delete(ref, {});
  await lab.run(1_000);
  expect(agent.copy()?.metadata.deletionTimestamp).toBeDefined();
});

test('the copy of a former Application stays while the next one of its name is withheld, and is replaced afterwards', async () => {
  const { lab, principal, agent, say } = start();
  say(true);
  lab.hub.objects.create(hubApplication({ finalizers }));
  await lab.run(1_000);
  principal.stop.abort();
  const before = agent.copy();
  // Nobody waits for the finalizer: somebody has taken it off.
  lab.hub.objects.patch(ref, { metadata: { finalizers: null } });
  lab.hub.objects.delete(ref, {});
  const { uid } = lab.hub.objects.create(hubApplication({ finalizers })).metadata;
  const other = lab.principal({ permits: () => false });
  lab.join(other, agent);
  await lab.run(10_000);
  // An agent of the original would delete what it deployed with it.
  expect(agent.copy()).toEqual(before);
  other.stop.abort();
  lab.join(lab.principal(), agent);
  await lab.run(10_000);
  expect(agent.copy()?.metadata.annotations?.[annotations.sourceUid]).toBe(uid);
});

test('the copy of another principal stays as it is while this one withholds the Application, and is its own afterwards', async () => {
  const { lab, principal, agent, say } = start();
  say(true);
  lab.hub.objects.create(hubApplication({ finalizers }));
  await lab.run(1_000);
  principal.stop.abort();
  const before = agent.copy();
  const hub = new LabCluster('other', lab.time);
  hub.objects.create(hubApplication({ finalizers }));
  const said = { permits: false };
  const other = lab.principal({ applications: hub, principalUid: 'other', permits: () => said.permits });
  lab.join(other, agent);
  agent.cluster.objects.patch({ namespace: 'argocd', name: 'shop' }, { status: { health: { status: 'Healthy' } } });
  await lab.run(10_000);
  expect(agent.copy()).toEqual({ ...before, metadata: agent.copy()?.metadata, status: agent.copy()?.status });
  expect(agent.copy()?.metadata.annotations).toEqual(before?.metadata.annotations);
  said.permits = true;
  other.applications.permissionsChanged({ projects: () => true });
  await lab.run(10_000);
  expect(agent.copy()?.metadata.annotations?.[annotations.principalUid]).toBe('other');
});

test('an Application that is deleted before the cluster ever had it goes, and nothing comes to the cluster', async () => {
  const { lab, agent } = start();
  const writes: string[] = [];
  agent.cluster.intercept = (call) => void writes.push(call);
  lab.hub.objects.create(hubApplication({ finalizers }));
  await lab.run(1_000);
  lab.hub.objects.delete(ref, {});
  await lab.run(10_000);
  expect(lab.hub.objects.get(ref)).toBeUndefined();
  expect(writes.filter((call) => call !== 'read')).toEqual([]);
});

test('whether the Applications of one project may be there is looked at in turns of the event loop', () => {
  const lab = new Lab();
  const looked = new Set<string>();
  const later: (() => void)[] = [];
  const most = Number.POSITIVE_INFINITY;
  const limits = { bytes: most, milliseconds: most, millisecondsPerPeer: most, restFactor: 0 };
  const turns = new FairTurns<object>({ ...limits, messages: 3, messagesPerPeer: most }, (run) => later.push(run));
  const { applications } = lab.principal({
    runtime: { ...lab.common('p').runtime, turns },
    notice: (_, agent) => {
      looked.add(agent ?? '');
      return undefined;
    },
  });
  for (let i = 0; i < 10; i++) {
    lab.hub.objects.create(hubApplication({ namespace: `agent-${i}` }));
  }
  while (later.length > 0) {
    later.shift()?.();
  }
  looked.clear();
  applications.permissionsChanged({ projects: () => true });
  expect(looked.size).toBe(3);
  while (later.length > 0) {
    const before = looked.size;
    later.shift()?.();
    expect(looked.size).toBeLessThanOrEqual(before + 3);
  }
  expect(looked.size).toBe(10);
});
