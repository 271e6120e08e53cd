import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Logger, onAbort } from '../../../lib/base/index.ts';
import {
  asksToWatch,
  isDiscoveryPath,
  type ResourcePath,
  type ResourceResponse,
  resourceResponse,
  statusText,
} from '../../../lib/live/index.ts';
import type { Tracer } from '../../../lib/tracing/index.ts';
import { dataOf, WireError, type WireEvent } from '../../../lib/wire/index.ts';
import type { PeerLink } from '../../peers/peer-link.ts';
import type { Peer } from '../../replicas/index.ts';
import type { Bodies } from '../agent-bodies.ts';
import { type AgentRequests, NoAnswerError } from '../agent-requests.ts';
import { type AuditRecord, auditOf } from '../audit-record.ts';
import type { ResourceProxyMetrics } from '../metrics.ts';
import { requestSpan } from '../request-span.ts';
import { runTerminal } from '../terminals/terminal.ts';
import type { TerminalSessions } from '../terminals/terminal-sessions.ts';
import { handshakeFault, upgrade } from '../terminals/upgrade.ts';
import { CallerRefusedError } from './callers.ts';
import { forwardRequest, forwardTerminal } from './forwarded.ts';
import { streamLog } from './logs.ts';
import { answerRaw } from './raw-answers.ts';
import {
  cancellationOf,
  isBeyondOriginal,
  isTerminal,
  type MirroredAgents,
  ProxyRefusal,
  requestEvent,
  requestPath,
  requestTarget,
  targetOnCluster,
} from './request-mapping.ts';
import { breakOff, ResponseBody } from './response-body.ts';

/** What requests for the Kubernetes API of an agent's cluster are served with. */
export interface AgentApi {
  readonly exchange: AgentRequests;
  readonly bodies: Bodies;
  readonly terminals: TerminalSessions;
  /** A terminal without input and output for this time is closed; 0 for never. */
  readonly terminalIdleMs: number;
  /** Most bytes of an answer that is neither a watch nor a log: Argo CD reads it whole. */
  readonly mostAnswerBytes: number;
  /** Puts an event on an agent's stream; false when it has none. */
  send(agent: string, event: WireEvent): boolean;
  /** Whether the agent has a stream. */
  isConnected(agent: string): boolean;
  /** Default: the hub mirrors no Applications. */
  readonly mirrored?: MirroredAgents | undefined;
  /** As for a log: see `LogContext`. */
  connected(agent: string, signal: AbortSignal, former?: Peer): Promise<void>;
  /** The way to agents that other replicas hold; undefined when there are none, and for a request that has come over it. */
  readonly elsewhere?: PeerLink | undefined;
  readonly metrics: ResourceProxyMetrics;
  /** Gets every request when it has ended, refused ones too; undefined for requests that another replica has audited. */
  readonly audit?: ((record: AuditRecord) => void) | undefined;
  /** Undefined when nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly logger: Logger;
  /** Agents whose last answer showed that they are of ours, and understand a `cancel`. */
  readonly understands: Set<string>;
}

/** How long an agent may take to answer, as in the original. */
const answerTimeoutMs = 30_000;
/** The status in the audit of a request whose client left before the answer, as servers commonly write it. */
const clientLeft = 499;
const json = 'application/json';

/**
 * Serves a request. Never rejects.
 * @param caller gives the agent whose API is asked for, or rejects with a CallerRefusedError
 */
export async function serveRequest(
  api: AgentApi,
  caller: () => Promise<string>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort(new Error('the client has left')));
  response.on('error', () => undefined);
  const audited = auditOf(api, request);
  const span = requestSpan(api.tracer, request);
  response.on('close', () => {
    const code = response.headersSent ? response.statusCode : clientLeft;
    audited.end(code);
    span.end(code, audited.agent);
  });
  if (request.headers.upgrade !== undefined) {
    // Node reads nothing more of a connection after an offer to upgrade that is not taken.
    response.shouldKeepAlive = false;
  }
  try {
    const agent = await caller();
    audited.agent = agent;
    await span.within(() => answer(api, agent, request, response, gone.signal));
  } catch (error) {
    if (gone.signal.aborted) {
      return;
    }
    const [code, message] = refusalOf(error, api.logger);
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

/** Serves a request that wants to become a WebSocket: a terminal. Never rejects. See {@link serveRequest}. */
export async function serveTerminal(
  api: AgentApi,
  caller: () => Promise<string>,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  socket.on('error', () => undefined);
  const audited = auditOf(api, request);
  const span = requestSpan(api.tracer, request);
  let status = 101;
  socket.on('close', () => {
    audited.end(status);
    span.end(status, audited.agent);
  });
  try {
    const agent = await caller();
    audited.agent = agent;
    const { resource, query, user } = requestTarget(request);
    requireNoImpersonation(user);
    if (!isTerminal(resource)) {
      throw new ProxyRefusal(403, 'the resource proxy serves only terminals (pods/exec) over WebSocket');
    }
    requireTerminal(api, agent, resource, request);
    const { elsewhere } = api;
    if (elsewhere && (await span.within(() => forwardTerminal(api, elsewhere, agent, request, socket, head)))) {
      return;
    }
    requireConnected(api, agent);
    upgrade(request, socket, head, (webSocket) =>
      span.within(() => runTerminal(api, agent, resource, new URLSearchParams(query), webSocket)),
    );
  } catch (error) {
    const [code, message] = refusalOf(error, api.logger);
    status = code;
    answerRaw(socket, code, statusText(code, message));
  }
}

/** Argo CD opens terminals with its own rights. @throws ProxyRefusal for a terminal as another user */
function requireNoImpersonation(user: string | undefined): void {
  if (user !== undefined) {
    throw new ProxyRefusal(403, 'impersonation is not served by the resource proxy for terminals');
  }
}

/** @throws ProxyRefusal or NoAnswerError when there can be no terminal */
function requireTerminal(
  api: AgentApi,
  agent: string,
  { namespace, name }: ResourcePath,
  request: IncomingMessage,
): void {
  if (namespace === '' || name === '') {
    throw new ProxyRefusal(400, 'Missing required parameters: namespace and pod');
  }
  if (api.elsewhere?.holderOf(agent) === undefined) {
    requireConnected(api, agent);
    api.terminals.requireRoom(agent);
  }
  const fault = handshakeFault(request);
  if (fault !== undefined) {
    throw new ProxyRefusal(...fault);
  }
}

/** @throws NoAnswerError when the agent is not connected to this replica */
function requireConnected({ isConnected, metrics }: AgentApi, agent: string): void {
  if (!isConnected(agent)) {
    metrics.failed(agent, 'agent_disconnected');
    throw new NoAnswerError('disconnected', agent);
  }
}

async function answer(
  api: AgentApi,
  agent: string,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { exchange, bodies } = api;
  const { method = '' } = request;
  const { path, query, resource, user } = requestTarget(request);
  if (isTerminal(resource)) {
    requireNoImpersonation(user);
    response.setHeader('upgrade', 'websocket');
    requireTerminal(api, agent, resource, request);
  }
  // A request for a log has no place for a user, and agents that do not know one would execute it as themselves.
  if (resource?.resource === 'pods' && resource.subresource === 'log' && method === 'GET' && user === undefined) {
    if (resource.namespace === '' || resource.name === '') {
      throw new ProxyRefusal(400, 'Missing required parameters: namespace and pod');
    }
    if (!api.isConnected(agent) && api.elsewhere?.holderOf(agent) === undefined) {
      throw new NoAnswerError('disconnected', agent);
    }
    const refusal = await streamLog(api, agent, resource, new URLSearchParams(query), response, signal);
    if (refusal !== undefined) {
      send(response, refusal.status, json, refusal.text);
    }
    return;
  }
  if (api.elsewhere !== undefined && (await forwardRequest(api, api.elsewhere, agent, request, response, signal))) {
    return;
  }
  const target = targetOnCluster({ path, query, resource, user }, agent, api.mirrored);
  const { uuid, event } = await requestEvent(request, { method, ...target });
  const isEndless = resource !== undefined && mayBeEndless(resource, query);
  const exceeded = () => {
    const limit = api.mostAnswerBytes;
    api.metrics.failed(agent, 'agent_error');
    api.logger.warn({ agent, path, limit }, 'an answer of an agent is broken off: it is larger than the limit');
    if (api.understands.has(agent)) {
      api.send(agent, cancellationOf(uuid));
    }
  };
  const reader = new ResponseBody(response, isEndless ? undefined : { bytes: api.mostAnswerBytes, exceeded });
  const expected = bodies.expect(agent, uuid, reader);
  reader.attach(expected);
  let answered: ResourceResponse;
  try {
    answered = dataOf(await exchange.ask(agent, event, { timeoutMs: answerTimeoutMs, signal }), resourceResponse);
  } catch (error) {
    expected.cancel();
    // Agents of the original do not know this event; they complete the request.
    if (api.understands.has(agent)) {
      api.send(agent, cancellationOf(uuid));
    }
    const reasons = {
      disconnected: 'agent_disconnected',
      lost: 'agent_disconnected',
      timeout: 'timeout',
      busy: 'queue_missing',
    } as const;
    if (error instanceof NoAnswerError) {
      api.metrics.failed(agent, reasons[error.reason]);
    }
    if (error instanceof WireError) {
      api.metrics.failed(agent, 'agent_error');
      throw new ProxyRefusal(502, `the answer of agent ${agent} cannot be read: ${error.message}`);
    }
    throw error;
  }
  if (answered.status >= 400) {
    api.metrics.failed(agent, 'agent_error');
  }
  if (user !== undefined && answered.impersonated !== true) {
    expected.cancel();
    throw new ProxyRefusal(
      501,
      `agent ${agent} cannot execute requests as ${user}: it is argocd-agent's own, or of an older version`,
    );
  }
  const { status, contentType = json, streamed = false } = answered;
  if (streamed) {
    api.understands.add(agent);
    onAbort(signal, () => expected.cancel());
    response.writeHead(status, { 'content-type': contentType });
    response.flushHeaders();
    reader.start();
    return;
  }
  expected.cancel();
  const isOurs = answered.contentType !== undefined;
  if (isOurs) {
    api.understands.add(agent);
  } else {
    api.understands.delete(agent);
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
    answered.resource === '' && status >= 300
      ? statusText(status, `agent ${agent} gives no reason`)
      : answered.resource;
  send(response, status, contentType, text);
}

/** Whether a request may be answered for as long as the client likes: a watch, or a log. */
function mayBeEndless(path: ResourcePath, query: string): boolean {
  const isLog = path.resource === 'pods' && path.subresource === 'log';
  return isLog || (path.name === '' && asksToWatch(new URLSearchParams(query)));
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
    const codes = { disconnected: 502, lost: 502, timeout: 504, busy: 429 } as const;
    return [codes[error.reason], error.message];
  }
  if (error instanceof CallerRefusedError) {
    return [error.status, error.message];
  }
  logger.error({ error }, 'a request to the resource proxy failed');
  return [500, 'the principal could not serve the request'];
}
