import { Informer, KubeClient } from '../../lib/kube/index.ts';
import { installCrds, ocmCrds } from '../hub/index.ts';
import type { SharedCluster } from '../testbed/index.ts';
import { runAddOnRegistration } from './addon-registration.ts';
import { runWorkWebhook } from './admission.ts';
import type { Membership, Ocm, OcmOptions } from './ocm.ts';
import { runPlacementController } from './placement.ts';
import { applyObjects, spokeObjects, workAgentAccount } from './rbac.ts';
import { agentIdentity, runRegistrationAgent, runRegistrationController } from './registration.ts';
import { type OcmManagedCluster, ocmManagedClusters } from './types.ts';
import { runWorkAgent } from './work-agent.ts';

/** Starts the stand-ins on a hub that has OCM's CRDs. */
export async function startStandIns(hub: SharedCluster, options: OcmOptions): Promise<Ocm> {
  const ended = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, ended.signal]) : ended.signal;
  await runWorkWebhook(hub.client, signal);
  const controllers = [runPlacementController(hub.client, signal), runRegistrationController(hub.client, signal)];
  const members: Membership[] = [];
  return {
    async join(cluster, labels = {}) {
      const member = await joinHub(hub, cluster, labels, options, signal);
      members.push(member);
      return member;
    },
    async stop() {
      ended.abort();
      await Promise.allSettled([...controllers, ...members.map((member) => member.disconnect())]);
    },
  };
}

async function joinHub(
  hub: SharedCluster,
  cluster: SharedCluster,
  labels: Record<string, string>,
  options: OcmOptions,
  signal: AbortSignal,
): Promise<Membership> {
  const { name } = cluster;
  await installCrds(cluster.client, await ocmCrds('managed'), signal);
  await applyObjects(cluster.client, spokeObjects());
  await hub.client.apply(
    ocmManagedClusters,
    {
      metadata: { name, labels },
      spec: { hubAcceptsClient: true, leaseDurationSeconds: options.leaseDurationSeconds ?? 60 },
    },
    { fieldManager: 'clusteradm', force: true },
  );
  await accepted(hub, name, signal);
  const kubeconfigs = {
    hub: await hub.kubeconfigFor(agentIdentity(name)),
    spoke: await cluster.kubeconfigFor({ serviceAccount: workAgentAccount }),
  };
  const asAgent = KubeClient.fromKubeconfig(kubeconfigs.hub);
  const spoke = KubeClient.fromKubeconfig(kubeconfigs.spoke);
  const { statusSyncIntervalMs = 10_000 } = options;
  const start = () => {
    const ended = new AbortController();
    const both = AbortSignal.any([signal, ended.signal]);
    const running = [
      runRegistrationAgent({ hub: asAgent, spoke, cluster: name, signal: both }),
      runAddOnRegistration({ hub: asAgent, spoke, cluster: name, signal: both }),
      runWorkAgent({ hub: asAgent, spoke, cluster: name, signal: both, statusSyncIntervalMs }),
    ];
    return async () => {
      ended.abort();
      await Promise.allSettled(running);
    };
  };
  let stop = start();
  return {
    name,
    disconnect: () => stop(),
    async reconnect() {
      await stop();
      stop = start();
    },
  };
}

/** Waits until the registration controller has made the cluster's namespace and rights. */
async function accepted(hub: SharedCluster, name: string, signal: AbortSignal): Promise<void> {
  const done = new AbortController();
  const clusters = new Informer({
    client: hub.client,
    type: ocmManagedClusters,
    fieldSelector: `metadata.name=${name}`,
  });
  const watching = clusters.run(AbortSignal.any([signal, done.signal]));
  await new Promise<void>((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
    }
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    const look = ({ status }: OcmManagedCluster) => {
      if (status?.conditions?.some((c) => c.type === 'HubAcceptedManagedCluster' && c.status === 'True')) {
        resolve();
      }
    };
    clusters.subscribe({ added: look, updated: (_, now) => look(now) });
  });
  done.abort();
  await watching.catch((error: unknown) => {
    if (!done.signal.aborted) {
      throw error;
    }
  });
}
