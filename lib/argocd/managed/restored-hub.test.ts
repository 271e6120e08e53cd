import { expect, test } from 'vitest';
import { annotations } from '../index.ts';
import { hubApplication, Lab, LabCluster } from '../testing/lab.ts';

const ref = { namespace: 'a', name: 'shop' };

/** A hub and its agent in step; then its principal ends. */
async function lostPrincipal() {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const first = lab.principal({ principalUid: 'before' });
  const agent = lab.agent();
  const disconnect = lab.join(first, agent);
  await lab.run(5_000);
  const copy = agent.copy();
  expect(copy?.metadata.annotations).toMatchObject({ [annotations.principalUid]: 'before' });
  disconnect();
  first.stop.abort();
  return { lab, agent, copy };
}

/** A hub that is lost; then it is another one, which has none of the Applications yet. */
async function lostHub(restoredUid: string) {
  const { lab, agent, copy } = await lostPrincipal();
  const foreign: string[] = [];
  const hub = new LabCluster('restored', lab.time);
  const principal = lab.principal({
    applications: hub,
    principalUid: restoredUid,
    onForeign: (name, { namespace, name: application }) => foreign.push(`${name} ${namespace}/${application}`),
  });
  lab.join(principal, agent);
  await lab.run(30_000);
  return { lab, hub, agent, copy, foreign };
}

test('an agent keeps its Applications until a restored hub has them again, and takes them over in place', async () => {
  const { lab, hub, agent, copy, foreign } = await lostHub('after');
  expect(agent.copy(), 'kept').toEqual(copy);
  expect(new Set(foreign)).toEqual(new Set(['a a/shop']));

  hub.objects.create(hubApplication({}, { spec: { project: 'default', source: { path: 'p1' } } }));
  await lab.run(5_000);
  const uid = hub.objects.get(ref)?.metadata.uid;
  expect(agent.copy()).toMatchObject({
    metadata: {
      uid: copy?.metadata.uid,
      annotations: { [annotations.principalUid]: 'after', [annotations.sourceUid]: uid },
    },
    spec: { source: { path: 'p1' } },
  });

  hub.objects.delete(ref, { propagation: 'Background' });
  await lab.run(5_000);
  expect(agent.copy(), 'deleted by a user of the restored hub').toBeUndefined();
});

test('a principal deletes the copies that were made for itself and are not wanted any more', async () => {
  const { agent, foreign } = await lostHub('before');
  expect(agent.copy()).toBeUndefined();
  expect(foreign).toEqual([]);
});

test('a principal with a new identity on the same hub makes the copies its own', async () => {
  const { lab, agent, copy } = await lostPrincipal();
  lab.join(lab.principal({ principalUid: 'after' }), agent);
  await lab.run(5_000);
  expect(agent.copy()?.metadata).toMatchObject({
    uid: copy?.metadata.uid,
    annotations: { [annotations.principalUid]: 'after' },
  });
});
