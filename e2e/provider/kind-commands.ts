/** A command line. */
export type CommandLine = readonly [command: string, ...args: string[]];

/** The container engines that kind works with. */
export type KindEngine = 'docker' | 'podman';

/** The engines in the order of preference. */
export const kindEngines: readonly KindEngine[] = ['docker', 'podman'];

/** kind finds docker by itself; podman it uses when it is told to. */
function kind(engine: KindEngine, ...args: string[]): CommandLine {
  return engine === 'docker' ? ['kind', ...args] : ['env', 'KIND_EXPERIMENTAL_PROVIDER=podman', 'kind', ...args];
}

/** What the kind provider runs, step by step. Nothing here is carried out. */
export const kindCommands = {
  /** A cluster with one node, and its kubeconfig in a file. */
  create: (engine: KindEngine, cluster: string, kubeconfig: string): CommandLine =>
    kind(engine, 'create', 'cluster', '--name', cluster, '--kubeconfig', kubeconfig, '--wait', '180s'),
  delete: (engine: KindEngine, cluster: string): CommandLine => kind(engine, 'delete', 'cluster', '--name', cluster),
  /** Writes an image of the engine into a file: `kind load docker-image` knows docker only. */
  save: (engine: KindEngine, image: string, file: string): CommandLine =>
    engine === 'docker'
      ? ['docker', 'save', '--output', file, image]
      : ['podman', 'save', '--format', 'docker-archive', '--output', file, image],
  /** Puts a saved image onto a cluster's node. */
  load: (engine: KindEngine, file: string, cluster: string): CommandLine =>
    kind(engine, 'load', 'image-archive', file, '--name', cluster),
  /** Prints the addresses at which containers of kind's network reach this machine. */
  gateways: (engine: KindEngine): CommandLine => [
    engine,
    ...['network', 'inspect', 'kind', '--format'],
    engine === 'docker' ? '{{range .IPAM.Config}}{{.Gateway}} {{end}}' : '{{range .Subnets}}{{.Gateway}} {{end}}',
  ],
  /** Writes the logs of a cluster's nodes into a folder. */
  logs: (engine: KindEngine, cluster: string, folder: string): CommandLine =>
    kind(engine, 'export', 'logs', '--name', cluster, folder),
  /** OCM's hub. */
  initHub: (kubeconfig: string): CommandLine => ['clusteradm', 'init', '--wait', '--kubeconfig', kubeconfig],
  /** Prints the hub's address, as its kubeconfig has it, and the token to join with. */
  token: (kubeconfig: string): CommandLine => [
    ...(['clusteradm', 'get', 'token', '--output', 'json'] as const),
    ...['--kubeconfig', kubeconfig],
  ],
  /**
   * OCM's agents on a managed cluster. clusteradm itself dials the hub at the address given, from this machine; the agents
   * dial what the hub publishes about itself (`cluster-info`), which the other containers reach.
   */
  join: (cluster: string, kubeconfig: string, hub: HubAccess): CommandLine => [
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

/** How a cluster joins a hub. */
export interface HubAccess {
  readonly apiServer: string;
  readonly token: string;
}

/**
 * What `clusteradm get token --output json` says. What it prints of its work before that is left out.
 * @throws Error when there is no token in it
 */
export function parseHubAccess(text: string): HubAccess {
  const { 'hub-token': token, 'hub-apiserver': apiServer } = jsonIn(text);
  if (typeof token === 'string' && token !== '' && typeof apiServer === 'string' && apiServer !== '') {
    return { token, apiServer };
  }
  // Not the text: there may be a token in it.
  throw new Error(
    'clusteradm get token --output json printed no hub-token and hub-apiserver; is it older than v0.6.0?',
  );
}

function jsonIn(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text.slice(text.indexOf('{'))) as Record<string, unknown>;
  } catch {
    return {}; // said by the caller
  }
}
