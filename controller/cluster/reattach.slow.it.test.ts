import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { findCondition, isConditionTrue, type KubeObject, type OwnerReference } from '../../lib/kube/index.ts';
import {
  argoApplicationSets,
  argoCdApplications,
  gitOpsClusters,
  managedClusterAddOns,
  manifestWorks,
} from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

const hub = useHub(borrowCluster);
const cleanUpName = 'addon-argocd-agent-addon-pre-delete';
const workAgent = ['cluster.open-cluster-management.io/manifest-work-cleanup'];

/** Stages of a detachment at which the cluster is selected again. The tests act as its work agent. */
const stages: Readonly<Record<string, (cluster: string) => Promise<unknown>>> = {
  'the agent stays for deletions': (cluster) =>
    until(
      'the drain',
      async () => (await hub.addOn(cluster))?.metadata.annotations?.['apps.open-cluster-management.io/drain-until'],
    ),
  'the agent is being deleted': (cluster) => isTerminating(cluster, 'agent'),
  'Argo CD is being deleted': async (cluster) => {
    await isTerminating(cluster, 'agent');
    await hub.releaseWork(cluster, 'agent');
    await isTerminating(cluster, 'argocd');
  },
  'the clean-up runs': runsCleanUp,
  'the clean-up failed': async (cluster) => {
    await runsCleanUp(cluster);
    await hub.fixture.endCleanUp(cluster, 'JobFailed');
  },
  'the work of the CRDs is being deleted': cleanedUp,
  'the add-on is being deleted': async (cluster) => {
    const live = await hub.addOn(cluster);
    const finalizers = [...(live?.metadata.finalizers ?? []), 'example.com/held'];
    await hub.client.mergePatch(managedClusterAddOns, addOnKey(cluster), { metadata: { finalizers } });
    await cleanedUp(cluster);
    await hub.releaseWork(cluster, 'crds');
    await until('the add-on to go', async () => (await hub.addOn(cluster))?.metadata.deletionTimestamp);
  },
  'the clean-up itself is being deleted': async (cluster) => {
    await cleanedUp(cluster);
    await hub.client.mergePatch(
      manifestWorks,
      { namespace: cluster, name: cleanUpName },
      { metadata: { finalizers: workAgent } },
    );
    await hub.releaseWork(cluster, 'crds');
    await until('the add-on to be gone', async () => (await hub.addOn(cluster)) === undefined);
  },
  'its detachment was forced, because it did not respond': async (cluster) => {
    await hub.fixture.clusterAvailable(cluster, 'Unknown');
    const annotations = { 'apps.open-cluster-management.io/force-detach': 'true' };
    await hub.client.mergePatch(managedClusterAddOns, addOnKey(cluster), { metadata: { annotations } });
    await until('the add-on to be gone', async () => (await hub.addOn(cluster)) === undefined);
  },
  'it is gone': async (cluster) => {
    await cleanedUp(cluster);
    await hub.releaseWork(cluster, 'crds');
    await until('nothing left', async () => (await works(cluster)).length === 0);
  },
};

const addOnKey = (cluster: string) => ({ namespace: cluster, name: 'argocd-agent-addon' });
const works = (cluster: string) => hub.client.list(manifestWorks, { namespace: cluster });

function isTerminating(cluster: string, part: string) {
  return until(`${part} of ${cluster} to go`, async () => (await hub.work(cluster, part))?.metadata.deletionTimestamp);
}

async function runsCleanUp(cluster: string) {
  await isTerminating(cluster, 'agent');
  await hub.releaseWork(cluster, 'agent');
  await isTerminating(cluster, 'argocd');
  await hub.releaseWork(cluster, 'argocd');
  await until('the clean-up', () => hub.client.get(manifestWorks, { namespace: cluster, name: cleanUpName }));
}

async function cleanedUp(cluster: string) {
  await runsCleanUp(cluster);
  await hub.fixture.endCleanUp(cluster);
  await isTerminating(cluster, 'crds');
}

/** Releases the works that are being deleted, as the work agent does at the end. */
async function releaseWorks(cluster: string): Promise<void> {
  for (const { metadata } of await works(cluster)) {
    if (!metadata.deletionTimestamp || !metadata.finalizers) {
      continue;
    }
    await hub.client.mergePatch(manifestWorks, metadata, { metadata: { finalizers: null } });
  }
}

/** Creates an Application of an ApplicationSet that has not deleted it yet: a connected agent stays for it. */
async function applicationFor(cluster: string): Promise<void> {
  const namespace = hub.ns;
  const template = { metadata: { name: '{{name}}' }, spec: { project: 'default', destination: {} } };
  const set = (await hub.client.create(argoApplicationSets, {
    metadata: { namespace, name: 'set' },
    spec: { generators: [], template },
  } as KubeObject)) as KubeObject;
  const owner: OwnerReference = {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'ApplicationSet',
    name: 'set',
    uid: set.metadata.uid ?? '',
    controller: true,
  };
  const source = { repoURL: 'https://example.com/repository.git', path: '.' };
  const spec = { project: 'default', source, destination: { name: cluster, namespace: 'default' } };
  const metadata = { namespace, name: 'of-set', ownerReferences: [owner] };
  await hub.client.create(argoCdApplications, { metadata, spec } as KubeObject);
}

test.each(['goes on running', 'is another one by then'])(
  'ocm defect M2: ocm defect M9: ocm defect H7: a cluster that is selected again at any stage of its detachment works again, and is not reported as working before (the controller %s)',
  async (controller) => {
    const { ns } = hub;
    const names = Object.keys(stages);
    const clusters = names.map((_, index) => `${ns}-${index}`);
    const [first = ''] = clusters;
    for (const cluster of clusters) {
      await hub.fixture.managedCluster(cluster);
    }
    await hub.fixture.placement(ns, 'placement', clusters);
    await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
    hub.start();
    await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
    await Promise.all(clusters.map((cluster) => hub.holdWorks(cluster)));
    await applicationFor(first);
    await hub.fixture.agentConnected(ns, first);
    await until('the connection to be seen', async () =>
      isConditionTrue((await hub.addOn(first))?.status?.conditions, 'AgentConnected'),
    );

    await hub.fixture.placement(ns, 'placement', []);
    await Promise.all(names.map((name, index) => stages[name]?.(clusters[index] ?? '')));
    if (controller !== 'goes on running') {
      await hub.stop();
    }
    await hub.fixture.placement(ns, 'placement', clusters);
    if (controller !== 'goes on running') {
      hub.start();
    }
    await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'False', /must first remove ManifestWork/);
    await hub.idle();
    for (const cluster of clusters) {
      const isWhole = (await works(cluster)).every(({ metadata }) => metadata.deletionTimestamp === undefined);
      const said = (await hub.addOn(cluster))?.status?.conditions;
      if (!isWhole) {
        expect(isConditionTrue(said, 'Available'), `${cluster} ${JSON.stringify(said)}`).toBe(false);
      }
    }

    for (const cluster of clusters) {
      await hub.fixture.clusterAvailable(cluster, 'True');
    }
    const held = clusters[names.indexOf('the add-on is being deleted')] ?? '';
    await hub.client.mergePatch(managedClusterAddOns, addOnKey(held), { metadata: { finalizers: null } });
    await until('the clusters to have everything', async () => {
      await Promise.all(clusters.map(releaseWorks));
      const found = await Promise.all(clusters.map(works));
      return found.every(
        (list) =>
          list.map(({ metadata }) => metadata.name).join() === [...workNames].sort().join() &&
          list.every(({ metadata }) => metadata.deletionTimestamp === undefined),
      );
    });
    await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'True');
    await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
    await hub.fixture.agentConnected(ns, first);
    for (const cluster of clusters) {
      for (const { metadata } of await works(cluster)) {
        await hub.fixture.reportWork(cluster, metadata.name);
      }
      await hub.fixture.agentConnected(ns, cluster);
    }
    const all = new RegExp(`^${clusters.length} of ${clusters.length} clusters available, ${clusters.length} of`);
    await hub.fixture.conditionIs([ns, 'fleet'], 'ClustersReady', 'True', all);
    await hub.idle();
    for (const cluster of clusters) {
      const addOn = await hub.addOn(cluster);
      expect(Object.keys(addOn?.metadata.annotations ?? {}), cluster).not.toContain(
        'apps.open-cluster-management.io/detaching',
      );
      expect(findCondition(addOn?.status?.conditions, 'HookManifestCompleted'), cluster).toBeUndefined();
      expect(findCondition(addOn?.status?.conditions, 'Progressing'), cluster).toMatchObject({ reason: 'Completed' });
      for (const name of [`cluster-${cluster}`, `argocd-cluster-client-${cluster}`, `argocd-agent-addon-${cluster}`]) {
        expect(await hub.secret(name), name).toBeDefined();
      }
    }
    await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
    const ends = clusters.map((cluster) => hub.fixture.endCleanUp(cluster));
    await until('everything to be left', async () => {
      await Promise.all(clusters.map(releaseWorks));
      return (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' })) === undefined;
    });
    await Promise.all(ends);
    for (const cluster of clusters) {
      expect(await works(cluster)).toEqual([]);
    }
  },
  300_000,
);
