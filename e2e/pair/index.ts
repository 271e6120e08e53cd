import { randomUUID } from 'node:crypto';
import { type KubeClient, type KubeObject, namespaces, resourceType, secrets } from '../../lib/kube/index.ts';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { argoCdCrds, installCrds } from '../hub/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { freeLowPort } from './ports.ts';
import { Program } from './program.ts';

export { freeLowPort } from './ports.ts';
export { Program } from './program.ts';
export { freePort, type Redis, startRedis } from './redis.ts';

/** An Application or AppProject, loosely typed. */
export interface ArgoObject extends KubeObject {
  spec: Record<string, unknown>;
  status?: Record<string, unknown>;
  operation?: Record<string, unknown>;
}

const argo = { group: 'argoproj.io', version: 'v1alpha1', namespaced: true };
/** argoproj.io/v1alpha1 Application. */
export const applications = resourceType<ArgoObject>({ ...argo, kind: 'Application', plural: 'applications' });
/** argoproj.io/v1alpha1 AppProject. */
export const appProjects = resourceType<ArgoObject>({ ...argo, kind: 'AppProject', plural: 'appprojects' });

/** Argo CD's namespace on both clusters. */
export const namespace = 'argocd';

/** A hub with a principal and a managed cluster with its agent, both on real API servers. */
export interface Pair {
  readonly hub: Cluster;
  readonly managed: Cluster;
  readonly principal: Program;
  readonly agent: Program;
  /** The agent's name. */
  readonly name: string;
  readonly authority: KeyCertificate;
  readonly principalPort: number;
  readonly agentHealthPort: number;
  /** Another agent process against the same principal, not started. */
  otherAgent(args: readonly string[], cluster?: Cluster): Promise<Program>;
  stop(): Promise<void>;
}

/** How a pair is started. */
export interface PairOptions {
  name?: string;
  principalArgs?: readonly string[];
  agentArgs?: readonly string[];
  /** Leave the programs to the test to start. */
  idle?: boolean;
}

/** Starts both clusters with Argo CD's kinds, the key material, principal and agent; connected when it resolves. */
export async function startPair(options: PairOptions = {}): Promise<Pair> {
  const name = options.name ?? 'cluster1';
  const [served, managed] = await Promise.all([startHub(options), startCluster()]);
  const { hub, authority, principal, principalPort } = served;
  await prepareCluster(managed.client);
  await Promise.all([mapAgent(hub.client, name), giveAgentCredentials(managed.client, authority, name)]);
  const agentArgs = (kubeconfig: string, metrics: number, health: number) => [
    'agent',
    `--kubeconfig=${kubeconfig}`,
    `--namespace=${namespace}`,
    '--agent-mode=managed',
    '--creds=mtls:any',
    '--server-address=127.0.0.1',
    `--server-port=${principalPort}`,
    `--metrics-port=${metrics}`,
    `--healthz-port=${health}`,
  ];
  const [agentMetricsPort, agentHealthPort] = await Promise.all([freeLowPort(), freeLowPort()]);
  const agent = new Program([
    ...agentArgs(managed.kubeconfig, agentMetricsPort, agentHealthPort),
    ...(options.agentArgs ?? []),
  ]);
  const others: Program[] = [];
  if (!options.idle) {
    principal.start();
    agent.start();
    await agent.says(/Connected to the principal/);
  }
  return {
    hub,
    managed,
    principal,
    agent,
    name,
    authority,
    principalPort,
    agentHealthPort,
    async otherAgent(args, cluster = managed) {
      const other = new Program([...agentArgs(cluster.kubeconfig, await freeLowPort(), await freeLowPort()), ...args]);
      others.push(other);
      return other;
    },
    async stop() {
      await Promise.all([agent, ...others].map((program) => program.stop('SIGKILL')));
      await Promise.all([served.stop(), managed.stop()]);
    },
  };
}

/** A hub with a principal, for tests that play the agents themselves. */
export interface PrincipalHub {
  readonly hub: Cluster;
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
export async function startHub(options: { principalArgs?: readonly string[] } = {}): Promise<PrincipalHub> {
  const [hub, authority, jwtKey] = await Promise.all([
    startCluster(),
    createAuthority({ commonName: 'argocd-agent-ca@test' }),
    generateJwtKey(2048),
  ]);
  await prepareCluster(hub.client);
  const server = await issueCertificate({
    authority,
    commonName: 'argocd-agent-principal',
    hosts: ['127.0.0.1', 'localhost'],
    usages: ['server'],
  });
  await Promise.all([
    putTls(hub.client, 'argocd-agent-ca', authority),
    putTls(hub.client, 'argocd-agent-principal-tls', server),
    put(hub.client, 'argocd-agent-jwt', { 'jwt.key': jwtKey }),
  ]);
  const programs: Program[] = [];
  const newPrincipal = async (args: readonly string[]) => {
    const [port, metrics, health] = await Promise.all([freeLowPort(), freeLowPort(), freeLowPort()]);
    const program = new Program([
      'principal',
      `--kubeconfig=${hub.kubeconfig}`,
      `--namespace=${namespace}`,
      '--allowed-namespaces=*',
      '--listen-host=127.0.0.1',
      `--listen-port=${port}`,
      `--metrics-port=${metrics}`,
      `--healthz-port=${health}`,
      '--auth=mtls:subject:CN=([^,]+)',
      ...args,
    ]);
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

/** Argo CD's CRDs and namespace. */
async function prepareCluster(client: KubeClient): Promise<void> {
  await client.create(namespaces, { metadata: { name: namespace } });
  await installCrds(client, await argoCdCrds());
}

/** Writes an Opaque Secret into Argo CD's namespace, replacing one of that name. */
export async function put(
  client: KubeClient,
  name: string,
  data: Readonly<Record<string, string>>,
  extra: { type?: string; labels?: Record<string, string> } = {},
): Promise<void> {
  await client.apply(
    secrets,
    {
      metadata: { name, namespace, ...(extra.labels ? { labels: extra.labels } : {}) },
      ...(extra.type ? { type: extra.type } : {}),
      data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    },
    { fieldManager: 'test', force: true },
  );
}

/** Writes a TLS Secret into Argo CD's namespace. */
export async function putTls(client: KubeClient, name: string, material: KeyCertificate): Promise<void> {
  const data = { 'tls.crt': material.certificate, 'tls.key': material.key };
  await put(client, name, data, { type: 'kubernetes.io/tls' });
}

/** The client certificate of an agent, and the CA, in the Secrets where it looks for them. */
export async function giveAgentCredentials(
  client: KubeClient,
  authority: KeyCertificate,
  name: string,
  options: { trust?: KeyCertificate; lifetimeMs?: number; now?: Date } = {},
): Promise<void> {
  const { trust = authority, ...life } = options;
  const certificate = await issueCertificate({ authority, commonName: name, usages: ['client'], ...life });
  await put(client, 'argocd-agent-ca', { 'ca.crt': trust.certificate });
  await putTls(client, 'argocd-agent-client-tls', certificate);
}

/** The cluster Secret that maps an agent. */
export async function mapAgent(client: KubeClient, name: string): Promise<void> {
  const labels = { 'argocd.argoproj.io/secret-type': 'cluster', 'argocd-agent.argoproj-labs.io/agent-name': name };
  const server = `https://argocd-agent-resource-proxy:9090?agentName=${name}`;
  await put(client, `cluster-${name}`, { name, server, config: '{}' }, { labels });
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

/**
 * Asks again and again, at short intervals, until there is an answer.
 * @throws Error that says what was waited for, with the last error
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined>,
  options: { timeoutMs?: number; details?: () => string } = {},
): Promise<T> {
  const deadline = Date.now() + (options.timeoutMs ?? 20_000);
  let last: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) {
      throw new Error(`waited in vain until ${what}${options.details ? `\n${options.details()}` : ''}`, {
        cause: last,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
