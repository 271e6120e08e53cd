import { once } from 'node:events';
import {
  type AddressInfo,
  connect as connectTcp,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net';
import {
  type ConnectionOptions,
  connect as connectTls,
  createServer as createTlsServer,
  Server as TlsServer,
} from 'node:tls';
import { BoundedMap, type Logger, listenHost } from '../../../lib/base/index.ts';
import { limitConnections, limitHandshakes, RefusalLog } from '../../../lib/http/index.ts';
import { FatalError } from '../../../lib/ops/index.ts';
import { type ServerTls, secureContextOptions, useTls } from '../../../lib/wire/index.ts';
import type { AgentCache } from './agent-cache.ts';
import { ClientConnection } from './client-connection.ts';

/** Options of the Redis proxy. */
export interface RedisProxyOptions {
  readonly host: string;
  readonly port: number;
  /** Undefined for none, as in the original unless `--redis-tls-enabled` is given. */
  readonly tls: ServerTls | undefined;
  /** The principal's own Redis. */
  readonly upstream: {
    readonly host: string;
    readonly port: number;
    /** Called before each connection; undefined for none. @throws Error that names what is missing */
    tls(): ConnectionOptions | undefined;
  };
  readonly cache: Pick<AgentCache, 'get' | 'subscribe' | 'ping'>;
  /** Gets keys without their prefix. */
  agentOf(key: string): string | undefined;
  /** What the keys of the hub's Argo CD begin with. */
  readonly keyPrefix: string;
  readonly logger: Logger;
}

/** A running proxy. */
export interface RedisProxy {
  readonly port: number;
  setTls(tls: ServerTls): void;
  /** A channel of an agent has a message for the client whose connection has this UUID. */
  news(agent: string, connectionUuid: string, channel: string): void;
  /** The agent has a stream again. */
  agentConnected(agent: string): void;
  close(): Promise<void>;
}

/** argocd-server keeps some tens of connections, and one for each Application that is looked at. */
const limits = { connections: 10_000, connectionsPerNetwork: 5_000 };
/** Connections that Redis has not accepted yet. The oldest one makes room: clients of Argo CD authenticate at once. */
const mostStrangers = 1_000;
const connectTimeoutMs = 30_000;
/** Reveals clients that have disappeared without closing their connection. */
const keepAliveMs = 60_000;

/**
 * Stands between the hub's Argo CD and its Redis: what Argo CD looks for in its cache about Applications of agents comes from the
 * agents, everything else from Redis.
 * @throws FatalError when the port cannot be taken
 */
export async function serveRedisProxy(options: RedisProxyOptions): Promise<RedisProxy> {
  const { host, port, logger } = options;
  const connections = new Map<string, ClientConnection>();
  const strangers = new BoundedMap<string, ClientConnection>(mostStrangers, (_uuid, connection) => connection.close());
  const sockets = new Set<Socket>();
  const accept = (client: Socket) => {
    client.setNoDelay(true);
    client.setKeepAlive(true, keepAliveMs);
    client.on('error', () => undefined);
    client.pause();
    let upstream: Socket;
    try {
      upstream = openUpstream(options.upstream);
    } catch (error) {
      logger.error({ error }, 'Redis cannot be reached for a client of the Redis proxy');
      client.destroy();
      return;
    }
    sockets.add(client);
    const connection = new ClientConnection({
      client,
      upstream,
      cache: options.cache,
      agentOf: (key) => options.agentOf(key),
      keyPrefix: options.keyPrefix,
      accepted: () => strangers.delete(connection.uuid),
      logger,
    });
    connections.set(connection.uuid, connection);
    strangers.set(connection.uuid, connection);
    upstream.setTimeout(connectTimeoutMs, () => {
      if (upstream.connecting) {
        upstream.destroy(new Error('no connection in time'));
      }
    });
    upstream.once('error', (error) =>
      logger.warn({ error }, 'the connection to Redis failed; its client has to connect again'),
    );
    client.once('close', () => {
      sockets.delete(client);
      connections.delete(connection.uuid);
      strangers.delete(connection.uuid);
    });
    client.resume();
  };
  const server: Server | TlsServer =
    options.tls === undefined
      ? createTcpServer(accept)
      : createTlsServer({ ...secureContextOptions(options.tls), handshakeTimeout: connectTimeoutMs }, accept);
  server.on('tlsClientError', (error: Error, socket: Socket) => {
    logger.debug({ error }, 'a TLS handshake with the Redis proxy failed');
    socket.destroy();
  });
  const endHandshakes = server instanceof TlsServer ? limitHandshakes(server) : undefined;
  limitConnections(server, limits, new RefusalLog('the Redis proxy', logger));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new FatalError(`cannot serve the Redis proxy on port ${port}: ${cause.message}`, { cause })),
    );
    server.listen(port, listenHost(host), resolve);
  });
  server.on('error', (error) => logger.error({ error }, 'the listener of the Redis proxy failed'));
  return {
    port: (server.address() as AddressInfo).port,
    setTls: (tls) => {
      if ('setSecureContext' in server) {
        useTls(server, tls);
      }
    },
    news: (agent, connectionUuid, channel) => {
      connections.get(connectionUuid)?.news(agent, channel);
    },
    agentConnected: (agent) => {
      for (const connection of connections.values()) {
        connection.agentConnected(agent);
      }
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      endHandshakes?.();
      for (const connection of connections.values()) {
        connection.close();
      }
      for (const socket of sockets) {
        socket.destroy();
      }
      await closed;
    },
  };
}

function openUpstream({ host, port, tls }: RedisProxyOptions['upstream']): Socket {
  const secure = tls();
  const socket =
    secure === undefined ? connectTcp({ host, port }) : connectTls({ host, port, servername: host, ...secure });
  socket.setNoDelay(true);
  return socket;
}
