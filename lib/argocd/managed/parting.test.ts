import { expect, test } from 'vitest';
import { type Application, annotations, type Message, specChecksum } from '../index.ts';
import { hubApplication, Lab, sentMessages } from '../testing/lab.ts';

// Agents of argocd-agent delete with the finalizers that their copies have, and make what they lack.

const resources = 'resources-finalizer.argocd.argoproj.io';
const ref = { namespace: 'a', name: 'shop' };
const local = { namespace: 'argocd', name: 'shop' };

test.each<readonly [string, (hub: Lab['hub']['objects']) => void]>([
  [
    'it has none, and is deleted',
    (hub) => {
      hub.patch(ref, { metadata: { finalizers: null } });
      hub.delete(ref, { propagation: 'Background' });
    },
  ],
  [
    'it has none and moves, in one edit',
    (hub) => void hub.patch(ref, { metadata: { finalizers: null }, spec: { destination: { name: 'other' } } }),
  ],
  [
    'it is released and moves, in one edit',
    (hub) =>
      void hub.patch(ref, {
        metadata: { annotations: { [annotations.release]: 'true' } },
        spec: { destination: { name: 'other' } },
      }),
  ],
])(
  'an agent that deletes with the finalizers that its copy has gets the last state before that: %s',
  async (_, leave) => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication({ finalizers: [resources] }));
    const principal = lab.principal({ agentOf: ({ spec }) => spec.destination?.name });
    // argocd-agent's agent, which acknowledges when the test says so.
    const link = { send: (message: Message) => principal.sent.push(message) > 0, acknowledge: () => undefined };
    const acknowledgeAll = async () => {
      for (const message of principal.sent.splice(0)) {
        principal.sync.acknowledged('a', message);
      }
      await lab.run(1_000);
    };
    principal.sync.connected('a', 'managed', link);
    await acknowledgeAll();
    await acknowledgeAll();
    principal.sync.disconnected('a', link);
    leave(lab.hub.objects);
    await lab.run(1_000);
    principal.sync.connected('a', 'managed', link);
    await lab.run(1_000);
    expect(principal.sent).toMatchObject([{ type: 'spec-update', object: { metadata: { name: 'shop' } } }]);
    expect(sentMessages(principal, 'spec-update')[0]?.object.metadata.finalizers ?? []).toEqual([]);
    await acknowledgeAll();
    expect(principal.sent).toMatchObject([{ type: 'delete', object: { metadata: { name: 'shop' } } }]);
    await acknowledgeAll();
    expect(principal.sync.stats('a')).toEqual({ pending: 0, inFlight: 0, queued: 0, retrying: 0 });
  },
);

test.each<[string, boolean]>([
  ['vanish at once', false],
  ['be replaced', true],
])(
  'an agent that deletes with the finalizers that its copy has loses no workload of what the cache has seen %s',
  async (_, isReplaced) => {
    const lab = new Lab();
    const { metadata } = lab.hub.objects.create(hubApplication({ finalizers: [resources] }));
    const principal = lab.principal();
    principal.connect('a');
    await lab.run(5_000);
    principal.sent.length = 0;
    const heal = lab.hub.breakWatch();
    lab.hub.objects.patch(ref, { metadata: { finalizers: null } });
    lab.hub.objects.delete(ref, { propagation: 'Background' });
    const next = isReplaced ? lab.hub.objects.create(hubApplication()) : undefined;
    heal();
    await lab.run(60_000);
    const sent = principal.sent.filter(({ target }) => target === 'application');
    const told = sent.map((message) => ('object' in message ? [message.type, message.object.metadata.uid] : []));
    expect(told).toEqual([
      ['spec-update', metadata.uid],
      // An agent that is told of the next one deletes what it has of the former.
      next === undefined ? ['delete', metadata.uid] : ['create', next.metadata.uid],
    ]);
    expect(sentMessages(principal, 'spec-update')[0]?.object.metadata.finalizers).toEqual([]);
  },
);

/** A hub whose Application was deleted while no principal ran, and what an agent of argocd-agent that connects reports of its copies. */
async function deletedBefore(
  reported: (hub: Application) => { readonly name: string; readonly uid: string; readonly checksum: string },
  permits = true,
) {
  const lab = new Lab();
  const hub = lab.hub.objects.create(hubApplication({ finalizers: [resources] }));
  lab.hub.objects.delete(ref, {});
  const principal = lab.principal({ permits: () => permits });
  principal.connect('a');
  const payload = { kind: 'Application', namespace: 'argocd', ...reported(hub) } as const;
  if (payload.name !== '') {
    const ids = { resourceId: 'shop', eventId: 'e' };
    principal.sync.receive('a', { target: 'resourceResync', type: 'request-update', ...ids, payload });
  }
  await lab.run(60_000);
  return { lab, principal, hub };
}

const itself = ({ metadata: { name, uid = '' }, spec }: Application) => ({ name, uid, checksum: specChecksum(spec) });
const another = () => ({ name: 'other', uid: 'o', checksum: 'c' });
const none = () => ({ name: '', uid: '', checksum: '' });
const isDeletion = { object: { metadata: { deletionTimestamp: expect.any(String) } } };

test('an agent that tells no more of its copy than the checksum of its spec hears of a deletion of before', async () => {
  const { lab, principal } = await deletedBefore(itself);
  expect(sentMessages(principal, 'spec-update')).toMatchObject([isDeletion]);
  expect(lab.hub.objects.get(ref), 'it waits for the agent').toBeDefined();
});

test.each<[string, Parameters<typeof deletedBefore>]>([
  ['an agent of argocd-agent', [another]],
  ['an agent of unknown kind, which must not have it', [none, false]],
])('what was deleted before it ever came to %s does not come there, and goes', async (_, how) => {
  const { lab, principal } = await deletedBefore(...how);
  expect(sentMessages(principal, 'create')).toEqual([]);
  expect(lab.hub.objects.get(ref)).toBeUndefined();
});

test('an agent that made a copy of what is being deleted is told once more that it is', async () => {
  const { lab, principal, hub } = await deletedBefore(none);
  expect(sentMessages(principal, 'create'), 'one of ours would say that there is none').toMatchObject([isDeletion]);
  const marks = { [annotations.sourceUid]: hub.metadata.uid ?? '' };
  const object = { ...hub, metadata: { ...local, uid: 'c', resourceVersion: '1', annotations: marks } };
  const ids = { resourceId: 'shop_c', eventId: 'shop_c_1' };
  principal.sync.receive('a', { target: 'application', type: 'status-update', ...ids, object });
  await lab.run(60_000);
  expect(sentMessages(principal, 'spec-update')).toMatchObject([isDeletion]);
});

test('so does one that has not reported its copy yet', async () => {
  const lab = new Lab();
  const hub = lab.hub.objects.create(hubApplication({ finalizers: [resources] }));
  const principal = lab.principal();
  principal.connect('a');
  lab.hub.objects.patch(ref, { metadata: { finalizers: null } });
  lab.hub.objects.delete(ref, {});
  await lab.run(100);
  const payload = { kind: 'Application', namespace: 'argocd', ...itself(hub) } as const;
  const ids = { resourceId: 'shop', eventId: 'e' };
  principal.sync.receive('a', { target: 'resourceResync', type: 'request-update', ...ids, payload });
  await lab.run(60_000);
  const sent = principal.sent.filter(({ target }) => target === 'application');
  expect(sent.map(({ type }) => type)).toEqual(['spec-update', 'delete']);
  expect(sentMessages(principal, 'spec-update')[0]?.object.metadata.finalizers ?? []).toEqual([]);
  expect(principal.sync.stats('a')).toEqual({ pending: 0, inFlight: 0, queued: 0, retrying: 0 });
});

test('an agent that deletes with the finalizers that its copy has loses no workload of what vanished while no principal ran', async () => {
  const lab = new Lab();
  const hub = lab.hub.objects.create(hubApplication());
  lab.hub.objects.delete(ref, {});
  const principal = lab.principal();
  principal.connect('a');
  const payload = { kind: 'Application', namespace: 'argocd', ...itself(hub) } as const;
  const report = (eventId: string) =>
    principal.sync.receive('a', {
      ...{ target: 'resourceResync', type: 'request-update', resourceId: 'shop', eventId },
      payload,
    });
  report('e');
  await lab.run(60_000);
  const sent = principal.sent.filter(({ target }) => target === 'application');
  expect(sent).toMatchObject([
    { type: 'spec-update', object: { metadata: { name: 'shop', uid: hub.metadata.uid, finalizers: [] } } },
    { type: 'delete', object: { metadata: { name: 'shop', uid: hub.metadata.uid } } },
  ]);
  expect(sentMessages(principal, 'spec-update')[0]?.object.spec, 'nothing is deployed or pruned').toEqual({
    project: 'default',
    destination: {},
  });
  expect(principal.sync.stats('a')).toEqual({ pending: 0, inFlight: 0, queued: 0, retrying: 0 });
});
