import { availableParallelism, totalmem } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../lib/base/index.ts';
import {
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type KubeNode,
  leases,
  nodes,
  rfc3339,
  rfc3339Micro,
} from '../../lib/kube/index.ts';

/** Who the node is. */
export interface NodeIdentity {
  name: string;
  address: string;
  kubeletPort: number;
  labels: Readonly<Record<string, string>>;
}

const leaseNamespace = 'kube-node-lease';
const renewMs = 10_000;

/** Creates the Node object, or takes over the one that is there, and says that the node is ready. */
export async function registerNode(client: KubeClient, identity: NodeIdentity, signal: AbortSignal): Promise<void> {
  const labels = {
    'kubernetes.io/hostname': identity.name,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': process.arch === 'x64' ? 'amd64' : process.arch,
    ...identity.labels,
  };
  const node: KubeNode = { metadata: { name: identity.name, labels } };
  try {
    await client.create(nodes, node, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
    await client.mergePatch(nodes, { name: identity.name }, { metadata: { labels } }, { signal });
  }
  await client.mergePatch(
    nodes,
    { name: identity.name },
    { status: nodeStatus(identity) },
    { subresource: 'status', signal },
  );
  // The node controller takes this taint away too, seconds later.
  const created = await client.get(nodes, { name: identity.name }, signal);
  const taints = (created?.spec?.taints as { key: string }[] | undefined) ?? [];
  const rest = taints.filter((taint) => !/^node\.kubernetes\.io\/(not-ready|unreachable)$/.test(taint.key));
  if (rest.length < taints.length) {
    await client.mergePatch(nodes, { name: identity.name }, { spec: { taints: rest } }, { signal });
  }
}

/** Keeps the node's lease, and registers the node again should its object disappear. Until aborted. */
export async function keepNode(
  client: KubeClient,
  identity: NodeIdentity,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await renew(client, identity.name, signal);
      const node = await client.get(nodes, { name: identity.name }, signal);
      if (!node || !isReady(node)) {
        await registerNode(client, identity, signal);
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      logger.warn({ error, node: identity.name }, 'renewing the lease of the node failed');
    }
    await delay(renewMs, undefined, { signal }).catch(() => undefined);
  }
}

function isReady(node: KubeNode): boolean {
  const conditions = (node.status?.conditions as { type: string; status: string }[] | undefined) ?? [];
  return conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
}

async function renew(client: KubeClient, name: string, signal: AbortSignal): Promise<void> {
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime: rfc3339Micro(new Date()) };
  try {
    await client.mergePatch(leases, { namespace: leaseNamespace, name }, { spec }, { signal });
  } catch (error) {
    if (!isNotFound(error)) {
      throw error;
    }
    await client.create(leases, { metadata: { namespace: leaseNamespace, name }, spec }, { signal });
  }
}

function nodeStatus(identity: NodeIdentity): object {
  const now = rfc3339(new Date());
  const healthy = (type: string, reason: string, status: 'True' | 'False') => ({
    type,
    status,
    reason,
    message: '',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  });
  const resources = {
    cpu: String(availableParallelism()),
    memory: `${Math.floor(totalmem() / 1024)}Ki`,
    pods: '1000',
    'ephemeral-storage': '100Gi',
  };
  return {
    addresses: [
      { type: 'InternalIP', address: identity.address },
      { type: 'Hostname', address: identity.name },
    ],
    // The API server passes WebSockets of `kubectl exec` on as they are, instead of speaking SPDY.
    declaredFeatures: ['ExtendWebSocketsToKubelet'],
    daemonEndpoints: { kubeletEndpoint: { Port: identity.kubeletPort } },
    capacity: resources,
    allocatable: resources,
    conditions: [
      healthy('MemoryPressure', 'KubeletHasSufficientMemory', 'False'),
      healthy('DiskPressure', 'KubeletHasNoDiskPressure', 'False'),
      healthy('PIDPressure', 'KubeletHasSufficientPID', 'False'),
      healthy('Ready', 'KubeletReady', 'True'),
    ],
    nodeInfo: {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      operatingSystem: 'linux',
      osImage: 'processes of this machine',
      kernelVersion: '',
      containerRuntimeVersion: 'process://1',
      kubeletVersion: 'v1.36.0',
      kubeProxyVersion: '',
      bootID: '',
      machineID: identity.name,
      systemUUID: identity.name,
    },
  };
}
