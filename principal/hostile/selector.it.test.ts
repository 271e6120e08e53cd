import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rogue, Stage } from '../../e2e/hostile/index.ts';
import { application, namespace, pairApplications, pairAppProjects } from '../../e2e/pair/index.ts';
import { until } from '../../lib/base/testing.ts';
import { agentSource, eventTypes, objectEvent, targets } from '../../lib/wire/index.ts';

// An agent of a principal that sees only what has a label.

const most = 5;
let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open([`--label-selector=team!=hidden`, `--agent-max-objects=${most}`]);
});
afterAll(() => stage?.close());

test('under a label selector, what an agent has on the hub is counted, whatever labels it sends', async () => {
  const call = await stage.agent({ name: rogue, mode: 'autonomous' });
  const from = { source: agentSource };
  const metadata = (name: string, team: string) => ({
    name,
    namespace: 'argocd',
    uid: `uid-${name}`,
    resourceVersion: '1',
    labels: { team },
  });
  const spec = { sourceRepos: ['*'], destinations: [{ server: '*', namespace: '*' }] };
  const named = (prefix: string) => Array.from({ length: 2 * most }, (_, index) => `${prefix}${index}`);
  const ids = () => ({ resourceId: randomUUID(), eventId: randomUUID() });
  for (const name of named('app')) {
    for (const team of ['shown', 'hidden']) {
      const type = team === 'shown' ? eventTypes.create : eventTypes.specUpdate;
      const object = { ...application({ name, namespace: 'argocd' }), metadata: metadata(name, team) };
      await call.sendAll([objectEvent(targets.application, type, object, from, ids())]);
    }
  }
  const { client } = stage.hub.hub;
  const mirrors = async () =>
    (await client.list(pairApplications, { namespace: rogue })).filter(({ metadata: { name } }) => name !== 'own');
  const projects = async () =>
    (await client.list(pairAppProjects, { namespace })).filter(({ metadata: { name } }) =>
      name.startsWith(`${rogue}-`),
    );
  await until('they are mirrored', async () => (await mirrors()).length >= most);
  await call.sendAll(
    named('project').map((name) => {
      const project = { metadata: metadata(name, 'hidden'), spec };
      return objectEvent(targets.appProject, eventTypes.create, project, from, ids());
    }),
  );
  await until('more are refused', () => /agent-max-objects/.test(stage.details()) || undefined);
  expect((await mirrors()).length + (await projects()).length).toBe(most);
  expect((await mirrors()).filter(({ metadata: { labels } }) => labels?.team === 'hidden')).toEqual([]);
});
