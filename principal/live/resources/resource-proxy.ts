import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { listenHost } from '../../../lib/base/index.ts';
import { FatalError } from '../../../lib/ops/index.ts';
import { type ServerTls, secureContextOptions, useTls } from '../../../lib/wire/index.ts';
import { limitHandshakes } from '../handshakes.ts';
import { isWebSocket } from '../terminals/upgrade.ts';
import { type AgentApi, serveRequest, serveTerminal } from './agent-api.ts';
import type { CallerNames } from './callers.ts';
import { answerUnserved } from './raw-answers.ts';

/** Options of the resource proxy. */
export interface ResourceProxyOptions extends Omit<AgentApi, 'understands'> {
  readonly port: number;
  readonly host: string;
  readonly tls: ServerTls;
  readonly callers: CallerNames;
}

/** A running proxy. */
export interface ResourceProxy {
  readonly port: number;
  /** New connections use this material from now on. */
  setTls(tls: ServerTls): void;
  close(): Promise<void>;
}

const headersTimeoutMs = 5_000;
/** How long a request may take to arrive with its body. Node reports no fault in a body after an offer to upgrade. */
const requestTimeoutMs = 15_000;
/** Lifetime of idle connections. Go clients keep them for longer than the original's 5 s and notice their end too late. */
const idleTimeoutMs = 90_000;
/** Connections that are open at the same time: argocd-server's for each cluster, and watches. */
const mostConnections = 10_000;

/**
 * Serves the Kubernetes API of every agent's cluster to Argo CD, over mutual TLS and HTTP/1.1. Only the caller's
 * token or certificate selects the cluster.
 * @throws FatalError when the port cannot be taken
 */
export async function serveResourceProxy(options: ResourceProxyOptions): Promise<ResourceProxy> {
  const { logger, host, port } = options;
  const api: AgentApi = { ...options, understands: new Set() };
  const callerOf = (request: IncomingMessage) => () => agentOf(options, request);
  const server: Server = createServer(
    {
      ...secureContextOptions(options.tls),
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: headersTimeoutMs,
      keepAliveTimeout: idleTimeoutMs,
      handshakeTimeout: headersTimeoutMs,
      // Ambiguous requests are refused.
      insecureHTTPParser: false,
      // Checked with the rest of the request: Node answers without a Status.
      requireHostHeader: false,
      // Offers of other protocols may be ignored, and are.
      shouldUpgradeCallback: isWebSocket,
    },
    (request, response) => void serveRequest(api, callerOf(request), request, response),
  );
  useTls(server, options.tls);
  server.on('upgrade', (request, socket, head) => void serveTerminal(api, callerOf(request), request, socket, head));
  server.maxConnections = mostConnections;
  const endHandshakes = limitHandshakes(server);
  server.on('tlsClientError', (error, socket) => {
    logger.debug({ error }, 'a TLS handshake with the resource proxy failed');
    socket.destroy();
  });
  answerUnserved(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new FatalError(`cannot serve the resource proxy on port ${port}: ${cause.message}`, { cause })),
    );
    server.listen(port, listenHost(host), resolve);
  });
  server.on('error', (error) => logger.error({ error }, 'the listener of the resource proxy failed'));
  return {
    port: (server.address() as AddressInfo).port,
    setTls: (tls) => useTls(server, tls),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      endHandshakes();
      server.closeAllConnections();
      // Connections that were upgraded are not among these.
      options.terminals.stop();
      await closed;
    },
  };
}

/** The agent that the caller speaks for. @throws CallerRefusedError */
async function agentOf(
  { callers, metrics }: ResourceProxyOptions,
  { headers, socket, url }: IncomingMessage,
): Promise<string> {
  const agent = await callers.agentOf({
    authorization: headers.authorization,
    certificate: socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined,
    url,
  });
  metrics.request(agent);
  return agent;
}
