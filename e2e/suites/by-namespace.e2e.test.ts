import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import {
  fleetApplications,
  fleetAppProjects,
  fleetGitOpsClusters,
  guestbookValues,
  isSyncedAndHealthy,
  type SharedFleet,
  selectedClusters,
  waitForObject,
} from '../fleet/index.ts';
import { startTestFleet } from '../provider/index.ts';
import { HubArgoCd } from './hub-argocd.ts';
import { describeTickers, ticker, tickerFiles, tickerSpec } from './ticker.ts';

// A fleet whose Applications are in namespaces that are named like their clusters.

const onHub = { namespace: 'cluster1', name: ticker };
const onCluster = { namespace: 'argocd', name: ticker };

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
  await waitForObject(fleet.hub.client, fleetApplications, onHub, isSyncedAndHealthy, { timeoutMs: 240_000 });
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

test("its copy is in the namespace of the cluster's Argo CD, and leaves with it", async () => {
  expect((await far().get(fleetApplications, onCluster))?.spec?.destination).toEqual({
    name: 'in-cluster',
    namespace: ticker,
  });
  await fleet.hub.client.delete(fleetApplications, onHub);
  await waitForObject(far(), fleetApplications, onCluster, (found) => found === undefined);
});
