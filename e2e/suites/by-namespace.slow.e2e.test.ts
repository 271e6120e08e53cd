import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { clusterRoleBindings, clusterRoles, configMaps, secrets, serviceAccounts } from '../../lib/kube/index.ts';
import {
  type FleetApplication,
  fleetApplications,
  fleetAppProjects,
  fleetGitOpsClusters,
  guestbookValues,
  isSyncedAndHealthy,
  type SharedFleet,
  selectedClusters,
} from '../fleet/index.ts';
import { hubArgoCdChart } from '../hub/index.ts';
import { startTestFleet } from '../provider/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { operationOf } from './hanging-sync.ts';
import { HubArgoCd } from './hub-argocd.ts';
import { describeTickers, ticker, tickerFiles, tickerSpec } from './ticker.ts';

// A fleet whose Applications are in namespaces that are named like their clusters.

const onHub = { namespace: 'cluster1', name: ticker };
const onCluster = { namespace: 'argocd', name: ticker };
/** An Application of the hub itself, which makes one for the cluster. */
const apps = { namespace: 'argocd', name: 'apps' };
const child = { namespace: 'cluster1', name: 'child' };
const patient = { timeoutMs: 240_000 };

let fleet: SharedFleet;
let argoCd: HubArgoCd;
const far = () => {
  const member = fleet.members.get('cluster1');
  if (!member) {
    throw new Error('the fleet has no cluster1');
  }
  return member.cluster.client;
};

beforeAll(async () => {
  fleet = await startTestFleet({ clusters: 1, labels: selectedClusters });
  await fleet.git.commit(ticker, tickerFiles, 'A ticker');
  await fleet.install({
    ...guestbookValues,
    principal: { ...guestbookValues.principal, destinationBasedMapping: false },
  });
  await waitForObject(
    fleet.hub.client,
    fleetGitOpsClusters,
    { namespace: 'argocd', name: 'gitops-cluster' },
    (found) => found?.status?.clusters?.connected === 1,
    { timeoutMs: 300_000 },
  );
  // As Argo CD asks for it of Applications outside its own namespace.
  const project = { namespace: 'argocd', name: 'default' };
  await waitForObject(fleet.hub.client, fleetAppProjects, project, Boolean);
  await fleet.hub.client.mergePatch(fleetAppProjects, project, { spec: { sourceNamespaces: ['cluster1'] } });
  await fleet.hub.client.create(fleetApplications, {
    metadata: onHub,
    spec: tickerSpec(fleet.git.url(ticker), 'cluster1'),
  });
  await fleet.git.commit('apps', appsFiles(fleet.git.url('apps')), 'An app of apps');
  await fleet.hub.client.create(fleetApplications, {
    metadata: apps,
    spec: {
      project: 'default',
      source: { repoURL: fleet.git.url('apps'), path: 'apps', targetRevision: 'main' },
      destination: { name: 'in-cluster', namespace: 'argocd' },
      syncPolicy: { automated: { prune: true } },
    },
  });
  await waitForObject(fleet.hub.client, fleetApplications, onHub, isSyncedAndHealthy, patient);
  if (fleet.local) {
    argoCd = await HubArgoCd.login(fleet.local);
  }
});
afterAll(async () => {
  argoCd?.close();
  await fleet?.stop();
});
beforeEach(({ skip }) => {
  skip(!fleet.local, 'this machine reaches the API server of Argo CD on its own clusters only');
  onTestFailed(async () => console.error(await fleet.logs(80)));
});

describeTickers([{ cluster: 'cluster1', key: onHub, project: 'default', far }], () => argoCd);

describe('rules of the AppProject that name the cluster', () => {
  const project = { namespace: 'argocd', name: 'default' };
  const settings = { namespace: ticker, name: 'settings' };
  const setRules = (spec: Partial<Record<'syncWindows' | 'destinationServiceAccounts', object[] | null>>) =>
    fleet.hub.client.mergePatch(fleetAppProjects, project, { spec });
  const commitColour = (colour: string) =>
    fleet.git.commit(
      ticker,
      { 'app/settings.yaml': tickerFiles['app/settings.yaml'].replace('red', colour) },
      `The colour is ${colour}`,
    );
  const look = () =>
    fleet.hub.client.mergePatch(fleetApplications, onHub, {
      metadata: { annotations: { 'argocd.argoproj.io/refresh': 'hard' } },
    });
  const synchronise = () =>
    fleet.hub.client.mergePatch(fleetApplications, onHub, { operation: { sync: { revision: 'main' } } });
  const colour = async () => (await far().get(configMaps, settings))?.data?.colour;
  const becomes = (wanted: string) =>
    waitForObject(far(), configMaps, settings, (found) => found?.data?.colour === wanted, patient);

  test('a freeze on the hub holds on the cluster: its Argo CD refuses automated and manual syncs until it is over', async () => {
    const server = Buffer.from(
      (await fleet.hub.client.get(secrets, { namespace: 'argocd', name: 'cluster-cluster1' }))?.data?.server ?? '',
      'base64',
    ).toString();
    expect(server).toContain('agentName=cluster1');
    const freeze = (cluster: string, hours: number) => ({
      kind: 'deny',
      schedule: '* * * * *',
      duration: `${hours}h`,
      clusters: [cluster],
    });
    await setRules({
      syncWindows: [
        freeze('cluster1', 1),
        freeze(server, 2),
        freeze('https://*agentName=cluster1*', 3),
        freeze('cluster2', 4),
      ],
    });
    const frozen = await waitForObject(
      far(),
      fleetAppProjects,
      project,
      (found) => found?.spec.syncWindows?.length === 3,
    );
    expect(frozen?.spec.syncWindows).toEqual([1, 2, 3].map((hours) => freeze('in-cluster', hours)));

    const revision = await commitColour('green');
    await look();
    // Argo CD decides about an automated sync before it writes that the Application is out of sync.
    const noticed = await waitForObject(
      far(),
      fleetApplications,
      onCluster,
      (found) => found?.status?.sync?.status === 'OutOfSync' && found.status.sync.revision === revision,
      patient,
    );
    expect(noticed?.operation).toBeUndefined();
    expect(JSON.stringify(noticed?.status?.operationState ?? {})).not.toContain(revision);

    await synchronise();
    await waitForObject(
      fleet.hub.client,
      fleetApplications,
      onHub,
      (found) => operationOf(found)?.message === 'Sync operation blocked by sync window',
      patient,
    );
    expect(await colour()).toBe('red');

    await setRules({ syncWindows: null });
    await waitForObject(far(), fleetAppProjects, project, (found) => (found?.spec.syncWindows ?? []).length === 0);
    // Argo CD notices the project a little later, and carries out the sync that waited.
    await until('the change', async () => (await colour()) === 'green', patient);
    await waitForObject(fleet.hub.client, fleetApplications, onHub, isSyncedAndHealthy, patient);
  });

  test('a sync runs as the service account that the project names for the cluster, with its rights', async () => {
    const account = { namespace: ticker, name: 'deployer' };
    const user = `system:serviceaccount:${ticker}:deployer`;
    const switchImpersonation = (value: string | null) =>
      far().mergePatch(
        configMaps,
        { namespace: 'argocd', name: 'argocd-cm' },
        {
          data: { 'application.sync.impersonation.enabled': value },
        },
      );
    await far().create(serviceAccounts, { metadata: account });
    await setRules({
      destinationServiceAccounts: [
        { server: 'https://*agentName=cluster2*', namespace: ticker, defaultServiceAccount: 'other' },
        { server: 'https://*agentName=cluster1*', namespace: ticker, defaultServiceAccount: account.name },
      ],
    });
    const local = { server: 'https://kubernetes.default.svc', namespace: ticker, defaultServiceAccount: account.name };
    await waitForObject(far(), fleetAppProjects, project, (found) =>
      isDeepStrictEqual(found?.spec.destinationServiceAccounts, [local]),
    );
    await switchImpersonation('true');
    try {
      // Argo CD notices its settings a little later, so the first sync may still have its own rights.
      await until(
        'a sync that is refused to the service account',
        async () => {
          await synchronise();
          const copy = await far().get(fleetApplications, onCluster);
          return JSON.stringify(copy?.status?.operationState ?? {}).includes(user);
        },
        patient,
      );
      await far().create(clusterRoleBindings, {
        metadata: { name: account.name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ kind: 'ServiceAccount', ...account }],
      });
      await commitColour('blue');
      await look();
      await synchronise();
      await becomes('blue');
    } finally {
      await switchImpersonation(null);
      await setRules({ destinationServiceAccounts: null });
    }
    await waitForObject(fleet.hub.client, fleetApplications, onHub, isSyncedAndHealthy, patient);
  });
});

test("the hub's own Argo CD is set up for Applications in the namespace of the cluster", async () => {
  const found = await fleet.hub.client.get(fleetGitOpsClusters, { namespace: 'argocd', name: 'gitops-cluster' });
  expect(found?.status?.conditions?.find(({ type }) => type === 'HubArgoCDCompatible')).toMatchObject({
    status: 'True',
    message: expect.stringContaining("Argo CD's server argocd/argocd-server is set up for live access"),
  });
});

test("its copy is in the namespace of the cluster's Argo CD, and leaves with it", async () => {
  expect((await far().get(fleetApplications, onCluster))?.spec?.destination).toEqual({
    name: 'in-cluster',
    namespace: ticker,
  });
  await fleet.hub.client.delete(fleetApplications, onHub);
  await waitForObject(far(), fleetApplications, onCluster, (found) => found === undefined);
});

describe('an Application of the hub itself', () => {
  const saysNobody = (found: FleetApplication | undefined) =>
    JSON.stringify(found?.status?.conditions ?? []).includes("no application controller of the hub's Argo CD");

  test('says that nobody deploys it, as long as the hub has no application controller', () =>
    waitForObject(fleet.hub.client, fleetApplications, apps, saysNobody));

  test('makes those of the clusters when the hub has one, which leaves them to the clusters', async () => {
    const { client } = fleet.hub;
    // As the documentation has it for a hub that deploys nothing but Applications.
    await client.create(clusterRoles, {
      metadata: { name: 'app-of-apps' },
      rules: [
        { apiGroups: ['argoproj.io'], resources: ['applications', 'applicationsets', 'appprojects'], verbs: ['*'] },
      ],
    });
    const controller = 'applicationController.enabled=true,applicationController.clusterRole=app-of-apps';
    const upgrade = ['upgrade', 'argocd', hubArgoCdChart, '--namespace', 'argocd', '--reuse-values', '--wait'];
    await fleet.helm(...upgrade, '--set', `${controller},config.resource\\.respectRBAC=strict`, '--timeout', '4m');
    await waitForObject(client, fleetApplications, apps, (a) => isSyncedAndHealthy(a) && !saysNobody(a), patient);
    const shown = await waitForObject(client, fleetApplications, child, isSyncedAndHealthy, patient);
    expect(shown?.spec?.destination?.name).toBe('cluster1');
    expect(await far().get(configMaps, { namespace: 'default', name: 'child' })).toBeDefined();
    expect(await client.get(configMaps, { namespace: 'default', name: 'child' })).toBeUndefined();
  });
});

/** An Application for the cluster, and what it deploys there. */
function appsFiles(repoURL: string): Record<string, string> {
  const spec = {
    project: 'default',
    source: { repoURL, path: 'child', targetRevision: 'main' },
    destination: { name: 'cluster1', namespace: 'default' },
    syncPolicy: { automated: {} },
  };
  const application = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Application', metadata: child, spec };
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'child' } };
  return { 'apps/child.json': JSON.stringify(application), 'child/child.json': JSON.stringify(configMap) };
}
