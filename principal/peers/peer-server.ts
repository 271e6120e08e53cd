import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { isDnsLabel, type Logger, networkOf } from '../../lib/base/index.ts';
import { boundedServer, type HttpLimits, RefusalLog } from '../../lib/http/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import type { Peer, ReplicaDirectory } from '../replicas/index.ts';
import { onDeparture } from './departures.ts';
import { agentHeader, mostPerPeer, notHeldHeader } from './link-protocol.ts';
import type { LinkMetrics } from './metrics.ts';
import { type PeerIdentity, peerFingerprint } from './peer-identity.ts';

/** A request of a peer. */
export interface PeerCall {
  readonly peer: Peer;
  /** The agent that it is about, which this replica holds; empty for a call about no agent. */
  readonly agent: string;
}

/** Serves requests of peers. */
export interface PeerService {
  request(call: PeerCall, request: IncomingMessage, response: ServerResponse): void;
  /** The request offers an upgrade. */
  upgrade(call: PeerCall, request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** The port for peers. */
export interface PeerServer {
  readonly port: number;
  /** Lets the peers of this directory in. Nobody is let in before. */
  admit(directory: ReplicaDirectory, service: PeerService): void;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Connections of a peer beyond those of its open requests: idle ones. */
const spareConnections = 256;
const limits: HttpLimits = {
  // Of all peers, and of those that are being asked who they are. What a peer may have is counted by its certificate below.
  connections: 50_000,
  connectionsPerNetwork: 25_000,
  requestsUnderWay: 2,
  headersMs: 5_000,
  // A body may wait for its client; the request behind it has a limit at the replica where it arrived.
  requestMs: 0,
  // Peers know it and end idle connections a little earlier.
  idleMs: 60_000,
  // Longer than the client behind the peer may take nothing.
  stallMs: 600_000,
};

/**
 * Listens for the other replicas. Whoever cannot prove to have the key of a live replica's certificate is disconnected before a byte
 * of its request is read.
 * @throws FatalError when the port cannot be taken
 */
export async function servePeers(options: {
  readonly host: string;
  readonly port: number;
  readonly identity: PeerIdentity;
  readonly metrics: LinkMetrics;
  readonly logger: Logger;
}): Promise<PeerServer> {
  const { host, port, identity, metrics, logger } = options;
  const refusals = new RefusalLog('other replicas', logger);
  let joined: { readonly directory: ReplicaDirectory; readonly service: PeerService } | undefined;
  /** Of each peer, by fingerprint. */
  const connections = new Map<string, Set<TLSSocket>>();
  const fingerprints = new WeakMap<Socket, string>();
  const peerOf = (fingerprint: string | undefined) =>
    joined?.directory.peers().find((peer) => peer.fingerprint === fingerprint);

  const callOf = ({ socket, headers }: IncomingMessage): PeerCall | undefined => {
    const peer = peerOf(fingerprints.get(socket));
    const agent = headers[agentHeader] ?? '';
    return peer === undefined || Array.isArray(agent) || (agent !== '' && !isDnsLabel(agent))
      ? undefined
      : { peer, agent };
  };
  const isServed = ({ agent }: PeerCall) => agent === '' || joined?.directory.holderOf(agent) === 'here';

  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const call = callOf(request);
    if (call === undefined || joined === undefined) {
      request.socket.destroy();
      return;
    }
    if (!isServed(call)) {
      metrics.received('not-held');
      response.writeHead(421, { [notHeldHeader]: 'true', 'content-length': 0 }).end();
      return;
    }
    metrics.received('served');
    if (request.headers.expect !== undefined) {
      response.writeContinue();
    }
    joined.service.request(call, request, response);
  };
  const bounded = boundedServer(
    {
      what: 'other replicas',
      limits,
      tls: {
        cert: identity.certificate,
        key: identity.key,
        minVersion: 'TLSv1.3',
        requestCert: true,
        // No authority vouches for a peer. The handshake proves that it has the key; the fingerprint is compared below.
        rejectUnauthorized: false,
        ALPNProtocols: ['http/1.1'],
      },
      logger,
    },
    serve,
  );
  const { server } = bounded;
  // With the body of a request, which waits until the request is known to be served here.
  server.on('checkContinue', serve);
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => undefined);
    const call = callOf(request);
    if (call === undefined || joined === undefined) {
      socket.destroy();
    } else if (isServed(call)) {
      metrics.received('served');
      joined.service.upgrade(call, request, socket, head);
    } else {
      metrics.received('not-held');
      socket.once('finish', () => socket.destroy());
      socket.end(`HTTP/1.1 421 Misdirected Request\r\n${notHeldHeader}: true\r\ncontent-length: 0\r\n\r\n`);
    }
  });
  const speak = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    const fingerprint = peerFingerprint(socket);
    if (fingerprint === undefined || peerOf(fingerprint) === undefined) {
      metrics.refused();
      refusals.add('it is from no live replica', networkOf(socket.remoteAddress ?? ''), { fingerprint });
      socket.destroy();
      return;
    }
    const others = connections.get(fingerprint) ?? new Set();
    if (others.size >= mostPerPeer + spareConnections) {
      socket.destroy();
      return;
    }
    fingerprints.set(socket, fingerprint);
    connections.set(fingerprint, others.add(socket));
    socket.once('close', () => {
      others.delete(socket);
      if (others.size === 0) {
        connections.delete(fingerprint);
      }
    });
    for (const listener of speak) {
      listener.call(server, socket);
    }
  });
  server.on('tlsClientError', (error: Error, socket: Socket) => {
    logger.debug({ error }, 'a TLS handshake of a peer failed');
    socket.destroy();
  });
  const listening = await bounded.listen({ port, host }).catch((cause: Error) => {
    throw new FatalError(`cannot serve other replicas on port ${port}: ${cause.message}`, { cause });
  });
  server.on('error', (error) => logger.error({ error }, 'the listener for other replicas failed'));

  let unsubscribe: () => void = () => undefined;
  return {
    port: listening,
    admit: (directory, service) => {
      joined = { directory, service };
      // A replica that has gone may still be there behind its connections.
      unsubscribe = onDeparture(directory, (isAlive) => {
        for (const [fingerprint, sockets] of connections) {
          if (!isAlive(fingerprint)) {
            for (const socket of sockets) {
              socket.destroy();
            }
          }
        }
      });
    },
    close: async () => {
      unsubscribe();
      const closed = bounded.close();
      for (const sockets of connections.values()) {
        for (const socket of sockets) {
          socket.destroy();
        }
      }
      await closed;
    },
  };
}
