import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { type Logger, listenHost, onAbort } from '../../../lib/base/index.ts';
import {
  isDiscoveryPath,
  type ResourcePath,
  type ResourceResponse,
  resourceResponse,
  statusText,
} from '../../../lib/live/index.ts';
import { FatalError } from '../../../lib/ops/index.ts';
import { dataOf, type ServerTls, secureContextOptions, WireError, type WireEvent } from '../../../lib/wire/index.ts';
import type { Bodies } from '../agent-bodies.ts';
import { type AgentRequests, NoAnswerError } from '../agent-requests.ts';
import { limitHandshakes } from '../handshakes.ts';
import type { ResourceProxyMetrics } from '../metrics.ts';
import { runTerminal } from '../terminals/terminal.ts';
import type { TerminalSessions } from '../terminals/terminal-sessions.ts';
import { handshakeFault, isWebSocket, upgrade } from '../terminals/upgrade.ts';
import { type CallerNames, CallerRefusedError } from './callers.ts';
import { streamLog } from './logs.ts';
import { answerRaw, answerUnserved } from './raw-answers.ts';
import {
  cancellationOf,
  isBeyondOriginal,
  isTerminal,
  ProxyRefusal,
  requestEvent,
  requestPath,
  requestTarget,
} from './request-mapping.ts';
import { breakOff, ResponseBody } from './response-body.ts';

/** Options of the resource proxy. */
export interface ResourceProxyOptions {
  readonly port: number;
  readonly host: string;
  readonly tls: ServerTls;
  readonly callers: CallerNames;
  readonly exchange: AgentRequests;
  readonly bodies: Bodies;
  readonly terminals: TerminalSessions;
  /** A terminal without input and output for this time is closed; 0 for never. */
  readonly terminalIdleMs: number;
  /** Puts an event on an agent's stream; false when it has none. */
  send(agent: string, event: WireEvent): boolean;
  /** Whether the agent has a stream. */
  isConnected(agent: string): boolean;
  /** Resolves when the agent has a stream, at once if it has one; rejects when aborted. */
  connected(agent: string, signal: AbortSignal): Promise<void>;
  readonly metrics: ResourceProxyMetrics;
  readonly logger: Logger;
}

/** A running proxy. */
export interface ResourceProxy {
  readonly port: number;
  /** New connections use this material from now on. */
  setTls(tls: ServerTls): void;
  close(): Promise<void>;
}

/** How long an agent may take to answer, as in the original. */
const answerTimeoutMs = 30_000;
const headersTimeoutMs = 5_000;
/** How long a request may take to arrive with its body. Node reports no fault in a body after an offer to upgrade. */
const requestTimeoutMs = 15_000;
/** Lifetime of idle connections. Go clients keep them for longer than the original's 5 s and notice their end too late. */
const idleTimeoutMs = 90_000;
/** Connections that are open at the same time: argocd-server's for each cluster, and watches. */
const mostConnections = 10_000;
const json = 'application/json';

/**
 * Serves the Kubernetes API of every agent's cluster to Argo CD, over mutual TLS and HTTP/1.1. Only the caller's
 * token or certificate selects the cluster.
 * @throws FatalError when the port cannot be taken
 */
export async function serveResourceProxy(options: ResourceProxyOptions): Promise<ResourceProxy> {
  const { logger, host, port } = options;
  const context: Context = { ...options, understands: new Set() };
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
    (request, response) => void serve(context, request, response),
  );
  server.on('upgrade', (request, socket, head) => void serveUpgrade(context, request, socket, head));
  server.maxConnections = mostConnections;
  limitHandshakes(server);
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
    setTls: (tls) => server.setSecureContext(secureContextOptions(tls)),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      // Connections that were upgraded are not among these.
      options.terminals.stop();
      await closed;
    },
  };
}

/** What all requests share. */
interface Context extends ResourceProxyOptions {
  /** Agents whose last answer showed that they are of ours, and understand a `cancel`. */
  readonly understands: Set<string>;
}

async function serve(options: Context, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort(new Error('the client has left')));
  response.on('error', () => undefined);
  if (request.headers.upgrade !== undefined) {
    // Node reads nothing more of a connection after an offer to upgrade that is not taken.
    response.shouldKeepAlive = false;
  }
  try {
    const agent = await callerOf(options, request);
    await forward(options, agent, request, response, gone.signal);
  } catch (error) {
    if (gone.signal.aborted) {
      return;
    }
    const [code, message] = refusalOf(error, options.logger);
    if (response.headersSent) {
      breakOff(response);
    }
    // Kubernetes' clients do not look for a Status in answers to these, but show a text.
    else if (isDiscoveryPath(requestPath(request))) {
      send(response, code, 'text/plain; charset=utf-8', message);
    } else {
      send(response, code, json, statusText(code, message));
    }
  }
}

/** Serves a request that wants to become a WebSocket: a terminal. */
async function serveUpgrade(options: Context, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  socket.on('error', () => undefined);
  try {
    const agent = await callerOf(options, request);
    const { resource, query, user } = requestTarget(request);
    requireNoImpersonation(user);
    if (!isTerminal(resource)) {
      throw new ProxyRefusal(403, 'the resource proxy serves only terminals (pods/exec) over WebSocket');
    }
    requireTerminal(options, agent, resource, request);
    upgrade(request, socket, head, (webSocket) =>
      runTerminal(options, agent, resource, new URLSearchParams(query), webSocket),
    );
  } catch (error) {
    const [code, message] = refusalOf(error, options.logger);
    answerRaw(socket, code, statusText(code, message));
  }
}

/** The agent that the caller speaks for. @throws CallerRefusedError */
async function callerOf({ callers, metrics }: Context, { headers, socket, url }: IncomingMessage): Promise<string> {
  const agent = await callers.agentOf({
    authorization: headers.authorization,
    certificate: socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined,
    url,
  });
  metrics.request(agent);
  return agent;
}

/** Argo CD opens terminals with its own rights. @throws ProxyRefusal for a terminal as another user */
function requireNoImpersonation(user: string | undefined): void {
  if (user !== undefined) {
    throw new ProxyRefusal(403, 'impersonation is not served by the resource proxy for terminals');
  }
}

/** @throws ProxyRefusal or NoAnswerError when there can be no terminal */
function requireTerminal(
  { terminals, isConnected, metrics }: Context,
  agent: string,
  { namespace, name }: ResourcePath,
  request: IncomingMessage,
): void {
  if (namespace === '' || name === '') {
    throw new ProxyRefusal(400, 'Missing required parameters: namespace and pod');
  }
  if (!isConnected(agent)) {
    metrics.failed(agent, 'agent_disconnected');
    throw new NoAnswerError('disconnected', agent);
  }
  terminals.requireRoom(agent);
  const fault = handshakeFault(request);
  if (fault !== undefined) {
    throw new ProxyRefusal(...fault);
  }
}

async function forward(
  options: Context,
  agent: string,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { exchange, bodies } = options;
  const { method = '' } = request;
  const { path, query, resource, user } = requestTarget(request);
  if (isTerminal(resource)) {
    requireNoImpersonation(user);
    response.setHeader('upgrade', 'websocket');
    requireTerminal(options, agent, resource, request);
  }
  // A request for a log has no place for a user, and agents that do not know one would execute it as themselves.
  if (resource?.resource === 'pods' && resource.subresource === 'log' && method === 'GET' && user === undefined) {
    if (resource.namespace === '' || resource.name === '') {
      throw new ProxyRefusal(400, 'Missing required parameters: namespace and pod');
    }
    if (!options.isConnected(agent)) {
      throw new NoAnswerError('disconnected', agent);
    }
    const refusal = await streamLog(options, agent, resource, new URLSearchParams(query), response, signal);
    if (refusal !== undefined) {
      send(response, refusal.status, json, refusal.text);
    }
    return;
  }
  const { uuid, event } = await requestEvent(request, { method, path, query, resource, user });
  const reader = new ResponseBody(response);
  const expected = bodies.expect(agent, uuid, reader);
  reader.attach(expected);
  let answer: ResourceResponse;
  try {
    answer = dataOf(await exchange.ask(agent, event, { timeoutMs: answerTimeoutMs, signal }), resourceResponse);
  } catch (error) {
    expected.cancel();
    // Agents of the original do not know this event; they complete the request.
    if (options.understands.has(agent)) {
      options.send(agent, cancellationOf(uuid));
    }
    const reasons = { disconnected: 'agent_disconnected', timeout: 'timeout', busy: 'queue_missing' } as const;
    if (error instanceof NoAnswerError) {
      options.metrics.failed(agent, reasons[error.reason]);
    }
    if (error instanceof WireError) {
      options.metrics.failed(agent, 'agent_error');
      throw new ProxyRefusal(502, `the answer of agent ${agent} cannot be read: ${error.message}`);
    }
    throw error;
  }
  if (answer.status >= 400) {
    options.metrics.failed(agent, 'agent_error');
  }
  if (user !== undefined && answer.impersonated !== true) {
    expected.cancel();
    throw new ProxyRefusal(
      501,
      `agent ${agent} cannot execute requests as ${user}: it is argocd-agent's own, or of an older version`,
    );
  }
  const { status, contentType = json, streamed = false } = answer;
  if (streamed) {
    options.understands.add(agent);
    onAbort(signal, () => expected.cancel());
    response.writeHead(status, { 'content-type': contentType });
    response.flushHeaders();
    reader.start();
    return;
  }
  expected.cancel();
  const isOurs = answer.contentType !== undefined;
  if (isOurs) {
    options.understands.add(agent);
  } else {
    options.understands.delete(agent);
  }
  if (!isOurs && status < 300) {
    if (path === '/version') {
      return send(response, 200, json, unknownVersion);
    }
    if (isBeyondOriginal(path, query)) {
      throw new ProxyRefusal(501, `agent ${agent} is argocd-agent's own, which does not serve this`);
    }
  }
  const text =
    answer.resource === '' && status >= 300 ? statusText(status, `agent ${agent} gives no reason`) : answer.resource;
  send(response, status, contentType, text);
}

/** Argo CD reads the version at intervals; agents of the original cannot report it. */
const unknownVersion = JSON.stringify({
  major: '1',
  minor: '28',
  gitVersion: 'v1.28.5+argocd-agent',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: 'n/a',
  goVersion: '',
  compiler: '',
  platform: '',
});

function send(response: ServerResponse, status: number, contentType: string, text: string): void {
  const bytes = Buffer.from(text);
  response.writeHead(status, { 'content-type': contentType, 'content-length': bytes.length });
  response.end(bytes);
}

function refusalOf(error: unknown, logger: Logger): [code: number, message: string] {
  if (error instanceof ProxyRefusal) {
    return [error.code, error.message];
  }
  if (error instanceof NoAnswerError) {
    const codes = { disconnected: 502, timeout: 504, busy: 429 } as const;
    return [codes[error.reason], error.message];
  }
  if (error instanceof CallerRefusedError) {
    return [error.status, error.message];
  }
  logger.error({ error }, 'a request to the resource proxy failed');
  return [500, 'the principal could not serve the request'];
}
