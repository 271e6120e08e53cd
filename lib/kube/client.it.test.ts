import { afterAll, beforeAll, expect, test } from 'vitest';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../base/testing.ts';
import {
  type ApiError,
  configMaps,
  crds,
  EventRecorder,
  events,
  finalizerPatch,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isInvalid,
  isNotFound,
  KubeClient,
  leases,
  namespaces,
  runWithLease,
  serviceAccounts,
} from './index.ts';

let cluster: SharedCluster;
let client: KubeClient;
const namespace = 'default';

beforeAll(async () => {
  cluster = await borrowCluster({ name: 'client' });
  client = KubeClient.fromKubeconfig(cluster.kubeconfig);
});
afterAll(async () => {
  await client?.close();
  await cluster?.stop();
});

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it did not fail'),
    (error: unknown) => error,
  );

test('server-side apply owns fields, reports conflicts and yields to force', async () => {
  const key = { namespace, name: 'applied' };
  await client.apply(configMaps, { metadata: key, data: { a: '1', b: '1' } }, { fieldManager: 'one' });
  const error = await failure(client.apply(configMaps, { metadata: key, data: { a: '2' } }, { fieldManager: 'two' }));
  expect(isConflict(error)).toBe(true);
  expect((error as ApiError).message).toContain('conflict with "one"');
  expect((error as ApiError).details?.causes).toMatchObject([{ reason: 'FieldManagerConflict', field: '.data.a' }]);
  const forced = await client.apply(
    configMaps,
    { metadata: key, data: { a: '2' } },
    { fieldManager: 'two', force: true },
  );
  expect(forced.data).toEqual({ a: '2', b: '1' });
  // A field that a manager no longer applies and no other manager owns is removed.
  const left = await client.apply(configMaps, { metadata: key, data: {} }, { fieldManager: 'one' });
  expect(left.data).toEqual({ a: '2' });
});

test('an apply that changes nothing writes nothing', async () => {
  const object = { metadata: { namespace, name: 'same' }, data: { a: '1' } };
  const first = await client.apply(configMaps, object, { fieldManager: 'one' });
  const second = await client.apply(configMaps, object, { fieldManager: 'one' });
  expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
});

test('create, replace, patches and delete keep to the rules of optimistic locking', async () => {
  const key = { namespace, name: 'locked' };
  const created = await client.create(configMaps, { metadata: key, data: { a: '1' } });
  expect(isAlreadyExists(await failure(client.create(configMaps, { metadata: key })))).toBe(true);
  const patched = await client.mergePatch(configMaps, key, { data: { a: null, b: '2' } });
  expect(patched.data).toEqual({ b: '2' });
  expect(isConflict(await failure(client.replace(configMaps, { ...created, data: {} })))).toBe(true);
  const replaced = await client.replace(configMaps, { ...patched, data: { c: '3' } });
  expect(replaced.data).toEqual({ c: '3' });
  expect(isInvalid(await failure(client.mergePatch(configMaps, key, { data: { 'no key': 'x' } })))).toBe(true);
  expect(isConflict(await failure(client.delete(configMaps, key, { uid: 'someone-else' })))).toBe(true);
  await client.delete(configMaps, key, { uid: replaced.metadata.uid });
  await client.delete(configMaps, key);
  expect(await client.get(configMaps, key)).toBeUndefined();
});

test('finalizers hold an object until they are taken off', async () => {
  const key = { namespace, name: 'held' };
  const created = await client.create(configMaps, { metadata: key });
  const held = await client.mergePatch(configMaps, key, finalizerPatch(created, { add: 'argocd-fleet.io/test' }) ?? {});
  await client.delete(configMaps, key);
  const going = await client.get(configMaps, key);
  expect(going?.metadata.deletionTimestamp).toBeDefined();
  const stale = finalizerPatch(held, { remove: 'argocd-fleet.io/test' }) ?? {};
  expect(isConflict(await failure(client.mergePatch(configMaps, key, stale)))).toBe(true);
  await client.mergePatch(configMaps, key, finalizerPatch(going ?? held, { remove: 'argocd-fleet.io/test' }) ?? {});
  expect(await client.get(configMaps, key)).toBeUndefined();
});

test('kinds are resolved, also those that are installed later; status is a subresource', async () => {
  expect(await client.resolve('apps/v1', 'Deployment')).toMatchObject({ plural: 'deployments', namespaced: true });
  expect(await client.resolve('v1', 'Namespace')).toMatchObject({ plural: 'namespaces', namespaced: false });
  expect(await client.resolve('tests.argocd-fleet.io/v1', 'Thing')).toBeUndefined();
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } };
  await client.create(crds, {
    metadata: { name: 'things.tests.argocd-fleet.io' },
    spec: {
      group: 'tests.argocd-fleet.io',
      names: { kind: 'Thing', plural: 'things' },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema, subresources: { status: {} } }],
    },
  });
  const things = await until('things to be served', () => client.resolve('tests.argocd-fleet.io/v1', 'Thing'));
  const thing = { metadata: { namespace, name: 't' }, spec: { a: 1 }, status: { b: 1 } };
  const made = await until('a thing', () => client.create(things, thing));
  expect(made).toMatchObject({ spec: { a: 1 } });
  expect(made).not.toHaveProperty('status');
  const status = { metadata: { namespace, name: 't' }, status: { b: 2 } };
  const changed = await client.mergePatch(
    things,
    thing.metadata,
    { spec: { a: 9 }, status: { b: 2 } },
    { subresource: 'status' },
  );
  expect(changed).toMatchObject({ spec: { a: 1 }, status: { b: 2 } });
  expect(await client.apply(things, status, { fieldManager: 'me', force: true, subresource: 'status' })).toMatchObject(
    status,
  );
});

test('a service account is known by its token and kept within its rights', async () => {
  await client.create(serviceAccounts, { metadata: { namespace, name: 'nobody' } });
  const kubeconfig = await cluster.kubeconfigFor({ serviceAccount: { namespace, name: 'nobody' } });
  const nobody = KubeClient.fromKubeconfig(kubeconfig);
  try {
    const error = await failure(nobody.list(namespaces));
    expect(isForbidden(error)).toBe(true);
    expect(String(error)).toContain('User "system:serviceaccount:default:nobody" cannot list resource "namespaces"');
  } finally {
    await nobody.close();
  }
});

test('a missing namespace is distinguished from a missing object', async () => {
  const error = await failure(client.create(configMaps, { metadata: { namespace: 'nowhere', name: 'a' } }));
  expect(isNotFound(error)).toBe(true);
  expect(String(error)).toContain('namespaces "nowhere" not found');
});

test('raw requests read responses that are not objects', async () => {
  const response = await client.request('/readyz?verbose');
  expect(await response.body.text()).toContain('readyz check passed');
});

test('equal events become a series, and refused ones are dropped in silence', async () => {
  const recorder = new EventRecorder({ client, component: 'test', instance: 'test-0', seriesIntervalMs: 50 });
  const about = await client.create(configMaps, { metadata: { namespace, name: 'about' } });
  try {
    recorder.warning(about, 'Broken', 'it is broken');
    recorder.normal({ ...about, metadata: { ...about.metadata, namespace: 'nowhere' } }, 'Lost', 'nobody reads this');
    const selector = { namespace, fieldSelector: 'reason=Broken' };
    await until(async () => expect(await client.list(events, selector)).toHaveLength(1));
    for (let i = 0; i < 9; i++) {
      recorder.warning(about, 'Broken', 'it is broken');
    }
    const event = await until('a series of ten', async () => {
      const [found] = await client.list(events, selector);
      expect(found?.series?.count).toBe(10);
      return found;
    });
    expect(event).toMatchObject({
      type: 'Warning',
      note: 'it is broken',
      reportingController: 'test',
      reportingInstance: 'test-0',
      regarding: { kind: 'ConfigMap', apiVersion: 'v1', namespace, name: 'about', uid: about.metadata.uid },
    });
    await until(() => expect(recorder.dropped).toBe(1));
  } finally {
    await recorder.close();
  }
});

test('leadership passes at once when it is released, and after the lease when the leader vanishes', async () => {
  const termMs = 15_000;
  const led: string[] = [];
  const errors: unknown[] = [];
  let leaders = 0;
  const candidate = (identity: string, by: KubeClient = client) => {
    const stop = new AbortController();
    const done = runWithLease({
      client: by,
      namespace,
      name: 'lease',
      identity,
      leaseDurationMs: termMs,
      renewDeadlineMs: 12_000,
      retryPeriodMs: 200,
      signal: stop.signal,
      lead: async (signal) => {
        led.push(identity);
        leaders++;
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        leaders--;
      },
    }).catch((error: unknown) => errors.push(error));
    return { stop, done };
  };
  const severed = KubeClient.fromKubeconfig(cluster.kubeconfig);
  const a = candidate('a');
  await until(() => expect(led).toEqual(['a']));
  const b = candidate('b', severed);
  a.stop.abort();
  await a.done;
  const releasedAt = performance.now();
  // The other one may have it already.
  expect(['', 'b']).toContain((await client.get(leases, { namespace, name: 'lease' }))?.spec?.holderIdentity);
  await until(() => expect(led).toEqual(['a', 'b']));
  // It has not waited for the end of the lease.
  expect(performance.now() - releasedAt).toBeLessThan(termMs);
  const c = candidate('c');
  await severed.close(); // b cannot renew any more
  await until(() => expect(led).toEqual(['a', 'b', 'c']));
  expect(leaders).toBe(1);
  await b.done;
  expect(errors).toMatchObject([{ name: 'LeadershipLostError', code: 'LEADERSHIP_LOST' }]);
  const lease = await client.get(leases, { namespace, name: 'lease' });
  expect(lease?.spec).toMatchObject({ holderIdentity: 'c', leaseTransitions: 2, leaseDurationSeconds: termMs / 1000 });
  c.stop.abort();
  await c.done;
});
