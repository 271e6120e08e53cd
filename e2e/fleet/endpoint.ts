import { type EndpointSlice, endpointSlices, type KubeClient } from '../../lib/kube/index.ts';
import type { Node, ServiceEndpoint } from '../node/index.ts';
import { waitForObjects } from '../testbed/index.ts';

/**
 * Waits until a Service of a hub of this machine has a ready pod, and tells where this machine reaches a port of the pod.
 * @throws Error when the hub's node does not run the pod
 */
export async function hubEndpoint(
  { hub, hubNode }: { readonly hub: { readonly client: KubeClient }; readonly hubNode: Pick<Node, 'podEndpoint'> },
  { namespace, name }: { readonly namespace: string; readonly name: string },
  port: number,
): Promise<ServiceEndpoint> {
  const podOf = ({ metadata, endpoints = [] }: EndpointSlice) =>
    metadata.labels?.['kubernetes.io/service-name'] === name
      ? endpoints.find(({ conditions }) => conditions?.ready !== false)?.targetRef?.name
      : undefined;
  const slices = await waitForObjects(hub.client, endpointSlices, { namespace }, (all) => all.some(podOf));
  const pod = slices.map(podOf).find((found) => found !== undefined) ?? '';
  const endpoint = hubNode.podEndpoint(namespace, pod, port);
  if (!endpoint) {
    throw new Error(`the hub's node does not run pod ${pod}`);
  }
  return endpoint;
}
