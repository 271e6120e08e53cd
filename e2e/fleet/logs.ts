import type { Node } from '../node/index.ts';

/** A fleet's nodes: the hub's and its members'. */
interface Nodes {
  readonly hubNode: Node;
  readonly members: ReadonlyMap<string, { readonly node: Node }>;
}

/** The ends of the logs of this project's programs, for messages of failing tests. */
export async function programLogs(fleet: Nodes, lines = 40): Promise<string> {
  const hub = [
    ['open-cluster-management-agent-addon', 'argocd-agent-addon-controller'],
    ['argocd', 'argocd-agent-principal'],
  ] as const;
  const wanted = [
    ...hub.map(([namespace, pod]) => ({ cluster: 'hub', node: fleet.hubNode, namespace, pod })),
    ...[...fleet.members].map(([cluster, { node }]) => ({
      cluster,
      node,
      namespace: 'argocd',
      pod: 'argocd-agent-agent',
    })),
  ];
  const texts = wanted.map(async ({ cluster, node, namespace, pod }) => {
    const log = (await node.log(namespace, pod, undefined, lines)) ?? 'no such pod';
    return `--- ${cluster}: ${namespace}/${pod}\n${log}`;
  });
  return (await Promise.all(texts)).join('\n');
}
