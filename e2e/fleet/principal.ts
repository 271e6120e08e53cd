import { type KubeClient, type KubeNode, nodes, services } from '../../lib/kube/index.ts';
import { waitForObject, waitForObjects } from '../testbed/index.ts';

/** Where the principal of a hub can be dialled from this machine: its load balancer, or a node; waits until there is one. */
export async function principalOf(hub: KubeClient): Promise<{ host: string; port: number }> {
  const key = { namespace: 'argocd', name: 'argocd-agent-principal' };
  const service = await waitForObject(hub, services, key, (found) =>
    found?.spec?.type === 'NodePort'
      ? found.spec.ports?.[0]?.nodePort !== undefined
      : (found?.status?.loadBalancer?.ingress?.length ?? 0) > 0,
  );
  const [port] = service?.spec?.ports ?? [];
  if (service?.spec?.type !== 'NodePort') {
    return { host: service?.status?.loadBalancer?.ingress?.[0]?.ip ?? '', port: port?.port ?? 0 };
  }
  const all = await waitForObjects(hub, nodes, {}, (found) => found.some((node) => addressOf(node) !== undefined));
  return { host: all.map(addressOf).find(Boolean) ?? '', port: port?.nodePort ?? 0 };
}

function addressOf({ status }: KubeNode): string | undefined {
  const addresses = (status?.addresses ?? []) as { type: string; address: string }[];
  return addresses.find(({ type }) => type === 'InternalIP')?.address;
}
