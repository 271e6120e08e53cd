import type { AgentMode } from '../../lib/auth/index.ts';
import { freePort } from '../testbed/index.ts';
import { namespace } from './material.ts';

/** What a principal is told when it starts. Ports are of 127.0.0.1. */
export interface PrincipalSetup {
  readonly kubeconfig: string;
  /** Where agents connect. Default: a free one. */
  readonly port?: number;
  /** Of its resource proxy. Default: it has none, because several principals share this machine. */
  readonly resourceProxy?: number;
  /** Of its Redis proxy. Default: it has none. */
  readonly redisProxy?: number;
  /** Of the hub's Redis. */
  readonly redis?: number;
  /** It is one of several on its hub: where it listens for the others, and where they reach it (default: there). */
  readonly replica?: { readonly listen: number; readonly reached?: number };
  /**
   * Its hub is one of two: the ports of the other hub's principals, and of its own orders. Certificates for {@link adminName} may give
   * them, unless it is a program that knows no certificates of administrators.
   */
  readonly ha?: {
    readonly role: 'primary' | 'replica';
    readonly peer: number;
    readonly admin: number;
    readonly knowsAdmins?: boolean;
  };
  /** Namespaces of the Applications that it handles. Default: all. */
  readonly allowedNamespaces?: readonly string[];
  /** More arguments; they win over those that follow from the rest. */
  readonly args?: readonly string[];
}

/** Common name of the certificates that may give orders to a pair. */
export const adminName = 'ha-admin';

/** What an agent is told when it starts. Ports are of 127.0.0.1. */
export interface AgentSetup {
  readonly kubeconfig: string;
  /** Of the principal; several: of the principals of each hub. */
  readonly server: number | readonly number[];
  /** Default: managed. */
  readonly mode?: AgentMode;
  /** Of its cluster's Redis. */
  readonly redis?: number;
  /** More arguments; they win over those that follow from the rest. */
  readonly args?: readonly string[];
}

/** The arguments of a program, and the free ports that they name. */
export interface ProgramLine {
  readonly args: readonly string[];
  readonly metricsPort: number;
  readonly healthPort: number;
}

const at = (port: number) => `127.0.0.1:${port}`;
const given = <T>(value: T | undefined, flags: (value: T) => string[], otherwise: string[] = []) =>
  value === undefined ? otherwise : flags(value);

/** The command line of a principal. */
export async function principalLine(setup: PrincipalSetup): Promise<ProgramLine & { readonly port: number }> {
  const port = setup.port ?? (await freePort());
  const line = await programLine('principal', setup, [
    `--allowed-namespaces=${(setup.allowedNamespaces ?? ['*']).join(',')}`,
    '--listen-host=127.0.0.1',
    `--listen-port=${port}`,
    '--auth=mtls:subject:CN=([^,]+)',
    ...given(setup.resourceProxy, (own) => [`--resource-proxy-listen=${at(own)}`], ['--enable-resource-proxy=false']),
    ...given(setup.redisProxy, (own) => [`--redis-proxy-listen=${at(own)}`], ['--disable-redis-proxy']),
    ...given(setup.redis, (redis) => [`--redis-server-address=${at(redis)}`]),
    ...given(setup.replica, ({ listen, reached = listen }) => [
      '--enable-replicas',
      `--replica-listen=${at(listen)}`,
      `--replica-address=${at(reached)}`,
    ]),
    ...given(setup.ha, ({ role, peer, admin, knowsAdmins = true }) => [
      '--ha-enabled',
      `--ha-preferred-role=${role}`,
      `--ha-peer-address=${at(peer)}`,
      `--ha-admin-port=${admin}`,
      ...(knowsAdmins ? [`--ha-admin-auth=mtls:subject:^CN=${adminName}$`] : []),
    ]),
  ]);
  return { ...line, port };
}

/** The command line of an agent. */
export function agentLine(setup: AgentSetup): Promise<ProgramLine> {
  const { server, mode = 'managed' } = setup;
  return programLine('agent', setup, [
    '--creds=mtls:any',
    // An address alone has no port of its own, as with argocd-agent.
    ...(typeof server === 'number'
      ? ['--server-address=127.0.0.1', `--server-port=${server}`]
      : [`--server-address=${server.map(at).join(',')}`]),
    `--agent-mode=${mode}`,
    ...given(setup.redis, (redis) => [`--redis-addr=${at(redis)}`]),
  ]);
}

async function programLine(
  command: 'principal' | 'agent',
  { kubeconfig, args = [] }: PrincipalSetup | AgentSetup,
  own: readonly string[],
): Promise<ProgramLine> {
  const [metricsPort, healthPort] = await Promise.all([freePort(), freePort()]);
  const common = [`--kubeconfig=${kubeconfig}`, `--namespace=${namespace}`];
  const ports = [`--metrics-port=${metricsPort}`, `--healthz-port=${healthPort}`];
  return { args: [command, ...common, ...ports, ...own, ...args], metricsPort, healthPort };
}
