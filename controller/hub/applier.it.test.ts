import { afterAll, beforeAll, expect, test } from 'vitest';
import { installCrds, ocmCrds } from '../../e2e/hub/index.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { type KubeClient, type KubeObject, secrets } from '../../lib/kube/index.ts';
import { Applier, type EnsureOptions, ForeignObjectError } from './applier.ts';
import { managedBy } from './names.ts';
import { type ManifestWork, manifestWorks } from './ocm-kinds.ts';

let cluster: SharedCluster;
let writes: string[] = [];
let client: KubeClient;
beforeAll(async () => {
  cluster = await borrowCluster({ name: 'hub' });
  await installCrds(cluster.client, await ocmCrds('hub'));
  client = new Proxy(cluster.client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') {
        return value;
      }
      return (...args: unknown[]) => {
        writes.push(String(name));
        return value.apply(target, args);
      };
    },
  });
});
afterAll(() => cluster?.stop());

const ours = { [wellKnown.managedByLabel]: managedBy };
const options: EnsureOptions = {
  exact: ['spec.workload'],
  createAndMergePatch: [
    ['metadata', 'annotations', 'when'],
    ['spec', 'workload'],
    ['spec', 'manifestConfigs'],
    ['spec', 'deleteOption'],
  ],
};
const configMap = (name: string, data: object): KubeObject =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'shop', name }, data }) as KubeObject;
const resourceIdentifier = { group: '', resource: 'configmaps', namespace: 'shop', name: 'a' };
const orphaningRules = [{ group: '', resource: 'namespaces', name: 'shop' }];

function work(name: string, spec: Partial<ManifestWork['spec']>, metadata: Partial<KubeObject['metadata']> = {}) {
  const manifests = [configMap('a', { text: 'one' })];
  return {
    metadata: { namespace: 'default', name, labels: ours, ...metadata },
    spec: { workload: { manifests }, ...spec },
  } satisfies ManifestWork;
}

async function live(name: string): Promise<ManifestWork> {
  const found = await cluster.client.get(manifestWorks, { namespace: 'default', name });
  if (found === undefined) {
    throw new Error(`there is no work ${name}`);
  }
  delete found.metadata.managedFields;
  return found;
}

/** Calls `ensure` with a cached object and returns the requests that it made. */
async function ensure(applier: Applier, desired: ManifestWork, cached?: ManifestWork): Promise<string[]> {
  writes = [];
  await applier.ensure(manifestWorks, desired, cached, options);
  return writes;
}

test('one request creates an object, without a read before', async () => {
  const applier = new Applier(client);
  const desired = work('made', { deleteOption: { propagationPolicy: 'Orphan' } });
  writes = [];
  const { object, changed } = await applier.ensure(manifestWorks, desired, undefined, options);
  expect({ changed, writes }).toEqual({ changed: true, writes: ['create'] });
  const found = await live('made');
  expect(object).toMatchObject({ metadata: found.metadata, spec: found.spec });
  // The cache does not show it yet: it is read, not created again.
  expect(await ensure(applier, desired)).toEqual(['get']);
  expect(await ensure(applier, desired, found)).toEqual([]);
});

test('fields no longer desired are removed, fields of others stay', async () => {
  const applier = new Applier(client);
  const first = work(
    'changed',
    {
      manifestConfigs: [{ resourceIdentifier, updateStrategy: { type: 'CreateOnly' } }],
      deleteOption: { propagationPolicy: 'SelectivelyOrphan', selectivelyOrphans: { orphaningRules } },
    },
    { annotations: { when: 'then', kept: 'a' } },
  );
  await ensure(applier, first);
  const theirs = { metadata: { labels: { team: 'x' }, annotations: { theirs: 'yes' } } };
  const seen = await cluster.client.mergePatch(manifestWorks, first.metadata, theirs);
  const manifests = [configMap('b', { other: 'two' })];
  const deleteOption = { propagationPolicy: 'Orphan' } as const;
  const second = work('changed', { workload: { manifests }, deleteOption }, { annotations: { kept: 'b' } });
  // Another controller, which has not written the object.
  expect(await ensure(new Applier(client), second, seen)).toEqual(['patch']);
  const found = await live('changed');
  expect(found.spec).toEqual({ workload: { manifests }, deleteOption });
  expect(found.metadata.annotations).toEqual({ kept: 'b', theirs: 'yes' });
  expect(found.metadata.labels).toEqual({ ...ours, team: 'x' });
  expect(await ensure(new Applier(client), second, found)).toEqual([]);
});

test('an object made by server-side apply is changed in the same way', async () => {
  const first = work('applied', { manifestConfigs: [{ resourceIdentifier }] }, { annotations: { when: 'then' } });
  const { createAndMergePatch: _, ...shared } = options;
  await new Applier(client).ensure(manifestWorks, first, undefined, shared);
  const second = work('applied', { workload: { manifests: [configMap('b', {})] } });
  expect(await ensure(new Applier(client), second, await live('applied'))).toEqual(['patch']);
  const found = await live('applied');
  expect(found.spec).toEqual(second.spec);
  expect(found.metadata.annotations ?? {}).toEqual({});
});

test('an object missing in the cache is read before it is changed', async () => {
  await ensure(new Applier(client), work('there', {}));
  const desired = work('there', {});
  expect(await ensure(new Applier(client), desired)).toEqual(['create', 'get']);
  const other = work('there', { workload: { manifests: [configMap('b', {})] } });
  expect(await ensure(new Applier(client), other)).toEqual(['create', 'get', 'patch']);
  expect((await live('there')).spec.workload).toEqual(other.spec.workload);
});

test('an object deleted in the meantime is created again', async () => {
  const applier = new Applier(client);
  await ensure(applier, work('gone', {}));
  const seen = await live('gone');
  await cluster.client.delete(manifestWorks, seen.metadata);
  const desired = work('gone', { workload: { manifests: [configMap('b', {})] } });
  expect(await ensure(applier, desired, seen)).toEqual(['patch', 'create']);
  expect((await live('gone')).spec.workload).toEqual(desired.spec.workload);
});

test('an object of somebody else stays as it is, and the error names it', async () => {
  const theirs = work('theirs', {}, { labels: {} });
  await cluster.client.create(manifestWorks, theirs);
  const desired = work('theirs', { workload: { manifests: [configMap('b', {})] } });
  await expect(ensure(new Applier(client), desired)).rejects.toThrow(ForeignObjectError);
  await expect(ensure(new Applier(client), desired, await live('theirs'))).rejects.toThrow(
    /ManifestWork default\/theirs exists and was not made by this controller/,
  );
  expect((await live('theirs')).spec.workload).toEqual(theirs.spec.workload);
});

test('a field that the server drops is not written again and again', async () => {
  const unknown = { manifestConfigs: [{ resourceIdentifier, fromTheFuture: true }] };
  const desired = work('old', unknown as Partial<ManifestWork['spec']>);
  const applier = new Applier(client);
  await ensure(applier, desired);
  const before = await live('old');
  // One write: only the server knows that it drops the field.
  await ensure(applier, desired, before);
  const found = await live('old');
  expect(found.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  expect(await ensure(applier, desired, found)).toEqual([]);
});

test('a Secret is read once before it is created', async () => {
  const applier = new Applier(client);
  const key = { namespace: 'default', name: 'secret' };
  writes = [];
  const before = await applier.current(secrets, key, undefined);
  await applier.change(secrets, { metadata: { ...key, labels: ours }, data: {} }, before, { exact: ['data'] });
  expect(writes).toEqual(['get', 'apply']);
});
