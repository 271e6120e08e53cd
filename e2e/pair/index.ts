import { randomUUID } from 'node:crypto';
import type { AgentMode } from '../../lib/auth/index.ts';
import { type KubeObject, resourceType } from '../../lib/kube/index.ts';
import { createAuthority, generateJwtKey, type KeyCertificate } from '../../lib/pki/index.ts';
import { borrowCluster, freePort, type SharedCluster } from '../testbed/index.ts';
import { giveAgentCredentials, giveHubMaterial, mapAgent, namespace, prepareCluster } from './material.ts';
import { Program } from './program.ts';

export { freePort } from '../testbed/index.ts';
export { type ArgoCdProgramName, argoCdProgram, putArgoCdSettings } from './argocd-program.ts';
export { type Collector, startCollector } from './collector.ts';
export {
  giveAgentCredentials,
  giveHubMaterial,
  type HubMaterial,
  mapAgent,
  namespace,
  prepareCluster,
  put,
  putTls,
} from './material.ts';
export { type MeshProxy, startMeshProxy } from './mesh-proxy.ts';
export type { CollectedSpan } from './otlp.ts';
export { Program } from './program.ts';
export { issueSvid } from './svid.ts';
export { type PairedHub, type PairedPrincipal, startTwoHubs, type TwoHubs, type TwoHubsOptions } from './two-hubs.ts';

/** An Application, ApplicationSet or AppProject, loosely typed. */
export interface ArgoObject extends KubeObject {
  spec: Record<string, unknown>;
  status?: Record<string, unknown>;
  operation?: Record<string, unknown>;
}

const argo = { group: 'argoproj.io', version: 'v1alpha1', namespaced: true };
/** argoproj.io/v1alpha1 Application. */
export const pairApplications = resourceType<ArgoObject>({ ...argo, kind: 'Application', plural: 'applications' });
/** Their names, in order. */
export const namesOf = (found: readonly ArgoObject[]): string[] => found.map(({ metadata }) => metadata.name).sort();
/** Their UIDs, by name. */
export const uidsOf = (found: readonly ArgoObject[]): Record<string, string | undefined> =>
  Object.fromEntries(found.map(({ metadata: { name, uid } }) => [name, uid]));
/** argoproj.io/v1alpha1 AppProject. */
export const pairAppProjects = resourceType<ArgoObject>({ ...argo, kind: 'AppProject', plural: 'appprojects' });
/** argoproj.io/v1alpha1 ApplicationSet. */
export const pairApplicationSets = resourceType<ArgoObject>({
  ...argo,
  kind: 'ApplicationSet',
  plural: 'applicationsets',
});

/** An AppProject that permits everything. */
export const permissiveProject = {
  sourceRepos: ['*'],
  destinations: [{ name: '*', namespace: '*', server: '*' }],
  sourceNamespaces: ['*'],
  clusterResourceWhitelist: [{ group: '*', kind: '*' }],
};

/** An agent with a cluster of its own. */
export interface AgentCluster<C extends SharedCluster = SharedCluster> {
  readonly name: string;
  readonly mode: AgentMode;
  readonly cluster: C;
  readonly agent: Program;
  readonly healthPort: number;
  readonly metricsPort: number;
}

/** How an agent is started. */
export interface AddedAgentOptions {
  name: string;
  mode?: AgentMode;
  args?: readonly string[];
  /** Leave the agent to the test to start. */
  idle?: boolean;
}

/** A hub with a principal and a cluster with its agent, both on real API servers. */
export interface Pair<C extends SharedCluster = SharedCluster> {
  readonly hub: C;
  /** The agent's cluster, whatever its mode. */
  readonly managed: C;
  readonly principal: Program;
  readonly agent: Program;
  /** The agent's name. */
  readonly name: string;
  readonly authority: KeyCertificate;
  readonly principalPort: number;
  readonly principalMetricsPort: number;
  readonly agentHealthPort: number;
  readonly agentMetricsPort: number;
  /** Another agent process against the same principal, not started; managed unless the arguments say otherwise. */
  otherAgent(
    args: readonly string[],
    cluster?: SharedCluster,
    environment?: Readonly<Record<string, string>>,
  ): Promise<Program>;
  /** Another principal process on the same hub, not started. */
  readonly otherPrincipal: PrincipalHub['otherPrincipal'];
  /** One more agent with a cluster of its own, connected when it resolves. */
  addAgent(options: AddedAgentOptions): Promise<AgentCluster<C>>;
  stop(): Promise<void>;
}

/** How a pair is started. */
export interface PairOptions {
  name?: string;
  /** Default: managed. */
  mode?: AgentMode;
  principalArgs?: readonly string[];
  agentArgs?: readonly string[];
  /** Leave the programs to the test to start. */
  idle?: boolean;
  /** Executables that run instead of this working tree's programs. */
  originals?: Originals;
  /** Of both programs, besides what they need anyway. */
  environment?: Readonly<Record<string, string>>;
  /** Issues all certificates. Default: one that is made for this pair. */
  authority?: KeyCertificate;
}

/** `argocd-agent` of that project or of another version of this one; without one this working tree's program runs. */
export interface Originals {
  readonly principal?: string | undefined;
  readonly agent?: string | undefined;
}

/**
 * Starts principal and agent on two clusters with Argo CD's kinds and the key material; connected when it resolves. A test
 * that stops processes of the clusters passes `startCluster`.
 */
export async function startPair(options?: PairOptions): Promise<Pair>;
export async function startPair<C extends SharedCluster>(
  options: PairOptions,
  start: () => Promise<C>,
): Promise<Pair<C>>;
export async function startPair(
  options: PairOptions = {},
  start: () => Promise<SharedCluster> = borrowCluster,
): Promise<Pair> {
  const { name = 'cluster1', mode = 'managed', idle = false } = options;
  const served = await startHub(options, start);
  const { hub, authority, principal, principalPort } = served;
  const programs: Program[] = [];
  const clusters: SharedCluster[] = [];
  const newAgent = (
    cluster: SharedCluster,
    ports: { metrics: number; health: number },
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ) => {
    const flags = [
      'agent',
      `--kubeconfig=${cluster.kubeconfig}`,
      `--namespace=${namespace}`,
      '--creds=mtls:any',
      '--server-address=127.0.0.1',
      `--server-port=${principalPort}`,
      `--metrics-port=${ports.metrics}`,
      `--healthz-port=${ports.health}`,
      ...args,
    ];
    const program = new Program(flags, { ...options.environment, ...environment }, options.originals?.agent);
    programs.push(program);
    return program;
  };
  const freePorts = async () => ({ metrics: await freePort(), health: await freePort() });
  const addAgent = async (added: AddedAgentOptions): Promise<AgentCluster> => {
    const { name, mode = 'managed', args = [] } = added;
    const [cluster, ports] = await Promise.all([start(), freePorts()]);
    clusters.push(cluster);
    await prepareCluster(cluster.client);
    await Promise.all([mapAgent(hub.client, name), giveAgentCredentials(cluster.client, authority, name)]);
    const agent = newAgent(cluster, ports, [`--agent-mode=${mode}`, ...args]);
    if (added.idle !== true) {
      const after = principal.output.length;
      agent.start();
      await agent.says(/Connected to the principal|Authentication successful/);
      // An agent takes a principal that says nothing for one that has taken it; a busy one may not have looked yet.
      await principal.says(new RegExp(`An agent (is )?connected.*\\b${name}\\b`), { after });
    }
    return { name, mode, cluster, agent, healthPort: ports.health, metricsPort: ports.metrics };
  };
  if (!idle) {
    principal.start();
  }
  const first = await addAgent({ name, mode, idle, args: options.agentArgs ?? [] });
  return {
    hub,
    managed: first.cluster,
    principal,
    agent: first.agent,
    name,
    authority,
    principalPort,
    principalMetricsPort: served.metricsPort,
    agentHealthPort: first.healthPort,
    agentMetricsPort: first.metricsPort,
    otherAgent: async (args, cluster = first.cluster, environment = {}) =>
      newAgent(cluster, await freePorts(), ['--agent-mode=managed', ...args], environment),
    otherPrincipal: served.otherPrincipal,
    addAgent,
    async stop() {
      await Promise.all(programs.map((program) => program.stop('SIGKILL')));
      await Promise.all([served.stop(), ...clusters.map((cluster) => cluster.stop())]);
    },
  };
}

/** A hub with a principal, for tests that play the agents themselves. */
export interface PrincipalHub {
  readonly hub: SharedCluster;
  /** Not started. */
  readonly principal: Program;
  readonly authority: KeyCertificate;
  /** The key that the principal signs tokens with, PEM. */
  readonly jwtKey: string;
  readonly principalPort: number;
  readonly metricsPort: number;
  /** Another principal process on the same hub, not started. */
  otherPrincipal(args: readonly string[]): Promise<{ program: Program; port: number; metricsPort: number }>;
  stop(): Promise<void>;
}

/** Starts a hub with Argo CD's kinds and the principal's key material. */
export async function startHub(
  options: Pick<PairOptions, 'principalArgs' | 'originals' | 'environment' | 'authority'> = {},
  start: () => Promise<SharedCluster> = borrowCluster,
): Promise<PrincipalHub> {
  const [hub, authority, jwtKey] = await Promise.all([
    start(),
    options.authority ?? createAuthority({ commonName: 'argocd-agent-ca@test' }),
    generateJwtKey(2048),
  ]);
  await prepareCluster(hub.client);
  await giveHubMaterial(hub.client, { authority, jwtKey });
  const programs: Program[] = [];
  const newPrincipal = async (args: readonly string[]) => {
    const [port, metrics, health] = await Promise.all([freePort(), freePort(), freePort()]);
    const flags = [
      'principal',
      `--kubeconfig=${hub.kubeconfig}`,
      `--namespace=${namespace}`,
      '--allowed-namespaces=*',
      '--listen-host=127.0.0.1',
      `--listen-port=${port}`,
      `--metrics-port=${metrics}`,
      `--healthz-port=${health}`,
      '--auth=mtls:subject:CN=([^,]+)',
      // Several principals share this machine; a test of the proxy names a port.
      ...(args.some((arg) => arg.startsWith('--resource-proxy-listen')) ? [] : ['--enable-resource-proxy=false']),
      ...(args.some((arg) => arg.startsWith('--redis-proxy-listen')) ? [] : ['--disable-redis-proxy']),
      ...args,
    ];
    const program = new Program(flags, options.environment, options.originals?.principal);
    programs.push(program);
    return { program, port, metricsPort: metrics };
  };
  const { program: principal, port: principalPort, metricsPort } = await newPrincipal(options.principalArgs ?? []);
  return {
    hub,
    principal,
    authority,
    jwtKey,
    principalPort,
    metricsPort,
    otherPrincipal: newPrincipal,
    async stop() {
      await Promise.all(programs.map((program) => program.stop('SIGKILL')));
      await hub.stop();
    },
  };
}

/** An Application for a test. */
export function application(fields: {
  name: string;
  namespace: string;
  spec?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}): ArgoObject {
  return {
    metadata: { name: fields.name, namespace: fields.namespace, ...fields.metadata },
    spec: {
      project: 'default',
      source: {
        repoURL: 'https://example.com/repo.git',
        path: `app-${randomUUID().slice(0, 8)}`,
        targetRevision: 'HEAD',
      },
      destination: { name: 'somewhere', namespace: 'default' },
      ...fields.spec,
    },
  };
}
