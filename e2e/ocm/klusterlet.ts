import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../lib/base/testing.ts';
import { certificateSigningRequests, type KubeClient } from '../../lib/kube/index.ts';
import type { Component, SharedCluster } from '../testbed/index.ts';
import { watchObjects } from '../testbed/index.ts';
import { ocmComponent } from './component.ts';
import { installManifests, ocmManifests, ocmNamespaces } from './installation.ts';
import { type OcmManagedCluster, ocmManagedClusters } from './types.ts';

/** How a cluster joins. */
export interface JoinOptions {
  labels: Record<string, string>;
  leaseDurationSeconds: number;
  statusSyncIntervalMs: number;
  evictionGraceMs: number;
  signal: AbortSignal;
  crashed: (error: Error) => void;
}

/**
 * Makes a cluster a managed one as `clusteradm join` and `clusteradm accept` do. The registration agent asks for a
 * certificate with the bootstrap kubeconfig, and an administrator of the hub approves that and accepts the cluster.
 * Resolves with its agents when it is available.
 */
export async function joinCluster(
  hub: SharedCluster,
  cluster: SharedCluster,
  { labels, leaseDurationSeconds, statusSyncIntervalMs, evictionGraceMs, signal, crashed }: JoinOptions,
): Promise<Component[]> {
  const { name } = cluster;
  await installManifests(
    cluster.client,
    [
      ...(await ocmManifests('managed')),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ocmNamespaces.addOn } },
    ],
    signal,
  );
  const bootstrap = { namespace: ocmNamespaces.bootstrap, name: 'agent-registration-bootstrap' };
  const hubKubeconfigs = join(cluster.dir, 'hub-kubeconfig');
  const common = ['--spoke-cluster-name', name, '--agent-id', `${name}-agent`];
  const registration = await ocmComponent({
    cluster,
    account: { namespace: ocmNamespaces.agent, name: 'klusterlet-registration-sa' },
    crashed,
    executable: 'registration',
    args: [
      'agent',
      ...common,
      ...['--bootstrap-kubeconfig', await hub.kubeconfigFor({ serviceAccount: bootstrap })],
      ...['--hub-kubeconfig-dir', hubKubeconfigs, '--spoke-external-server-urls', cluster.server],
    ],
  });
  const hubKubeconfig = join(hubKubeconfigs, 'kubeconfig');
  const work = await ocmComponent({
    cluster,
    account: { namespace: ocmNamespaces.agent, name: 'klusterlet-work-sa' },
    crashed,
    executable: 'work',
    args: [
      'agent',
      ...common,
      ...['--workload-source-driver', 'kube', '--workload-source-config', hubKubeconfig],
      ...['--status-sync-interval', `${statusSyncIntervalMs}ms`],
      ...['--appliedmanifestwork-eviction-grace-period', `${evictionGraceMs}ms`],
    ],
  });
  const agents = [registration, work];
  try {
    await registration.start();
    await registration.ready(signal);
    await acceptCluster(hub.client, name, { metadata: { labels }, spec: { leaseDurationSeconds } }, signal);
    // OCM's operator starts the work agent when the registration agent has written this.
    await until("the registration agent's kubeconfig for the hub", () => exists(hubKubeconfig), { signal });
    await work.start();
    await work.ready(signal);
    await isAvailable(hub.client, name, signal);
  } catch (error) {
    await Promise.all(agents.map((agent) => agent.kill()));
    throw error;
  }
  return agents;
}

/** As `clusteradm accept`: approves the cluster's requests for a certificate and accepts it, with these settings. */
async function acceptCluster(client: KubeClient, name: string, settings: object, signal: AbortSignal): Promise<void> {
  const requests = await watchObjects(client, certificateSigningRequests, { signal });
  const clusters = await watchObjects(client, ocmManagedClusters, { key: { name }, signal });
  try {
    const mine = ({ metadata }: { metadata: { labels?: Record<string, string> | undefined } }) =>
      metadata.labels?.['open-cluster-management.io/cluster-name'] === name;
    // With its certificate the agent would give up making the ManagedCluster, for which it has no right any more.
    await clusters.until((found) => found.length > 0);
    const asked = await requests.until((all) => all.some(mine));
    const approved = { type: 'Approved', status: 'True', reason: 'ClusteradmApprove', message: 'accepted' };
    for (const { metadata } of asked.filter(mine)) {
      await client.mergePatch(
        certificateSigningRequests,
        { name: metadata.name },
        { status: { conditions: [approved] } },
        { subresource: 'approval' },
      );
    }
    const { spec, ...rest } = settings as { spec: object };
    await client.mergePatch(ocmManagedClusters, { name }, { ...rest, spec: { ...spec, hubAcceptsClient: true } });
  } finally {
    await Promise.all([requests.stop(), clusters.stop()]);
  }
}

async function isAvailable(client: KubeClient, name: string, signal: AbortSignal): Promise<void> {
  const clusters = await watchObjects(client, ocmManagedClusters, { key: { name }, signal });
  try {
    const has = ({ status }: OcmManagedCluster) =>
      status?.conditions?.some((c) => c.type === 'ManagedClusterConditionAvailable' && c.status === 'True');
    await clusters.until(([cluster]) => cluster && has(cluster));
  } finally {
    await clusters.stop();
  }
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
