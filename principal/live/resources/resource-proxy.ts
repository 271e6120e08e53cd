import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:https';
import { certifySockets, type OpenConnections, type SocketCertificate } from '../../../lib/credentials/index.ts';
import { boundedServer, type HttpLimits } from '../../../lib/http/index.ts';
import { FatalError } from '../../../lib/ops/index.ts';
import { type ServerTls, secureContextOptions, useTls } from '../../../lib/wire/index.ts';
import { isWebSocket } from '../terminals/upgrade.ts';
import { type AgentApi, serveRequest, serveTerminal } from './agent-api.ts';
import { bearerOf, type CallerNames } from './callers.ts';
import { answerUnserved } from './raw-answers.ts';

/** Options of the resource proxy. */
export interface ResourceProxyOptions extends Omit<AgentApi, 'understands'> {
  readonly port: number;
  readonly host: string;
  readonly tls: ServerTls;
  readonly callers: CallerNames;
  /** Ends connections when what proved their callers does not count any more. */
  readonly connections: OpenConnections;
}

/** A running proxy. */
export interface ResourceProxy {
  readonly port: number;
  /** New connections use this material from now on; open ones stay while their certificates count. */
  setTls(tls: ServerTls): void;
  close(): Promise<void>;
}

const limits: HttpLimits = {
  // argocd-server's for each cluster, and watches, of which each has a connection of its own.
  connections: 10_000,
  connectionsPerNetwork: 5_000,
  requestsUnderWay: 16,
  headersMs: 5_000,
  // Node reports no fault in a body after an offer to upgrade.
  requestMs: 15_000,
  // Go clients keep idle connections for longer than the original's 5 s and notice their end too late.
  idleMs: 90_000,
  // A browser's tab in the background may take no log for a while.
  stallMs: 300_000,
};

/**
 * Serves the Kubernetes API of every agent's cluster to Argo CD, over mutual TLS and HTTP/1.1. Only the caller's
 * token or certificate selects the cluster.
 * @throws FatalError when the port cannot be taken
 */
export async function serveResourceProxy(options: ResourceProxyOptions): Promise<ResourceProxy> {
  const { logger, host, port } = options;
  const api: AgentApi = { ...options, understands: new Set() };
  const callerOf = (request: IncomingMessage, ending: EventEmitter) => () =>
    agentOf(options, request, certificateOf(request.socket), ending);
  const bounded = boundedServer(
    {
      what: 'the resource proxy',
      limits,
      tls: {
        ...secureContextOptions(options.tls),
        requestCert: true,
        rejectUnauthorized: true,
        ALPNProtocols: ['http/1.1'],
      },
      http: {
        // Ambiguous requests are refused.
        insecureHTTPParser: false,
        // Checked with the rest of the request: Node answers without a Status.
        requireHostHeader: false,
        // Offers of other protocols may be ignored, and are.
        shouldUpgradeCallback: isWebSocket,
      },
      logger,
    },
    (request, response) => void serveRequest(api, callerOf(request, response), request, response),
  );
  // It was made with TLS.
  const server = bounded.server as Server;
  const certified = options.connections.port('resource proxy');
  const use = (tls: ServerTls) => {
    useTls(server, tls);
    certified.trust(tls.clientCa);
  };
  use(options.tls);
  const certificateOf = certifySockets(server, certified);
  server.on('upgrade', (request, socket, head) => {
    void serveTerminal(api, callerOf(request, socket), request, socket, head);
  });
  server.on('tlsClientError', (error, socket) => {
    logger.debug({ error }, 'a TLS handshake with the resource proxy failed');
    socket.destroy();
  });
  answerUnserved(server);
  const listening = await bounded.listen({ port, host }).catch((cause: Error) => {
    throw new FatalError(`cannot serve the resource proxy on port ${port}: ${cause.message}`, { cause });
  });
  server.on('error', (error) => logger.error({ error }, 'the listener of the resource proxy failed'));
  return {
    port: listening,
    setTls: use,
    close: async () => {
      const closed = bounded.close();
      // Connections that were upgraded are not among these.
      options.terminals.stop();
      await closed;
    },
  };
}

/**
 * The agent that the caller speaks for, for as long as it may.
 * @param ending emits `close` when the request has ended
 * @throws CallerRefusedError
 */
async function agentOf(
  { callers, connections, metrics }: ResourceProxyOptions,
  { headers, socket, url }: IncomingMessage,
  certified: SocketCertificate | undefined,
  ending: EventEmitter,
): Promise<string> {
  const { authorization } = headers;
  const agent = await callers.agentOf({ authorization, certified, url });
  if (!socket.destroyed) {
    ending.once(
      'close',
      connections.used(agent, () => socket.destroy(), bearerOf(authorization)),
    );
  }
  metrics.request(agent);
  return agent;
}
