/** A command line. */
export type CommandLine = readonly [command: string, ...args: string[]];

/** The containers that kind makes: one per cluster, called after it. */
const nodeOf = (cluster: string) => `${cluster}-control-plane`;

/** What the kind provider runs, step by step. Nothing here is carried out. */
export const kindCommands = {
  /** A cluster with one node, and its kubeconfig in a file. */
  create: (cluster: string, kubeconfig: string): CommandLine => [
    'kind',
    'create',
    'cluster',
    ...['--name', cluster, '--kubeconfig', kubeconfig, '--wait', '180s'],
  ],
  delete: (cluster: string): CommandLine => ['kind', 'delete', 'cluster', '--name', cluster],
  /** Puts an image of the engine onto a cluster's node. */
  load: (image: string, cluster: string): CommandLine => ['kind', 'load', 'docker-image', image, '--name', cluster],
  /** The address at which clusters of kind reach this machine. */
  gateway: (): CommandLine => [
    'docker',
    'network',
    'inspect',
    'kind',
    '--format',
    '{{range .IPAM.Config}}{{.Gateway}} {{end}}',
  ],
  /** OCM's hub. */
  initHub: (kubeconfig: string): CommandLine => ['clusteradm', 'init', '--wait', '--kubeconfig', kubeconfig],
  /** Prints the hub's address and the token to join with. */
  token: (kubeconfig: string): CommandLine => [
    'clusteradm',
    'get',
    'token',
    '--output',
    'json',
    '--kubeconfig',
    kubeconfig,
  ],
  /** OCM's agents on a managed cluster. */
  join: (cluster: string, kubeconfig: string, hub: { apiServer: string; token: string }): CommandLine => [
    'clusteradm',
    'join',
    ...['--cluster-name', cluster, '--hub-apiserver', hub.apiServer, '--hub-token', hub.token],
    ...['--force-internal-endpoint-lookup', '--wait', '--kubeconfig', kubeconfig],
  ],
  /** The hub takes the cluster. */
  accept: (cluster: string, kubeconfig: string): CommandLine => [
    'clusteradm',
    'accept',
    ...['--clusters', cluster, '--wait', '--kubeconfig', kubeconfig],
  ],
} as const;

/** The API server of a kind cluster as the containers of other ones reach it. */
export const internalServer = (cluster: string) => `https://${nodeOf(cluster)}:6443`;

/**
 * What `clusteradm get token --output json` says.
 * @throws Error when there is no token in it
 */
export function parseToken(text: string): { token: string } {
  const { 'hub-token': token } = JSON.parse(text) as { 'hub-token'?: unknown };
  if (typeof token !== 'string' || token === '') throw new Error('clusteradm get token printed no hub-token');
  return { token };
}
