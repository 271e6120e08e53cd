import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from '../../../lib/base/index.ts';
import { failureHeader, resourcesPath } from '../../peers/link-protocol.ts';
import type { PeerLink } from '../../peers/peer-link.ts';
import { isProxyFailure, type ResourceProxyMetrics } from '../metrics.ts';
import { answerRaw } from './raw-answers.ts';
import { breakOff } from './response-body.ts';

/** The replica of an agent answers within the time that the agent has; this is a little more. */
export const forwardedAnswerMs = 35_000;
/** A Status that refuses a terminal. */
const mostRefusalBytes = 64 * 1024;
/** How long a connection may take to send what is left when the one behind it has ended. */
const lingerMs = 10_000;

/** What of a caller's headers the agent's replica needs. It gets no credentials: the caller has been authenticated here. */
const requestHeaders = ['accept', 'content-type', 'content-length', 'impersonate-user'] as const;
const handshakeHeaders = [
  'connection',
  'upgrade',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
] as const;

/** What forwarding reports to. */
interface Reports {
  readonly metrics: ResourceProxyMetrics;
  readonly logger: Logger;
}

/**
 * Lets the replica that holds the agent serve a request whose caller may make it.
 * @returns false, and nothing of the request was read, when no other replica holds the agent
 * @throws NoAnswerError, or the signal's reason
 */
export async function forwardRequest(
  { metrics }: Reports,
  link: PeerLink,
  agent: string,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<boolean> {
  const { method = '', url = '', headers } = request;
  const isChunked = headers['transfer-encoding'] !== undefined;
  const hasBody = isChunked || Number(headers['content-length'] ?? 0) > 0;
  const answer = await link.send(agent, {
    method,
    path: `${resourcesPath}${url}`,
    headers: { ...picked(request, requestHeaders), ...(isChunked ? { 'transfer-encoding': 'chunked' } : {}) },
    ...(hasBody ? { body: request } : {}),
    timeoutMs: forwardedAnswerMs,
    signal,
  });
  if (answer === undefined) {
    return false;
  }
  const { response: incoming } = answer;
  const failure = incoming.headers[failureHeader];
  if (isProxyFailure(failure)) {
    metrics.failed(agent, failure);
  }
  response.writeHead(incoming.statusCode ?? 502, picked(incoming, ['content-type', 'content-length']));
  // A short answer leaves in one piece.
  if (incoming.headers['content-length'] === undefined) {
    response.flushHeaders();
  }
  incoming.once('close', () => {
    if (!incoming.complete) {
      breakOff(response);
    }
  });
  incoming.pipe(response);
  return true;
}

/**
 * Lets the replica that holds the agent serve a terminal.
 * @returns false when no other replica holds the agent
 * @throws NoAnswerError
 */
export async function forwardTerminal(
  { metrics, logger }: Reports,
  link: PeerLink,
  agent: string,
  request: IncomingMessage,
  viewer: Duplex,
  head: Buffer,
): Promise<boolean> {
  const gone = new AbortController();
  viewer.once('close', () => gone.abort(new Error('the viewer has left')));
  const answer = await link.send(agent, {
    method: 'GET',
    path: `${resourcesPath}${request.url}`,
    headers: picked(request, handshakeHeaders),
    timeoutMs: forwardedAnswerMs,
    signal: gone.signal,
  });
  if (answer === undefined) {
    return false;
  }
  const { response, upgraded, peer } = answer;
  if (upgraded === undefined) {
    const { statusCode = 502 } = response;
    if (statusCode === 502) {
      metrics.failed(agent, 'agent_disconnected');
    }
    answerRaw(viewer, statusCode, await refusalText(response));
    return true;
  }
  logger.info({ agent, replica: peer.identity }, 'a terminal is served by the replica of its agent');
  const lines = [`HTTP/1.1 ${response.statusCode} ${response.statusMessage}`];
  for (let at = 0; at + 1 < response.rawHeaders.length; at += 2) {
    lines.push(`${response.rawHeaders[at]}: ${response.rawHeaders[at + 1]}`);
  }
  viewer.write(`${lines.join('\r\n')}\r\n\r\n`);
  viewer.write(upgraded.head);
  upgraded.socket.write(head);
  join(viewer, upgraded.socket);
  join(upgraded.socket, viewer);
  return true;
}

/** Passes on what comes from one connection to another, as fast as that takes it, and the end too. */
function join(from: Duplex, to: Duplex): void {
  from.pipe(to);
  from.once('close', () => {
    to.end();
    const linger = setTimeout(() => to.destroy(), lingerMs).unref();
    to.once('close', () => clearTimeout(linger));
  });
}

/** The text of a refusal, or its beginning. */
export async function refusalText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > mostRefusalBytes) {
      break;
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function picked({ headers }: IncomingMessage, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  );
}
