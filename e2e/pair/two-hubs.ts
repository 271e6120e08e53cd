import { createAuthority, generateJwtKey, type KeyCertificate } from '../../lib/pki/index.ts';
import { type HaAdminClient, haAdminClient } from '../../lib/wire/index.ts';
import { borrowCluster, freePort, type SharedCluster } from '../testbed/index.ts';
import { giveAgentCredentials, giveHubMaterial, mapAgent, namespace, prepareCluster } from './material.ts';
import { Program } from './program.ts';

/** One of two hubs. */
export interface PairedHub {
  readonly cluster: SharedCluster;
  readonly principal: Program;
  readonly port: number;
  readonly metricsPort: number;
  readonly healthPort: number;
  readonly admin: HaAdminClient;
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
  const ports = await Promise.all(Array.from({ length: 9 }, () => freePort()));
  const [grpc1 = 0, grpc2 = 0] = ports;
  const makeHub = async (
    cluster: SharedCluster,
    role: 'primary' | 'replica',
    [port = 0, peer = 0, metricsPort = 0, healthPort = 0, adminPort = 0]: readonly number[],
    args: readonly string[],
    original: string | undefined,
  ): Promise<PairedHub> => {
    await prepareCluster(cluster.client);
    await giveHubMaterial(cluster.client, { authority, jwtKey, commonName: options.commonName, isPaired: true });
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
        ...(options.principalArgs ?? []),
        ...args,
      ],
      {},
      original,
    );
    const admin = haAdminClient({ address: `127.0.0.1:${adminPort}`, timeoutMs: 40_000 });
    return { cluster, principal, port, metricsPort, healthPort, admin };
  };
  const [first, second] = await Promise.all([
    makeHub(one, 'primary', [grpc1, grpc2, ...ports.slice(2, 5)], options.firstArgs ?? [], options.originals?.first),
    makeHub(two, 'replica', [grpc2, grpc1, ...ports.slice(5, 8)], options.secondArgs ?? [], options.originals?.second),
    prepareCluster(managed.client),
  ]);
  await Promise.all([mapAgent(one.client, agentName), giveAgentCredentials(managed.client, authority, agentName)]);
  const agentHealth = ports[8] ?? 0;
  const agent = new Program([
    'agent',
    `--kubeconfig=${managed.kubeconfig}`,
    `--namespace=${namespace}`,
    '--creds=mtls:any',
    `--server-address=127.0.0.1:${grpc1},127.0.0.1:${grpc2}`,
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
      await Promise.all([first.principal, second.principal, agent].map((program) => program.stop('SIGKILL')));
      await Promise.all([one, two, managed].map((cluster) => cluster.stop()));
    },
  };
}
