import { afterAll, beforeAll, expect, it } from 'vitest';
import { configMaps, namespaces } from '../../lib/kube/index.ts';
import { installCrds, ocmCrds } from '../hub/index.ts';
import { startTestbed, type Testbed, waitForObject, waitForObjects } from '../testbed/index.ts';
import {
  appliedManifestWorks,
  type Membership,
  managedClusterSetBindings,
  type Ocm,
  type OcmManifestWork,
  ocmManagedClusters,
  ocmManifestWorks,
  ocmPlacementDecisions,
  ocmPlacements,
  startOcm,
} from './index.ts';

let testbed: Testbed;
let ocm: Ocm;
let member: Membership;

beforeAll(async () => {
  testbed = await startTestbed({ clusters: 1 });
  await installCrds(testbed.hub.client, await ocmCrds('hub'));
  ocm = await startOcm(testbed.hub, { leaseDurationSeconds: 1 });
  member = await ocm.join(managed(), { fleet: 'yes' });
});
afterAll(async () => {
  await ocm?.stop();
  await testbed?.stop();
});

const managed = () => {
  const [cluster] = testbed.managed;
  if (!cluster) {
    throw new Error('no managed cluster');
  }
  return cluster;
};
const configMap = (name: string, data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data,
});
const work = (name: string, spec: OcmManifestWork['spec']): OcmManifestWork => ({
  metadata: { name, namespace: 'cluster1' },
  spec,
});
const isApplied = (w: OcmManifestWork | undefined) =>
  w?.status?.conditions?.some(
    (c) => c.type === 'Applied' && c.status === 'True' && c.observedGeneration === w.metadata.generation,
  ) ?? false;

it('schedules a placement, follows the labels of clusters and the leases of their agents', async () => {
  const { client } = testbed.hub;
  await client.create(managedClusterSetBindings, {
    metadata: { name: 'global', namespace: 'default' },
    spec: { clusterSet: 'global' },
  });
  const labelSelector = { matchLabels: { fleet: 'yes' } };
  await client.create(ocmPlacements, {
    metadata: { name: 'all', namespace: 'default' },
    spec: { predicates: [{ requiredClusterSelector: { labelSelector } }] },
  });
  const decided = (names: string[]) =>
    waitForObject(client, ocmPlacementDecisions, { namespace: 'default', name: 'all-decision-1' }, (d) => {
      const found = d?.status?.decisions.map((x) => x.clusterName);
      return JSON.stringify(found) === JSON.stringify(names);
    });
  await decided(['cluster1']);
  await client.mergePatch(ocmManagedClusters, { name: 'cluster1' }, { metadata: { labels: { fleet: 'no' } } });
  await decided([]);
  await client.mergePatch(ocmManagedClusters, { name: 'cluster1' }, { metadata: { labels: { fleet: 'yes' } } });
  await decided(['cluster1']);
  await member.disconnect();
  await decided([]);
  await member.reconnect();
  await decided(['cluster1']);
});

it('names the decision groups of a placement, and follows a change of them', async () => {
  const { client } = testbed.hub;
  const placement = { name: 'grouped', namespace: 'default' };
  const inGroup = (groupName: string) => ({
    decisionStrategy: {
      groupStrategy: {
        decisionGroups: [{ groupName, groupClusterSelector: { labelSelector: { matchLabels: { fleet: 'yes' } } } }],
      },
    },
  });
  const label = (name: string) => `cluster.open-cluster-management.io/decision-group-${name}`;
  const decided = async (group: string) => {
    await waitForObject(client, ocmPlacementDecisions, { ...placement, name: 'grouped-decision-1' }, (d) => {
      const { [label('index')]: index, [label('name')]: name } = d?.metadata.labels ?? {};
      return index === '0' && name === group && d?.status?.decisions?.[0]?.clusterName === 'cluster1';
    });
    await waitForObject(client, ocmPlacements, placement, (found) => {
      const [first, ...more] = (found?.status?.decisionGroups ?? []) as Record<string, unknown>[];
      return (
        more.length === 0 &&
        (first?.decisionGroupIndex ?? 0) === 0 &&
        first?.decisionGroupName === group &&
        first.clusterCount === 1 &&
        JSON.stringify(first.decisions) === '["grouped-decision-1"]'
      );
    });
  };
  await client.create(ocmPlacements, { metadata: placement, spec: inGroup('canary') });
  await decided('canary');
  await client.mergePatch(ocmPlacements, placement, { spec: inGroup('everybody') });
  await decided('everybody');
});

it('applies a work, repairs it, drops what is no longer in it, and removes everything with it', async () => {
  const { client } = testbed.hub;
  const spoke = managed().client;
  const first = configMap('first', { a: '1' });
  await client.create(ocmManifestWorks, work('w', { workload: { manifests: [first, configMap('second', {})] } }));
  await waitForObject(client, ocmManifestWorks, { namespace: 'cluster1', name: 'w' }, isApplied);
  // OCM's agent says that a work is applied before it writes down what it applied.
  const [record] = await waitForObjects(spoke, appliedManifestWorks, {}, ([found]) => {
    const names = found?.status?.appliedResources?.map((r) => r.name);
    return JSON.stringify(names) === '["first","second"]';
  });
  const live = await spoke.get(configMaps, { namespace: 'default', name: 'first' });
  expect(live?.metadata.ownerReferences?.[0]).toMatchObject({
    kind: 'AppliedManifestWork',
    name: record?.metadata.name,
  });

  const changed = { spec: { workload: { manifests: [configMap('first', { a: '2' })] } } };
  await client.mergePatch(ocmManifestWorks, { namespace: 'cluster1', name: 'w' }, changed);
  await waitForObject(spoke, configMaps, { namespace: 'default', name: 'first' }, (c) => c?.data?.a === '2');
  await waitForObject(spoke, configMaps, { namespace: 'default', name: 'second' }, (c) => c === undefined);

  await client.delete(ocmManifestWorks, { namespace: 'cluster1', name: 'w' });
  await waitForObject(client, ocmManifestWorks, { namespace: 'cluster1', name: 'w' }, (w) => w === undefined);
  expect(await spoke.get(configMaps, { namespace: 'default', name: 'first' })).toBeUndefined();
  expect(await spoke.list(appliedManifestWorks)).toEqual([]);
});

it('leaves orphans, reads feedback, and says what is forbidden', async () => {
  const { client } = testbed.hub;
  const spoke = managed().client;
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kept' } };
  await client.create(
    ocmManifestWorks,
    work('w2', {
      workload: { manifests: [namespace, configMap('mine', {})] },
      deleteOption: {
        propagationPolicy: 'SelectivelyOrphan',
        selectivelyOrphans: { orphaningRules: [{ group: '', resource: 'namespaces', name: 'kept' }] },
      },
      manifestConfigs: [
        {
          resourceIdentifier: { group: '', resource: 'namespaces', name: 'kept' },
          feedbackRules: [{ type: 'JSONPaths', jsonPaths: [{ name: 'phase', path: '.status.phase' }] }],
          feedbackScrapeType: 'Watch',
        },
      ],
    }),
  );
  await waitForObject(client, ocmManifestWorks, { namespace: 'cluster1', name: 'w2' }, (w) =>
    (w?.status?.resourceStatus?.manifests ?? []).some(
      (m) => m.statusFeedback.values?.[0]?.fieldValue.string === 'Active',
    ),
  );
  await client.delete(ocmManifestWorks, { namespace: 'cluster1', name: 'w2' });
  await waitForObject(client, ocmManifestWorks, { namespace: 'cluster1', name: 'w2' }, (w) => w === undefined);
  expect(await spoke.get(namespaces, { name: 'kept' })).toBeDefined();
  expect(await spoke.get(configMaps, { namespace: 'default', name: 'mine' })).toBeUndefined();

  // OCM grants the webhook configurations, for example, but not this.
  const storage = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'x' },
    provisioner: 'example.com/x',
  };
  await client.create(ocmManifestWorks, work('w3', { workload: { manifests: [storage] } }));
  const refused = await waitForObject(client, ocmManifestWorks, { namespace: 'cluster1', name: 'w3' }, (w) =>
    (w?.status?.conditions ?? []).some((c) => c.type === 'Applied' && c.status === 'False'),
  );
  expect(refused?.status?.resourceStatus?.manifests?.[0]?.conditions[0]?.message).toMatch(
    /forbidden: User "system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa" cannot get resource/,
  );
});

it('refuses a work above 500 KiB as the webhook of OCM does', async () => {
  const manifests = [configMap('big', { a: 'x'.repeat(300_000) }), configMap('more', { a: 'x'.repeat(300_000) })];
  await expect(testbed.hub.client.create(ocmManifestWorks, work('big', { workload: { manifests } }))).rejects.toThrow(
    /exceeds the 512000 limit/,
  );
});
