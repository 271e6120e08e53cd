import { expect, test } from 'vitest';
import { ownApplication } from './autonomous/testing/stage.ts';
import {
  ApplicationMirrors,
  annotations,
  applicationRouter,
  HubApplications,
  HubSync,
  type Message,
  withoutMirrors,
} from './index.ts';
import { hubApplication, Lab } from './testing/lab.ts';

const ref = { namespace: 'auto', name: 'shop' };
const both = { [annotations.sourceUid]: null, [annotations.lastUpdated]: null };

/** A principal with destination-based mapping; `one` is a managed agent, and what the autonomous agent's cluster is called. */
function principal() {
  const lab = new Lab();
  const stop = new AbortController();
  const common = { applications: lab.hub, principalUid: 'p', ...lab.common('p') };
  const mirrors = new ApplicationMirrors({ ...common, clusterOf: () => 'one' });
  const router = applicationRouter({ namespace: 'argocd', allowedNamespaces: ['*'], mapping: 'destination' });
  const agentOf = withoutMirrors(router, (one) => mirrors.isMirror(one));
  const sync = new HubSync({
    managed: [new HubApplications({ ...common, agentOf, namespaceOf: (_, namespace) => namespace })],
    autonomous: [mirrors],
    ...lab.common('q'),
  });
  sync.start(stop.signal);
  const told: Message[] = [];
  const connect = (agent: string, mode: 'managed' | 'autonomous') =>
    sync.connected(agent, mode, {
      send: (message) => {
        if (agent === 'one') {
          told.push(message);
        }
        sync.acknowledged(agent, message);
        return true;
      },
      acknowledge: () => undefined,
    });
  connect('one', 'managed');
  connect('auto', 'autonomous');
  const about = () => told.flatMap((one) => (one.target === 'application' ? [one.type] : []));
  return { lab, sync, mirrors, agentOf, about, mirror: () => lab.hub.objects.get(ref) };
}

async function mirrored() {
  const stage = principal();
  stage.sync.receive('auto', {
    target: 'application',
    type: 'create',
    resourceId: 'shop_u',
    eventId: 'shop_u_1',
    object: ownApplication({ uid: 'u', resourceVersion: '1' }),
  });
  await stage.lab.run(5_000);
  expect(stage.mirror()?.spec.destination).toMatchObject({ name: 'one' });
  return stage;
}

test('a mirror that loses all that tells so is not given to the agent that is called like its cluster', async () => {
  const { lab, about, mirror } = await mirrored();
  const before = mirror();
  lab.hub.objects.patch(ref, { metadata: { annotations: both } });
  await lab.run(60_000);
  expect(about()).toEqual([]);
  expect(mirror()?.metadata.uid).toBe(before?.metadata.uid);
  expect(mirror()?.metadata.annotations, 'and is told from others again').toEqual(before?.metadata.annotations);
});

test('an Application of the hub in the namespace of an autonomous agent is given to whom its destination names', async () => {
  const { lab, about } = await mirrored();
  lab.hub.objects.create(
    hubApplication({ namespace: 'auto', name: 'own' }, { spec: { destination: { name: 'one' } } }),
  );
  await lab.run(5_000);
  expect(about()).toEqual(['create']);
});

test('the agent of an object stays the same, whatever becomes known of mirrors', async () => {
  const { lab, sync, mirrors, agentOf, mirror } = await mirrored();
  lab.hub.intercept = () => {
    throw new Error('connection refused');
  };
  const stripped = lab.hub.objects.patch(ref, { metadata: { annotations: both } });
  expect(agentOf(stripped)).toBeUndefined();
  sync.forgetAgent('auto');
  expect(mirrors.isMirror(stripped)).toBe(false);
  expect(agentOf(stripped)).toBeUndefined();
  const edited = lab.hub.objects.patch(ref, { metadata: { labels: { edited: 'yes' } } });
  expect(agentOf(edited), 'nobody protects it any more').toBe('one');
  expect(mirror()).toBeDefined();
});
