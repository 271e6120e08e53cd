import { createAuthority, generateJwtKey, type KeyCertificate } from '../../lib/pki/index.ts';
import { borrowCluster, Program, type SharedCluster } from '../testbed/index.ts';
import { type PrincipalSetup, principalLine } from './command-line.ts';
import { giveHubMaterial, prepareCluster } from './material.ts';

/** A principal's process, and its ports of 127.0.0.1. */
export interface HubPrincipal {
  readonly program: Program;
  readonly port: number;
  readonly metricsPort: number;
  readonly healthPort: number;
}

/** A hub with Argo CD's kinds and what principals need of it. */
export interface EmptyHub<C extends SharedCluster = SharedCluster> {
  readonly hub: C;
  readonly authority: KeyCertificate;
  /** The key that principals sign tokens with, PEM. */
  readonly jwtKey: string;
  /** One more principal, not started. */
  newPrincipal(setup?: Partial<PrincipalSetup>): Promise<HubPrincipal>;
  /** Ends its principals, then the hub. */
  stop(): Promise<void>;
}

/** A hub with a principal, for tests that play the agents themselves. */
export interface PrincipalHub<C extends SharedCluster = SharedCluster> extends EmptyHub<C> {
  /** Not started. */
  readonly principal: Program;
  readonly principalPort: number;
  readonly metricsPort: number;
}

/** How a hub is prepared. */
export interface EmptyHubOptions {
  /** Issues all certificates. Default: one that is made for this hub. */
  readonly authority?: KeyCertificate;
  /** Default: one that is made for this hub. */
  readonly jwtKey?: string;
  /** It is one of two hubs. */
  readonly isPaired?: boolean;
  /** An executable of argocd-agent that runs instead of this working tree's principal. */
  readonly original?: string | undefined;
  /** Of the principals, besides what they need anyway. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Prepares a hub. */
export async function startEmptyHub<C extends SharedCluster>(
  options: EmptyHubOptions,
  start: () => Promise<C>,
): Promise<EmptyHub<C>> {
  const [hub, authority, jwtKey] = await Promise.all([
    start(),
    options.authority ?? createAuthority({ commonName: 'argocd-agent-ca@test' }),
    options.jwtKey ?? generateJwtKey(2048),
  ]);
  await prepareCluster(hub.client);
  await giveHubMaterial(hub.client, { authority, jwtKey, isPaired: options.isPaired ?? false });
  const programs: Program[] = [];
  return {
    hub,
    authority,
    jwtKey,
    async newPrincipal(setup = {}) {
      const { args, ...ports } = await principalLine({ kubeconfig: hub.kubeconfig, ...setup });
      const program = new Program(args, options.environment, options.original);
      programs.push(program);
      return { program, ...ports };
    },
    async stop() {
      await Promise.all(programs.map((program) => program.stop('SIGKILL')));
      await hub.stop();
    },
  };
}

/** Prepares a hub with a principal. */
export async function startHub(
  { principal: setup, ...options }: EmptyHubOptions & { readonly principal?: Partial<PrincipalSetup> } = {},
  start: () => Promise<SharedCluster> = borrowCluster,
): Promise<PrincipalHub> {
  const empty = await startEmptyHub(options, start);
  const { program: principal, port: principalPort, metricsPort } = await empty.newPrincipal(setup);
  return { ...empty, principal, principalPort, metricsPort };
}
