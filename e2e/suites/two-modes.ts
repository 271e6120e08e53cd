import type { KubeClient } from '../../lib/kube/index.ts';
import {
  fleetGitOpsClusters,
  guestbookValues,
  principalOf,
  type SharedFleet,
  selectedClusters,
} from '../fleet/index.ts';
import { type Network, startNetwork } from '../network/index.ts';
import { ocmPlacements } from '../ocm/index.ts';
import { startTestFleet } from '../provider/index.ts';
import { RightsReview } from '../rights/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { workplaces } from './rights.ts';

const argocd = 'argocd';
const autonomousClusters = { 'fleet.example.com/autonomous': 'true' };

/** A fleet with a managed cluster, `cluster1`, and an autonomous one, `cluster2`, both connected, behind a bad network. */
export interface TwoModes {
  readonly fleet: SharedFleet;
  readonly network: Network;
  /** Of API servers that record who asks for what. */
  readonly review: RightsReview | undefined;
  readonly hub: KubeClient;
  readonly managed: KubeClient;
  readonly autonomous: KubeClient;
  stop(): Promise<void>;
}

/** Starts the fleet, installs the add-on and resolves when both agents are connected. */
export async function startTwoModes(): Promise<TwoModes> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of stops.reverse()) {
      await end();
    }
  };
  try {
    const fleet = await startTestFleet({ clusters: 1, labels: selectedClusters, audit: true });
    stops.push(() => fleet.stop());
    const second = await fleet.join('cluster2', autonomousClusters);
    const hub = fleet.hub.client;
    const review = fleet.local && (await RightsReview.start(workplaces(fleet.local)));
    if (review) {
      stops.push(() => review.stop());
    }
    let principal: { host: string; port: number } | undefined;
    const network = await startNetwork(() => principal, fleet.machine);
    stops.unshift(() => network.close());
    const dialled = { principalServerAddress: fleet.machine, principalServerPort: String(network.port) };
    await fleet.install({
      ...guestbookValues,
      gitOpsCluster: { ...guestbookValues.gitOpsCluster, ...dialled },
    });
    principal = await principalOf(hub);
    await enrollAutonomous(hub, dialled);
    await Promise.all(
      ['gitops-cluster', 'autonomous'].map((name) =>
        waitForObject(
          hub,
          fleetGitOpsClusters,
          { namespace: argocd, name },
          (found) =>
            found?.status?.clusters?.connected === 1 &&
            found.status.conditions?.find(({ type }) => type === 'Ready')?.status === 'True',
          { timeoutMs: 300_000 },
        ),
      ),
    ).catch(async (error: unknown) => {
      console.error(await fleet.logs());
      throw error;
    });
    const managed = (fleet.members.get('cluster1') ?? second).cluster.client;
    return { fleet, network, review, hub, managed, autonomous: second.cluster.client, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A second GitOpsCluster, whose clusters own their Applications. */
async function enrollAutonomous(hub: KubeClient, server: object): Promise<void> {
  const labelSelector = { matchLabels: autonomousClusters };
  await hub.create(ocmPlacements, {
    metadata: { namespace: argocd, name: 'autonomous' },
    spec: { predicates: [{ requiredClusterSelector: { labelSelector } }] },
  });
  await hub.create(fleetGitOpsClusters, {
    metadata: { namespace: argocd, name: 'autonomous' },
    spec: {
      placementRef: { apiVersion: 'cluster.open-cluster-management.io/v1beta1', kind: 'Placement', name: 'autonomous' },
      // The hub makes the keys of these clusters; the others make their own.
      argoCDAgentAddon: { mode: 'autonomous', clientCertificate: 'Generated', liveAccess: 'Full', ...server },
    },
  });
}
