import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { type HaAdminClient, haAdminClient } from '../../lib/wire/index.ts';
import { type Network, startNetwork } from '../network/index.ts';
import { borrowCluster, freePort, type Program, type SharedCluster } from '../testbed/index.ts';
import { startAgentCluster } from './agent-cluster.ts';
import { adminName } from './command-line.ts';
import { startEmptyHub } from './hub.ts';
import { admitAgent } from './material.ts';

/** A principal of one of two hubs. */
export interface PairedPrincipal {
  readonly principal: Program;
  readonly port: number;
  readonly admin: HaAdminClient;
  /** Who gives orders with another certificate, PEM. */
  adminWith(certificate: KeyCertificate): HaAdminClient;
}

/** One of two hubs, with its first principal. */
export interface PairedHub extends PairedPrincipal {
  readonly cluster: SharedCluster;
  /** All principals. */
  readonly principals: readonly PairedPrincipal[];
}

/** Two hubs of which one follows the other, and a managed cluster whose agent knows both. */
export interface TwoHubs {
  readonly first: PairedHub;
  readonly second: PairedHub;
  readonly managed: SharedCluster;
  readonly agent: Program;
  readonly agentName: string;
  /** Issues all certificates. */
  readonly authority: KeyCertificate;
  stop(): Promise<void>;
}

/** How two hubs are started; nothing runs when {@link startTwoHubs} resolves. */
export interface TwoHubsOptions {
  /** Arguments for the principals of both. */
  readonly principalArgs?: readonly string[];
  readonly firstArgs?: readonly string[];
  readonly secondArgs?: readonly string[];
  /** Principals of each hub, behind a network that gives a connection to one that runs, as a Service does. Default: 1, without one. */
  readonly principals?: number;
  /** Executables of argocd-agent that run instead. */
  readonly originals?: { readonly first?: string | undefined; readonly second?: string | undefined };
}

/** Prepares two hubs with one authority, and an agent. */
export async function startTwoHubs(options: TwoHubsOptions = {}): Promise<TwoHubs> {
  const name = 'cluster1';
  const { principals: count = 1, principalArgs = [], firstArgs = [], secondArgs = [], originals } = options;
  const [authority, jwtKey] = await Promise.all([
    createAuthority({ commonName: 'argocd-agent-ca@test' }),
    generateJwtKey(2048),
  ]);
  const operator = await issueCertificate({ authority, commonName: adminName, usages: ['client'] });
  const networks: Network[] = [];
  /** Where one principal listens, or where connections to one of several that run go. */
  const wayTo = async (hub: () => PairedHub | undefined): Promise<number> => {
    if (count === 1) {
      return await freePort();
    }
    let turn = 0;
    const network = await startNetwork(() => {
      const up = hub()?.principals.filter(({ principal }) => principal.pid !== undefined) ?? [];
      const next = up[turn++ % up.length];
      return next && { host: '127.0.0.1', port: next.port };
    });
    networks.push(network);
    return network.port;
  };
  const hubs: PairedHub[] = [];
  const [way1, way2] = await Promise.all([wayTo(() => hubs[0]), wayTo(() => hubs[1])]);
  const makeHub = async (
    role: 'primary' | 'replica',
    way: number,
    peer: number,
    args: readonly string[],
    original: string | undefined,
  ) => {
    const knowsAdmins = original === undefined || (await hasAdminAuth(original));
    const { hub, newPrincipal, stop } = await startEmptyHub(
      { authority, jwtKey, original, isPaired: true },
      borrowCluster,
    );
    const make = async (): Promise<PairedPrincipal> => {
      const [admin, listen] = await Promise.all([freePort(), freePort()]);
      const { program: principal, port } = await newPrincipal({
        ha: { role, peer, admin, knowsAdmins },
        ...(count > 1 ? { replica: { listen } } : { port: way }),
        args: [...principalArgs, ...args],
      });
      const adminWith = ({ certificate: cert, key }: KeyCertificate) =>
        haAdminClient({
          address: `127.0.0.1:${admin}`,
          tls: knowsAdmins ? { cert, key, ca: authority.certificate } : 'plaintext',
          timeoutMs: 40_000,
        });
      return { principal, port, admin: adminWith(operator), adminWith };
    };
    const first = await make();
    const others = await Promise.all(Array.from({ length: count - 1 }, make));
    return { ...first, cluster: hub, principals: [first, ...others], stop };
  };
  const [first, second, { cluster: managed, agent, stop }] = await Promise.all([
    makeHub('primary', way1, way2, firstArgs, originals?.first),
    makeHub('replica', way2, way1, secondArgs, originals?.second),
    startAgentCluster({ name, authority, server: [way1, way2] }, borrowCluster),
  ]);
  hubs.push(first, second);
  await admitAgent(first.cluster.client, name);
  return {
    first,
    second,
    managed,
    agent,
    agentName: name,
    authority,
    async stop() {
      await Promise.all([first.stop(), second.stop(), stop()]);
      await Promise.all(networks.map((network) => network.close()));
    },
  };
}

/** Whether an argocd-agent serves the orders to a pair with TLS: not in v0.9. */
async function hasAdminAuth(executable: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)(executable, ['principal', '--help']);
  return stdout.includes('--ha-admin-auth');
}
