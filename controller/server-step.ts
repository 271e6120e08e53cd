import { type KubeNode, nodes } from '../lib/kube/index.ts';
import { discoverEndpoint, endpointText } from './discovery.ts';
import { failed, type Step, type StepContext, succeeded } from './steps.ts';

/** Finds where agents dial. */
export const serverStep: Step = {
  condition: 'ServerDiscovered',
  purpose: 'discover the server',
  run: async (context) => {
    const { server } = context.spec;
    if (server.problem !== undefined)
      return failed(`Server discovery failed: ${server.problem}`, 'ServerNotDiscovered');
    const found = discoverEndpoint(server.value, context.service, await nodesFor(context), context.namespace);
    if ('problem' in found) return failed(found.problem, 'ServerNotDiscovered');
    context.endpoint = found;
    return succeeded(`Server at ${endpointText(found)}`);
  },
};

/** The hub's nodes, read only when the principal is reached through them. */
export async function nodesFor(context: StepContext): Promise<readonly KubeNode[]> {
  if (context.service?.spec?.type !== 'NodePort') return [];
  return context.client.list(nodes, { signal: context.signal });
}
