import { type Deployment, deployments, keyOf, leases } from '../../lib/kube/index.ts';
import type { Steps, TakeoverScope } from './steps.ts';

/** Lease of both projects' controllers, in the namespace of the Deployment. */
const leaseName = '7310a56a.open-cluster-management.io';

/** Scales a controller to 0 and waits until its pods are gone and its Lease is released or has expired. */
export async function stopController(scope: TakeoverScope, steps: Steps, deployment: Deployment): Promise<void> {
  const { client, signal } = scope;
  const { namespace = '', name } = deployment.metadata;
  if (deployment.spec?.replicas !== 0) {
    await steps.patch(deployments, deployment, 'stopped, scaled to 0', { spec: { replicas: 0 } });
  }
  let seen: { version: string | undefined; at: number } | undefined;
  await steps.wait(async () => {
    const live = await client.get(deployments, { namespace, name }, signal);
    if ((live?.status?.observedGeneration ?? 0) < (live?.metadata.generation ?? 0) || live?.status?.replicas) {
      return `Deployment ${keyOf(deployment)} still has pods`;
    }
    const lease = await client.get(leases, { namespace, name: leaseName }, signal);
    if (!lease?.spec?.holderIdentity) {
      return undefined;
    }
    const version = lease.metadata.resourceVersion;
    if (seen?.version !== version) {
      // As in a leader election: clocks of different machines are not compared.
      seen = { version, at: Date.now() };
    }
    const lifeMs = (lease.spec.leaseDurationSeconds ?? 15) * 1000;
    return seen && Date.now() - seen.at > lifeMs ? undefined : `Lease ${namespace}/${leaseName} is still held`;
  });
}
