import { expect, test } from 'vitest';
import { AgentSync, type AppProject, annotations, type Message, publishOwnAppProjects } from '../../index.ts';
import { Lab } from '../../testing/lab.ts';
import { Memory } from '../testing.ts';

// What an agent reports to a principal of argocd-agent about its projects. That one refuses to create what it has, and
// creates what it lacks by an update. It looks for a mirror by the name that the project has on the cluster, so it does not
// find it and asks for it as if it had none.

async function start() {
  const lab = new Lab();
  const store = new Memory<AppProject>();
  const common = lab.common('a');
  const agent = new AgentSync({
    mode: 'autonomous',
    kinds: [publishOwnAppProjects({ store, namespace: 'argocd', ...common })],
    ...common,
  });
  agent.start(new AbortController().signal);
  const sent: Message[] = [];
  const connection = {
    send: (message: Message) => {
      sent.push(message);
      agent.acknowledged(message);
      return true;
    },
    acknowledge: () => undefined,
  };
  agent.connected(connection, { agent: 'one', principalNamespace: 'argocd' });
  store.put({ metadata: { name: 'team', annotations: { note: 'x' } }, spec: { sourceRepos: ['*'] } });
  await lab.run(5_000);
  const reports = () => sent.splice(0).filter(({ target }) => target === 'appproject');
  return { lab, store, agent, reports };
}

test('a project that the principal asks for is updated, whether it has a mirror or not', async () => {
  const { lab, agent, reports } = await start();
  expect(reports()).toMatchObject([{ type: 'spec-update', object: { metadata: { name: 'team' } } }]);
  agent.receive({
    target: 'resourceResync',
    type: 'request-update',
    resourceId: 'r',
    eventId: 'e',
    payload: { kind: 'AppProject', name: 'team', namespace: 'one', uid: '', checksum: null },
  });
  await lab.run(60_000);
  expect(reports()).toMatchObject([{ type: 'spec-update', object: { spec: { sourceRepos: ['*'] } } }]);
});

test('a project that is made again takes over the mirror of the one before', async () => {
  const { lab, store, reports } = await start();
  store.remove('team');
  store.put({ metadata: { name: 'team', annotations: { note: 'y' } }, spec: {} }, 'second');
  await lab.run(60_000);
  expect(reports().at(-1)).toMatchObject({
    type: 'spec-update',
    object: { metadata: { uid: 'second', annotations: { note: 'y', [annotations.sourceUid]: 'second' } } },
  });
});
