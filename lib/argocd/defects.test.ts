import { expect, test } from 'vitest';
import { processRuntime } from '../sync/index.ts';
import {
  ApplicationMirrors,
  type AppProject,
  annotations,
  applicationRouter,
  ProjectMirrors,
  publishOwnAppProjects,
} from './index.ts';
import { Memory, pair, testLog } from './replicas/testing.ts';
import { hubApplication, Lab, LabCluster, sentMessages } from './testing/lab.ts';

// Defects of argocd-agent (docs/defects.md) that do not belong to a single kind or mode.

test('defect 8: no name makes a namespace an autonomous agent’s: what came to argocd from another hub is given to its agent', async () => {
  const lab = new Lab();
  const principal = lab.principal({
    agentOf: applicationRouter({ namespace: 'argocd', allowedNamespaces: [], mapping: 'destination' }),
    namespaceOf: (_, namespace) => namespace,
  });
  const agent = lab.agent();
  lab.join(principal, agent, 'one');
  const replicated = { namespace: 'argocd', annotations: { [annotations.sourceUid]: 'of-another-hub' } };
  lab.hub.objects.create(hubApplication(replicated, { spec: { destination: { name: 'one' } } }));
  await lab.run(5_000);
  expect(agent.copy()?.metadata.annotations?.[annotations.sourceUid]).toBe('of-another-hub');
  lab.hub.objects.patch({ namespace: 'argocd', name: 'shop' }, { spec: { project: 'edited' } });
  await lab.run(5_000);
  expect(agent.copy()?.spec.project, 'a change on the hub is passed on, not reverted').toBe('edited');
});

test('defect 15: a project of the hub that is called like an agent’s own stands in the way of nothing', async () => {
  const hub = new Memory<AppProject>();
  const cluster = new Memory<AppProject>();
  const log = testLog();
  const common = { namespace: 'argocd', runtime: processRuntime(log) };
  hub.put({ metadata: { name: 'default' }, spec: { sourceRepos: ['the hub’s'] } });
  cluster.put({ metadata: { name: 'default' }, spec: { sourceRepos: ['the agent’s'] } });
  const start = () =>
    pair({
      autonomous: [new ProjectMirrors({ ...common, store: hub })],
      agent: { mode: 'autonomous', kinds: [publishOwnAppProjects({ ...common, store: cluster })] },
    });
  const first = start();
  await first.settled();
  first.stop();
  cluster.edit('default', { spec: { sourceRepos: ['changed'] } });
  const second = start();
  await second.settled();
  expect(hub.objects.get('one-default')?.spec.sourceRepos).toEqual(['changed']);
  expect(hub.objects.get('default')?.spec).toEqual({ sourceRepos: ['the hub’s'] });
  expect(log.warnings).toEqual([]);
});

test('defect 37: an agent that comes and goes leaves nothing behind', async () => {
  const lab = new Lab();
  const principal = lab.principal();
  const agent = lab.agent();
  lab.hub.objects.create(hubApplication());
  lab.join(principal, agent)();
  for (let time = 0; time < 200; time++) {
    const disconnect = lab.join(principal, agent);
    await lab.run(time % 3);
    disconnect();
  }
  lab.join(principal, agent);
  await lab.run(10_000);
  expect(agent.copy()).toBeDefined();
  principal.sent.length = 0;
  agent.sent.length = 0;
  await lab.run(600_000);
  expect([...principal.sent, ...agent.sent], 'nothing is still at work on connections that are gone').toEqual([]);
});

test('defect 46: agents that connect at once are served side by side, and one that does not answer holds up nobody', async () => {
  const lab = new Lab();
  const principal = lab.principal();
  const names = Array.from({ length: 200 }, (_, index) => `agent-${index}`);
  for (const namespace of names) {
    lab.hub.objects.create(hubApplication({ namespace }));
  }
  const deaf = { send: () => true, acknowledge: () => undefined };
  principal.sync.connected('deaf', 'managed', deaf);
  const agents = names.map((name) => {
    const agent = lab.agent();
    lab.join(principal, agent, name);
    return agent;
  });
  // At 100 ms each, one after the other, they would take 20 s.
  await lab.run(4_000);
  expect(agents.filter((agent) => agent.copy() !== undefined)).toHaveLength(200);
  expect(sentMessages(principal, 'create')).toHaveLength(200);
});

test('defect 49: what an autonomous agent speaks of is in its namespace on the hub, also when its installation is called like that', () => {
  const lab = new Lab();
  const store = new LabCluster('other', lab.time);
  store.objects.create(hubApplication({ namespace: 'argocd' }));
  const mirrors = new ApplicationMirrors({ applications: store, principalUid: 'p', ...lab.common('p') });
  const stop = new AbortController();
  mirrors.start(stop.signal);
  const mirrorSync = mirrors.syncFor('argocd-edge');
  for (const namespace of ['argocd-edge', 'argocd', '']) {
    const found: { namespace: string; name: string } = mirrorSync.localRef({ name: 'shop', namespace });
    expect(found).toEqual({ namespace: 'argocd-edge', name: 'shop' });
    expect(mirrorSync.reportOf(found)).toMatchObject({ uid: '', checksum: null });
  }
  stop.abort();
});
