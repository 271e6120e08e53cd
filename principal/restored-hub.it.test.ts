import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ArgoObject, application, namespace, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { Random } from '../e2e/random/index.ts';
import { until } from '../lib/base/testing.ts';
import { configMaps, events, secrets } from '../lib/kube/index.ts';

// A hub is lost and restored from a backup as Velero does it: without status, with new UIDs, in any order, and with the
// principal running meanwhile. The copies on the cluster must stay the very same objects.

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const random = new Random(seed);
const names = ['web', 'shop', 'api', 'jobs', 'mail', 'forgotten'];
const identity = { namespace, name: 'argocd-agent-principal-identity' };
const logs = () => ({
  details: () =>
    [`SEED=${seed}`, ...[pair.principal, pair.agent].map(({ output }) => output.slice(-3_000))].join('\n---\n'),
});

let pair: Pair;

beforeAll(async () => {
  console.log(`SEED=${seed}`);
  pair = await startPair();
});
afterAll(() => pair?.stop());

const copies = () => pair.managed.client.list(pairApplications, { namespace });
const uidsOf = (found: readonly ArgoObject[]) =>
  Object.fromEntries(found.map(({ metadata: { name, uid } }) => [name, uid]));

/** What a backup holds of an object. */
function backedUp<T extends ArgoObject>({ metadata, spec }: T): ArgoObject {
  const { name, namespace, labels = {}, annotations = {}, finalizers = [] } = metadata;
  return {
    metadata: { name, namespace, labels: { ...labels, 'velero.io/restore-name': 'hub' }, annotations, finalizers },
    spec,
  } as ArgoObject;
}

test('a hub is lost and restored from a backup: no copy is deleted or made again', async () => {
  const { hub, principal } = pair;
  const finalizers = ['resources-finalizer.argocd.argoproj.io'];
  for (const name of names) {
    await hub.client.create(pairApplications, application({ name, namespace: pair.name, metadata: { finalizers } }));
  }
  await until('all copies are made', async () => (await copies()).length === names.length, logs());
  const before = uidsOf(await copies());
  const saved = (await hub.client.list(pairApplications, { namespace: pair.name })).map(backedUp);
  const savedIdentity = await hub.client.get(configMaps, identity);
  const formerUid = savedIdentity?.data?.['principal-uid'];

  await principal.stop();
  for (const { metadata } of saved) {
    const key = { namespace: pair.name, name: metadata.name };
    await hub.client.mergePatch(pairApplications, key, { metadata: { finalizers: null } });
    await hub.client.delete(pairApplications, key);
  }
  await hub.client.delete(configMaps, identity);
  await hub.client.create(configMaps, { metadata: identity, data: savedIdentity?.data ?? {} });

  const after = principal.output.length;
  principal.start();
  await principal.says(/the hub was restored from a backup/, { after });
  for (const name of names) {
    await principal.says(new RegExp(`keeps an Application of another principal.*${pair.name}/${name}`), { after });
  }
  const uid = (await hub.client.get(configMaps, identity))?.data?.['principal-uid'];
  expect(uid).not.toBe(formerUid);
  expect(uidsOf(await copies())).toEqual(before);

  const restored = random.shuffle(saved.filter(({ metadata }) => metadata.name !== 'forgotten'));
  for (const object of restored) {
    await hub.client.create(pairApplications, object);
  }
  const isTakenOver = ({ metadata }: ArgoObject) =>
    metadata.annotations?.['argocd.argoproj.io/principal-uid'] === uid &&
    metadata.labels?.['velero.io/restore-name'] === 'hub';
  await until(
    'the restored Applications have their copies',
    async () => (await copies()).filter(isTakenOver).length === restored.length,
    logs(),
  );
  const now = await copies();
  expect(uidsOf(now)).toEqual(before);
  expect(now.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([]);

  const cluster = (await hub.client.list(secrets, { namespace })).find(({ metadata }) =>
    metadata.name.includes(pair.name),
  );
  const told = await until(
    'an Event names the Application that was not restored',
    async () =>
      (await hub.client.list(events, { namespace })).find(
        ({ reason, note }) => reason === 'ApplicationKept' && note?.includes(`${pair.name}/forgotten`),
      ),
    logs(),
  );
  expect(told.regarding).toMatchObject({ kind: 'Secret', name: cluster?.metadata.name });

  await principal.stop();
  const again = principal.output.length;
  principal.start();
  await principal.says(/An agent is connected/, { after: again });
  expect((await hub.client.get(configMaps, identity))?.data?.['principal-uid'], 'restored once').toBe(uid);

  await hub.client.delete(pairApplications, { namespace: pair.name, name: 'web' });
  await until(
    'a deletion on the restored hub reaches the cluster',
    async () => (await copies()).find(({ metadata }) => metadata.name === 'web')?.metadata.deletionTimestamp,
    logs(),
  );
});
