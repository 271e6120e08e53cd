import { createAuthority, generateJwtKey, type KeyCertificate } from '../../lib/pki/index.ts';
import { type HaAdminClient, haAdminClient } from '../../lib/wire/index.ts';
import { type Network, startNetwork } from '../network/index.ts';
import { borrowCluster, freePort, type SharedCluster } from '../testbed/index.ts';
import { giveAgentCredentials, giveHubMaterial, mapAgent, namespace, prepareCluster } from './material.ts';
import { Program } from './program.ts';

/** A principal of one of two hubs. */
export interface PairedPrincipal {
  readonly principal: Program;
  readonly port: number;
  readonly metricsPort: number;
  readonly healthPort: number;
  readonly admin: HaAdminClient;
}

/** One of two hubs, with its first principal. */
export interface PairedHub extends PairedPrincipal {
  readonly cluster: SharedCluster;
  /** All principals. */
  readonly principals: readonly PairedPrincipal[];
}

/** Two hubs of which one follows the other, and a managed cluster whose agent knows both. */
export interface TwoHubs {
  readonly authority: KeyCertificate;
  readonly first: PairedHub;
  readonly second: PairedHub;
  readonly managed: SharedCluster;
  readonly agent: Program;
  readonly agentName: string;
  stop(): Promise<void>;
}

/** How two hubs are started; nothing runs when {@link startTwoHubs} resolves. */
export interface TwoHubsOptions {
  /** Arguments for both principals. */
  readonly principalArgs?: readonly string[];
  readonly firstArgs?: readonly string[];
  readonly secondArgs?: readonly string[];
  readonly agentArgs?: readonly string[];
  /** Principals of each hub, behind a network that gives a connection to one that runs, as a Service does. Default: 1, without one. */
  readonly principals?: number;
  /** Executables of argocd-agent that run instead. */
  readonly originals?: { readonly first?: string | undefined; readonly second?: string | undefined };
  /** The server certificates' common names. */
  readonly commonName?: string;
}

/** Prepares two hubs with one authority, and an agent. Ports are free ones of this machine. */
export async function startTwoHubs(options: TwoHubsOptions = {}): Promise<TwoHubs> {
  const agentName = 'cluster1';
  const [authority, jwtKey] = await Promise.all([
    createAuthority({ commonName: 'argocd-agent-ca@test' }),
    generateJwtKey(2048),
  ]);
  const [one, two, managed] = await Promise.all([borrowCluster(), borrowCluster(), borrowCluster()]);
  const { principals: count = 1 } = options;
  const networks: Network[] = [];
  const makeHub = async (
    cluster: SharedCluster,
    role: 'primary' | 'replica',
    ports: readonly number[],
    peer: number,
    args: readonly string[],
    original: string | undefined,
  ): Promise<PairedHub> => {
    await prepareCluster(cluster.client);
    await giveHubMaterial(cluster.client, { authority, jwtKey, commonName: options.commonName, isPaired: true });
    const principals = await Promise.all(
      ports.map(async (port) => {
        const own = await Promise.all(Array.from({ length: 4 }, () => freePort()));
        const [metricsPort = 0, healthPort = 0, adminPort = 0, replicaPort = 0] = own;
        const sharing = [
          '--enable-replicas',
          `--replica-listen=127.0.0.1:${replicaPort}`,
          `--replica-address=127.0.0.1:${replicaPort}`,
        ];
        const principal = new Program(
          [
            'principal',
            `--kubeconfig=${cluster.kubeconfig}`,
            `--namespace=${namespace}`,
            '--allowed-namespaces=*',
            '--listen-host=127.0.0.1',
            `--listen-port=${port}`,
            `--metrics-port=${metricsPort}`,
            `--healthz-port=${healthPort}`,
            '--auth=mtls:subject:CN=([^,]+)',
            '--enable-resource-proxy=false',
            '--disable-redis-proxy',
            '--ha-enabled',
            `--ha-preferred-role=${role}`,
            `--ha-peer-address=127.0.0.1:${peer}`,
            `--ha-admin-port=${adminPort}`,
            ...(count > 1 ? sharing : []),
            ...(options.principalArgs ?? []),
            ...args,
          ],
          {},
          original,
        );
        const admin = haAdminClient({ address: `127.0.0.1:${adminPort}`, timeoutMs: 40_000 });
        return { principal, port, metricsPort, healthPort, admin };
      }),
    );
    const [first] = principals;
    if (first === undefined) {
      throw new RangeError('a hub needs a principal');
    }
    return { ...first, cluster, principals };
  };
  const portsOf = () => Promise.all(Array.from({ length: count }, () => freePort()));
  const [ports1, ports2] = await Promise.all([portsOf(), portsOf()]);
  const hubs: PairedHub[] = [];
  const wayTo = async (index: number, ports: readonly number[]) => {
    if (count === 1) {
      return ports[0] ?? 0;
    }
    let turn = 0;
    const network = await startNetwork(() => {
      const up = hubs[index]?.principals.filter(({ principal }) => principal.pid !== undefined) ?? [];
      const next = up[turn++ % up.length];
      return next && { host: '127.0.0.1', port: next.port };
    });
    networks.push(network);
    return network.port;
  };
  const [way1, way2] = await Promise.all([wayTo(0, ports1), wayTo(1, ports2)]);
  const { firstArgs = [], secondArgs = [], originals } = options;
  const [first, second] = await Promise.all([
    makeHub(one, 'primary', ports1, way2, firstArgs, originals?.first),
    makeHub(two, 'replica', ports2, way1, secondArgs, originals?.second),
    prepareCluster(managed.client),
  ]);
  hubs.push(first, second);
  await Promise.all([mapAgent(one.client, agentName), giveAgentCredentials(managed.client, authority, agentName)]);
  const agentHealth = await freePort();
  const agent = new Program([
    'agent',
    `--kubeconfig=${managed.kubeconfig}`,
    `--namespace=${namespace}`,
    '--creds=mtls:any',
    `--server-address=127.0.0.1:${way1},127.0.0.1:${way2}`,
    '--metrics-port=0',
    `--healthz-port=${agentHealth}`,
    '--agent-mode=managed',
    ...(options.agentArgs ?? []),
  ]);
  return {
    authority,
    first,
    second,
    managed,
    agent,
    agentName,
    async stop() {
      const programs = [...first.principals, ...second.principals].map(({ principal }) => principal);
      await Promise.all([...programs, agent].map((program) => program.stop('SIGKILL')));
      await Promise.all(networks.map((network) => network.close()));
      await Promise.all([one, two, managed].map((cluster) => cluster.stop()));
    },
  };
}
