import { Registry } from 'prom-client';
import { TokenAuthority } from '../../../lib/auth/index.ts';
import { OpenConnections } from '../../../lib/credentials/index.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../../lib/pki/index.ts';
import type { WireEvent } from '../../../lib/wire/index.ts';
import type { PeerLink } from '../../peers/peer-link.ts';
import { openPeerPort, type PeerPort } from '../../peers/peer-port.ts';
import type { Peer, ReplicaDirectory } from '../../replicas/index.ts';
import { LiveAccess } from '../live-access.ts';
import type { ProxyFailure } from '../metrics.ts';
import type { ResourceProxy } from '../resources/resource-proxy.ts';

/** Who holds which agent, as all replicas of a test see it. */
export class HeldAgents {
  readonly #holders = new Map<string, string>();
  readonly #peers = new Map<string, Peer>();
  readonly #changed = new Set<(agent: string) => void>();
  /** A replica that still sees what was before. */
  #late: { readonly identity: string; readonly holders: ReadonlyMap<string, string> } | undefined;

  /** What one replica sees. */
  directoryOf(identity: string): ReplicaDirectory {
    return {
      identity,
      holderOf: (agent) => {
        const holders = this.#late?.identity === identity ? this.#late.holders : this.#holders;
        const holder = holders.get(agent);
        return holder === identity ? 'here' : this.#peers.get(holder ?? '');
      },
      peers: () => [...this.#peers.values()].filter((peer) => peer.identity !== identity),
      subscribe: (changed) => {
        this.#changed.add(changed);
        return () => this.#changed.delete(changed);
      },
    };
  }

  /** A replica is alive. */
  add(peer: Peer): void {
    this.#peers.set(peer.identity, peer);
    this.#tell('');
  }

  /** A replica has lost its Lease, and its agents. */
  remove(identity: string): void {
    this.#peers.delete(identity);
    for (const [agent, holder] of this.#holders) {
      if (holder === identity) {
        this.hold(agent, undefined);
      }
    }
    this.#tell('');
  }

  /** Lets a replica see no further change, until this is called without one. */
  delay(identity: string | undefined): void {
    this.#late = identity === undefined ? undefined : { identity, holders: new Map(this.#holders) };
    for (const agent of this.#holders.keys()) {
      this.#tell(agent);
    }
  }

  /** An agent has another holder. */
  hold(agent: string, identity: string | undefined): void {
    if (identity === undefined) {
      this.#holders.delete(agent);
    } else {
      this.#holders.set(agent, identity);
    }
    this.#tell(agent);
  }

  #tell(agent: string): void {
    for (const changed of [...this.#changed]) {
      changed(agent);
    }
  }
}

/** A replica whose agents the test plays. */
export interface PlayedReplica {
  readonly identity: string;
  readonly live: LiveAccess;
  readonly proxy: ResourceProxy;
  readonly port: PeerPort;
  readonly link: PeerLink;
  /** Identities that peers said they had deposed. */
  readonly deposed: string[];
  readonly failures: ProxyFailure[];
  /** How many requests of peers were refused because the agent is elsewhere. */
  refusals(): Promise<number>;
  /** Agents that have a stream here. */
  readonly connected: Set<string>;
  /** Takes what is sent to agents. */
  onEvent: (agent: string, event: WireEvent) => void;
  stop(): Promise<void>;
}

/** What callers of all replicas need. */
export interface Callers {
  readonly authority: KeyCertificate;
  readonly server: KeyCertificate;
  /** A caller that may act for the agent `edge`. */
  readonly client: KeyCertificate;
}

/** Makes the certificates of callers and proxies. */
export async function makeCallers(): Promise<Callers> {
  const authority = await createAuthority({ commonName: 'ca' });
  return {
    authority,
    server: await issueCertificate({ authority, commonName: 'proxy', hosts: ['127.0.0.1'], usages: ['server'] }),
    client: await issueCertificate({ authority, commonName: 'edge', usages: ['client'] }),
  };
}

/** Starts a replica on loopback ports. */
export async function playReplica(held: HeldAgents, identity: string, callers: Callers): Promise<PlayedReplica> {
  const { authority, server } = callers;
  const logger = createLogger({ level: 'fatal' });
  const stopping = new AbortController();
  const connected = new Set<string>();
  const failures: ProxyFailure[] = [];
  const registry = new Registry();
  const port = await openPeerPort({
    listen: { host: '127.0.0.1', port: 0 },
    address: '127.0.0.1:0',
    registry,
    logger,
  });
  const live = new LiveAccess({
    send: (agent, event) => {
      if (connected.has(agent)) {
        setImmediate(() => replica.onEvent(agent, event));
      }
      return connected.has(agent);
    },
    isConnected: (agent) => connected.has(agent),
  });
  const deposed: string[] = [];
  const link = live.joinReplicas({
    port,
    directory: held.directoryOf(identity),
    deposed: (told) => deposed.push(told),
    terminalIdleMs: 0,
    mostAnswerBytes: 64 * 1024 * 1024,
    maxAnswerBytes: 16 * 1024 * 1024,
    logger,
    signal: stopping.signal,
  });
  held.add({ identity, address: port.address, fingerprint: port.fingerprint });
  const proxy = await live.serveResources({
    address: { host: '127.0.0.1', port: 0 },
    tls: { cert: server.certificate, key: server.key, clientCa: authority.certificate },
    tokens: TokenAuthority.fromPem(await generateJwtKey(2048)),
    connections: new OpenConnections({ logger }),
    terminalIdleMs: 0,
    mostAnswerBytes: 64 * 1024 * 1024,
    metrics: { request: () => undefined, failed: (_agent, reason) => failures.push(reason) },
    audit: undefined,
    logger,
  });
  const replica: PlayedReplica = {
    identity,
    live,
    proxy,
    port,
    link,
    deposed,
    failures,
    async refusals() {
      const metric = await registry.getSingleMetric('argocd_principal_replica_requests_received_total')?.get();
      return metric?.values.find(({ labels }) => labels.outcome === 'not-held')?.value ?? 0;
    },
    connected,
    onEvent: () => undefined,
    async stop() {
      stopping.abort(new Error('the test is over'));
      await Promise.all([proxy.close(), port.close()]);
    },
  };
  return replica;
}
