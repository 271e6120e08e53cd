import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { deployments, type KubeObject, pods, resourceType, secrets } from '../../lib/kube/index.ts';
import {
  type FleetMember,
  fleetApplicationSets,
  fleetApplications,
  guestbookFiles,
  guestbookRepository,
  guestbookSet,
  isSyncedAndHealthy,
  type RunningFleet,
  startFleet,
} from '../fleet/index.ts';
import { pullChart, restrictedRefusals } from '../hub/index.ts';
import { ocmManifestWorks } from '../ocm/index.ts';
import { RightsReview } from '../rights/index.ts';
import { waitForObject, waitForObjects } from '../testbed/index.ts';
import { endlessHook, terminateHangingSync } from './hanging-sync.ts';

const argocd = 'argocd';
const release = 'argocd-pull-integration';
const group = 'apps.open-cluster-management.io';
const generous = { timeoutMs: 300_000 };
const one = { namespace: argocd, name: 'guestbook-cluster1' };

const addOnTemplates = resourceType<KubeObject & { spec: { agentSpec: { workload: { manifests: KubeObject[] } } } }>({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'AddOnTemplate',
  plural: 'addontemplates',
  namespaced: false,
});

/** What may be given without being used here, with the reason. */
const reserves: Readonly<Record<string, string>> = {
  'ClusterRole argocd-pull-integration: patch events.events.k8s.io': 'an event that happens again',
  'ClusterRole argocd-pull-integration: create events.events.k8s.io': 'an Application that is wrong',
  'ClusterRole argocd-pull-integration: get applications.argoproj.io': 'an Application that loses its label',
  'Role argocd-pull-integration: delete secrets in argocd': 'a cluster that leaves',
};

let fleet: RunningFleet;
let member: FleetMember;
let review: RightsReview;
beforeAll(async () => {
  fleet = await startFleet({ clusters: 1, audit: true });
  const [only] = fleet.members.values();
  if (!only) {
    throw new Error('no managed cluster');
  }
  member = only;
  await fleet.git.commit(guestbookRepository, guestbookFiles('Hello'), 'A guestbook');
  review = await RightsReview.start({
    controller: [{ cluster: fleet.hub, account: { namespace: argocd, name: release } }],
  });
});
afterAll(async () => {
  await review?.stop();
  await fleet?.stop();
});
beforeEach(() => onTestFailed(async () => console.error(fleet ? await fleet.logs() : 'the fleet did not start')));

test('helm install and helm test: the controller runs, and its pods are what the restricted standard admits', async () => {
  const { hub } = fleet;
  await fleet.helm('install', release, pullChart, '--namespace', argocd, '--wait', '--timeout', '5m');
  await fleet.helm('test', release, '--namespace', argocd, '--timeout', '5m');
  const found = await hub.client.get(deployments, { namespace: argocd, name: release });
  const spec = found?.spec?.template?.spec;
  expect(spec && (await restrictedRefusals(hub.client, argocd, [{ of: release, spec }]))).toEqual([]);
  const secret = await waitForObject(hub.client, secrets, { namespace: argocd, name: 'cluster1-secret' }, Boolean);
  expect(Buffer.from(secret?.data?.name ?? '', 'base64').toString()).toBe('cluster1');
});

test('helm upgrade to two controllers keeps the secrets of the clusters’ Argo CD', async () => {
  const template = () => fleet.hub.client.get(addOnTemplates, { name: argocd });
  const before = (await template())?.spec;
  const more = ['--set', 'replicas=2', '--wait', '--timeout', '5m'];
  await fleet.helm('upgrade', release, pullChart, '--namespace', argocd, ...more);
  expect((await template())?.spec).toEqual(before);
});

test('an ApplicationSet over the Placement is deployed by the cluster’s own Argo CD, and its state comes back', async () => {
  const { hub, git } = fleet;
  // What OCM's add-on manager makes of the template when the cluster has a ManagedClusterAddOn `argocd`.
  const template = await hub.client.get(addOnTemplates, { name: argocd });
  const manifests = template?.spec.agentSpec.workload.manifests ?? [];
  await hub.client.create(ocmManifestWorks, {
    metadata: { namespace: 'cluster1', name: 'addon-argocd-deploy-0' },
    spec: { workload: { manifests } },
  });
  // OCM writes one condition after the other.
  const delivered = { namespace: 'cluster1', name: 'addon-argocd-deploy-0' };
  await waitForObject(hub.client, ocmManifestWorks, delivered, (work) =>
    ['Applied', 'Available'].every((wanted) =>
      work?.status?.conditions?.some(({ type, status }) => type === wanted && status === 'True'),
    ),
  );
  const set = guestbookSet(git.url(guestbookRepository)) as KubeObject & {
    spec: {
      generators: [{ clusterDecisionResource: { labelSelector: object } }];
      template: { metadata: object; spec: object };
    };
  };
  const [{ clusterDecisionResource }] = set.spec.generators;
  clusterDecisionResource.labelSelector = {
    matchLabels: { 'cluster.open-cluster-management.io/placement': 'app-placement' },
  };
  Object.assign(set.spec.template.metadata, {
    labels: { [`${group}/pull-to-ocm-managed-cluster`]: 'true' },
    annotations: {
      [`${group}/ocm-managed-cluster`]: '{{name}}',
      [`${group}/ocm-managed-cluster-app-namespace`]: argocd,
      'argocd.argoproj.io/skip-reconcile': 'true',
    },
    finalizers: ['resources-finalizer.argocd.argoproj.io'],
  });
  Object.assign(set.spec.template.spec, {
    destination: { server: 'https://kubernetes.default.svc', namespace: guestbookRepository },
  });
  await hub.client.create(fleetApplicationSets, set);
  const deployed = await waitForObject(hub.client, fleetApplications, one, isSyncedAndHealthy, generous);
  expect(deployed?.spec?.destination).toEqual({
    server: 'https://kubernetes.default.svc',
    namespace: guestbookRepository,
  });
  expect(deployed?.status?.history).toHaveLength(1);
  const running = await member.cluster.client.list(deployments, { namespace: guestbookRepository });
  expect(running.map(({ metadata }) => metadata.name)).toEqual(['guestbook']);
  // Argo CD's ApplicationSet controller adds up what the Applications say.
  await waitForObject(
    hub.client,
    fleetApplicationSets,
    set.metadata,
    (now) => {
      const { resources = [] } =
        (now as { status?: { resources?: { status?: string; health?: { status?: string } }[] } })?.status ?? {};
      return resources.length === 1 && resources[0]?.status === 'Synced' && resources[0].health?.status === 'Healthy';
    },
    generous,
  );
});

test('a sync that is asked for on the hub runs once on the cluster', async () => {
  const { hub } = fleet;
  const deployed = async () =>
    ((await member.cluster.client.get(fleetApplications, one))?.status?.history as unknown[] | undefined)?.length ?? 0;
  const before = await deployed();
  await hub.client.mergePatch(fleetApplications, one, { operation: { sync: { revision: 'main' } } });
  const done = await waitForObject(
    hub.client,
    fleetApplications,
    one,
    (now) => now !== undefined && now.operation === undefined && isSyncedAndHealthy(now),
    generous,
  );
  expect(done?.status?.operationState).toMatchObject({
    phase: 'Succeeded',
    operation: { sync: { revision: 'main' } },
    syncResult: { revision: expect.stringMatching(/^[0-9a-f]{40}$/) },
  });
  expect(await deployed()).toBe(before + 1);
});

test('a sync that hangs on the cluster is terminated from the hub', async () => {
  const { hub, git } = fleet;
  const key = { namespace: argocd, name: 'stuck' };
  await git.commit('stuck', { 'app/hook.yaml': endlessHook }, 'A hook without end');
  await hub.client.create(fleetApplications, {
    metadata: {
      ...key,
      labels: { [`${group}/pull-to-ocm-managed-cluster`]: 'true' },
      annotations: {
        [`${group}/ocm-managed-cluster`]: 'cluster1',
        [`${group}/ocm-managed-cluster-app-namespace`]: argocd,
        'argocd.argoproj.io/skip-reconcile': 'true',
      },
      finalizers: ['resources-finalizer.argocd.argoproj.io'],
    },
    spec: {
      project: 'default',
      source: { repoURL: git.url('stuck'), path: 'app', targetRevision: 'main' },
      destination: { server: 'https://kubernetes.default.svc', namespace: 'stuck' },
    },
  });
  await terminateHangingSync({ from: hub.client, key, on: member.cluster.client, copy: key });
  await hub.client.delete(fleetApplications, key);
  await waitForObject(hub.client, fleetApplications, key, (now) => now === undefined, generous);
});

test('with the ApplicationSet everything goes, and rights are what is used', async () => {
  const { hub } = fleet;
  await hub.client.delete(fleetApplicationSets, { namespace: argocd, name: 'guestbook' });
  await waitForObjects(hub.client, fleetApplications, generous, (left) => left.length === 0);
  const labelled = (await hub.client.list(ocmManifestWorks)).filter(
    ({ metadata }) => metadata.labels?.[`${group}/pull-to-ocm-managed-cluster`],
  );
  expect(labelled).toEqual([]);
  expect(await member.cluster.client.list(fleetApplications)).toEqual([]);
  expect(await member.cluster.client.list(deployments, { namespace: guestbookRepository })).toEqual([]);
  const [conduct] = await review.conduct();
  expect(conduct?.refused).toEqual([]);
  expect(conduct?.superfluous.filter((what) => reserves[what] === undefined)).toEqual([]);
  await fleet.helm('uninstall', release, '--namespace', argocd, '--wait', '--timeout', '5m');
  const isOurs = ({ metadata }: KubeObject) => metadata.labels?.['app.kubernetes.io/instance'] === release;
  await waitForObjects(hub.client, pods, { ...generous, namespace: argocd }, (left) => !left.some(isOurs));
});
