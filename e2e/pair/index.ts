import { randomUUID } from 'node:crypto';
import { type KubeObject, resourceType } from '../../lib/kube/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import { borrowCluster, Program, type SharedCluster } from '../testbed/index.ts';
import { type AgentCluster, startAgentCluster } from './agent-cluster.ts';
import { type AgentSetup, agentLine, type PrincipalSetup } from './command-line.ts';
import { type EmptyHubOptions, type PrincipalHub, startHub } from './hub.ts';
import { admitAgent, mapAgent } from './material.ts';

export { freePort, Program } from '../testbed/index.ts';
export { type AgentCluster, startAgentCluster } from './agent-cluster.ts';
export { startApiWay } from './api-way.ts';
export { type ArgoCdProgramName, argoCdProgram, putArgoCdSettings } from './argocd-program.ts';
export { type Collector, startCollector } from './collector.ts';
export {
  type AgentSetup,
  adminName,
  agentLine,
  type PrincipalSetup,
  type ProgramLine,
  principalLine,
} from './command-line.ts';
export { type EmptyHub, type HubPrincipal, type PrincipalHub, startEmptyHub, startHub } from './hub.ts';
export {
  admitAgent,
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
export { metricsNow } from './metrics.ts';
export type { CollectedSpan } from './otlp.ts';
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

/** How an agent is added to a pair. */
export interface AddedAgentOptions extends Partial<AgentSetup> {
  readonly name: string;
  /** The principal is to make the agent's namespace on the hub. */
  readonly withoutNamespace?: boolean;
  /** Leave the agent to the test to start. */
  readonly idle?: boolean;
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
  /** Another agent process, not started; managed and of the same principal unless the setup says otherwise. */
  otherAgent(
    setup?: Partial<AgentSetup>,
    cluster?: SharedCluster,
    environment?: Readonly<Record<string, string>>,
  ): Promise<Program>;
  /** Another principal process on the same hub, not started. */
  readonly newPrincipal: PrincipalHub['newPrincipal'];
  /** One more agent with a cluster of its own, connected when it resolves. */
  addAgent(options: AddedAgentOptions): Promise<AgentCluster<C>>;
  stop(): Promise<void>;
}

/** How a pair is started. */
export interface PairOptions extends Pick<EmptyHubOptions, 'authority' | 'environment'> {
  readonly name?: string;
  readonly principal?: Partial<PrincipalSetup>;
  readonly agent?: Partial<AgentSetup>;
  /** Leave the programs to the test to start. */
  readonly idle?: boolean;
  /** Executables that run instead of this working tree's programs. */
  readonly originals?: Originals;
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
  const { name = 'cluster1', idle = false, originals, agent: setup, ...hubOptions } = options;
  const served = await startHub({ ...hubOptions, original: originals?.principal }, start);
  const { hub, authority, principal, principalPort, newPrincipal } = served;
  const others: Program[] = [];
  const clusters: AgentCluster[] = [];
  const ofAgent = { authority, environment: options.environment, original: originals?.agent, server: principalPort };
  const addAgent = async ({ idle, withoutNamespace, ...added }: AddedAgentOptions): Promise<AgentCluster> => {
    const [one] = await Promise.all([
      startAgentCluster({ ...ofAgent, ...added }, start),
      (withoutNamespace ? mapAgent : admitAgent)(hub.client, added.name),
    ]);
    clusters.push(one);
    if (idle !== true) {
      const after = principal.output.length;
      one.agent.start();
      await one.agent.says(/Connected to the principal|Authentication successful/);
      // An agent takes a principal that says nothing for one that has taken it; a busy one may not have looked yet.
      await principal.says(new RegExp(`An agent (is )?connected.*\\b${added.name}\\b`), { after });
    }
    return one;
  };
  if (!idle) {
    principal.start();
  }
  const first = await addAgent({ ...setup, name, idle });
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
    async otherAgent(other = {}, { kubeconfig } = first.cluster, environment = {}) {
      const { args } = await agentLine({ kubeconfig, server: principalPort, ...other });
      const program = new Program(args, { ...options.environment, ...environment }, originals?.agent);
      others.push(program);
      return program;
    },
    newPrincipal,
    addAgent,
    async stop() {
      await Promise.all(others.map((program) => program.stop('SIGKILL')));
      await Promise.all([served, ...clusters].map((one) => one.stop()));
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
