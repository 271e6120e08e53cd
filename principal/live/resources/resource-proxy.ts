import type { IncomingMessage } from 'node:http';
import { TLSSocket, Server as TlsServer } from 'node:tls';
import { boundedServer, type HttpLimits } from '../../../lib/http/index.ts';
import { FatalError } from '../../../lib/ops/index.ts';
import { type ServerTls, secureContextOptions, useTls } from '../../../lib/wire/index.ts';
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
  const callerOf = (request: IncomingMessage) => () => agentOf(options, request);
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
    (request, response) => void serveRequest(api, callerOf(request), request, response),
  );
  const { server } = bounded;
  const follow = (tls: ServerTls) => server instanceof TlsServer && useTls(server, tls);
  follow(options.tls);
  server.on('upgrade', (request, socket, head) => void serveTerminal(api, callerOf(request), request, socket, head));
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
    setTls: follow,
    close: async () => {
      const closed = bounded.close();
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
