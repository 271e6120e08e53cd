import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { abortable } from '../../../lib/base/index.ts';
import { LogLines, type ResourcePath, sinceTimeOf, statusText } from '../../../lib/live/index.ts';
import { messageEvent, principalSource, targets, type WireEvent } from '../../../lib/wire/index.ts';
import { resourcesPath } from '../../peers/link-protocol.ts';
import type { LinkAnswer, PeerLink } from '../../peers/peer-link.ts';
import type { Peer } from '../../replicas/index.ts';
import type { Bodies } from '../agent-bodies.ts';
import { NoAnswerError } from '../agent-requests.ts';
import { forwardedAnswerMs, refusalText } from './forwarded.ts';
import { breakOff } from './response-body.ts';

/** Options of {@link streamLog}. */
export interface LogContext {
  readonly bodies: Bodies;
  /** Puts an event on an agent's stream; false when it has none. */
  send(agent: string, event: WireEvent): boolean;
  /**
   * Resolves when the agent has a stream, at once if it has one, or when another replica holds it, other than `former`; rejects when
   * aborted, and when another replica holds an agent that this one is asked for by a peer.
   */
  connected(agent: string, signal: AbortSignal, former?: Peer): Promise<void>;
  /** The way to agents that other replicas hold. */
  readonly elsewhere?: PeerLink | undefined;
}

/** Why a log is refused, before anything of it was sent. */
export interface LogRefusal {
  readonly status: number;
  readonly text: string;
}

/** Time limit of an agent for the first bytes of a log, and for its return after a break. */
const patienceMs = 30_000;
/** A log that is not followed has to end by then, as in the original. */
const wholeMs = 180_000;
/** The characters of a Status that only has a reason. */
const longestStatus = 16 * 1024;
/** Most breaks in a row without a new line; then the log is given up. */
const mostVainAttempts = 5;

const booleans = ['follow', 'previous', 'insecureSkipTLSVerifyBackend'] as const;
const numbers = ['tailLines', 'sinceSeconds', 'limitBytes'] as const;

/**
 * Streams the log of a container to a client. When the connection to the agent breaks, the log is resumed at the same position as
 * soon as the agent is back, without repeating or leaving out a line. A reader that is slow makes the agent read slowly.
 *
 * @returns undefined when the log was sent, or why nothing could be
 */
export async function streamLog(
  context: LogContext,
  agent: string,
  { namespace, name }: ResourcePath,
  query: URLSearchParams,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<LogRefusal | undefined> {
  const isTrue = (key: string) => /^true$/i.test(query.get(key) ?? '');
  const lines = new LogLines(isTrue('timestamps'));
  const isFollowed = isTrue('follow');
  const asked: Record<string, unknown> = { namespace, podName: name, timestamps: true };
  const container = query.get('container');
  if (container !== null) {
    asked.container = container;
  }
  const sinceTime = query.get('sinceTime');
  if (sinceTime !== null) {
    asked.sinceTime = sinceTime;
  }
  for (const key of booleans) {
    if (isTrue(key)) {
      asked[key] = true;
    }
  }
  for (const key of numbers) {
    const value = query.get(key);
    if (value !== null && /^\d{1,15}$/.test(value)) {
      asked[key] = Number(value);
    }
  }
  const deadline = isFollowed ? undefined : performance.now() + wholeMs;
  for (let vain = 0; vain < mostVainAttempts; ) {
    const before = lines.position;
    const holder = context.elsewhere?.holderOf(agent);
    const end =
      holder === undefined || context.elsewhere === undefined
        ? await attempt(context, agent, asked, lines, response, signal, deadline)
        : await attemptElsewhere(context.elsewhere, holder, agent, asked, lines, response, signal, deadline);
    if (end.how === 'ended') {
      if (end.error !== undefined && !response.headersSent) {
        return refusalOf(end.error);
      }
      if (end.error === undefined) {
        response.end(lines.end());
      } else {
        breakOff(response);
      }
      return undefined;
    }
    if (end.how === 'silent') {
      break;
    }
    const { position } = lines;
    vain = position === before ? vain + 1 : 0;
    // A log with a limit of bytes cannot be resumed in the middle.
    if (asked.limitBytes !== undefined) {
      break;
    }
    if (position !== undefined) {
      asked.sinceTime = sinceTimeOf(position);
      delete asked.sinceSeconds;
      delete asked.tailLines;
    }
    lines.resumed();
    try {
      await context.connected(agent, AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]), holder);
    } catch {
      signal.throwIfAborted();
      break;
    }
  }
  if (!response.headersSent) {
    return { status: 504, text: statusText(504, `agent ${agent} did not send the log in time`) };
  }
  breakOff(response);
  return undefined;
}

type End = { readonly how: 'ended'; readonly error: string | undefined } | { readonly how: 'lost' | 'silent' };

/** Asks for the log once, and passes it on until it ends or breaks off. @throws the signal's reason */
async function attempt(
  { bodies, send }: LogContext,
  agent: string,
  asked: Readonly<Record<string, unknown>>,
  lines: LogLines,
  response: ServerResponse,
  signal: AbortSignal,
  deadline: number | undefined,
): Promise<End> {
  const uuid = randomUUID();
  const { promise, resolve } = Promise.withResolvers<End>();
  let timer = setTimeout(() => resolve({ how: 'silent' }), patienceMs);
  const expected = bodies.expect(agent, uuid, {
    opened: () => {
      // A log may be silent for any time. A log that is not followed must end before the deadline.
      clearTimeout(timer);
      if (deadline !== undefined) {
        timer = setTimeout(() => resolve({ how: 'silent' }), deadline - performance.now());
      }
    },
    data: (bytes) => {
      begin(response);
      const text = lines.push(bytes);
      return text.length === 0 || response.write(text);
    },
    ended: (error) => {
      if (error === undefined) {
        begin(response);
      }
      resolve({ how: 'ended', error });
    },
    lost: () => resolve({ how: 'lost' }),
  });
  const drained = () => expected.resume();
  response.on('drain', drained);
  try {
    const payload = { uuid, ...asked };
    const ids = { resourceId: uuid, eventId: uuid };
    const event = messageEvent(targets.containerLog, 'GET', payload, { source: principalSource }, ids);
    if (!send(agent, event)) {
      resolve({ how: 'lost' });
    }
    return await abortable(promise, signal);
  } finally {
    clearTimeout(timer);
    response.off('drain', drained);
    expected.cancel();
  }
}

/**
 * The same through the replica that holds the agent. That one takes the log up again while the agent comes back to it, so a break
 * means that the agent, or the replica, has gone.
 */
async function attemptElsewhere(
  link: PeerLink,
  holder: Peer,
  agent: string,
  { namespace, podName, ...asked }: Readonly<Record<string, unknown>>,
  lines: LogLines,
  response: ServerResponse,
  signal: AbortSignal,
  deadline: number | undefined,
): Promise<End> {
  const query = new URLSearchParams(
    Object.entries(asked).map(([key, value]): [string, string] => [key, String(value)]),
  );
  const [inNamespace, pod] = [namespace, podName].map((name) => encodeURIComponent(String(name)));
  const left = deadline === undefined ? Number.POSITIVE_INFINITY : deadline - performance.now();
  let answer: LinkAnswer;
  try {
    answer = await link.ask(holder, agent, {
      method: 'GET',
      path: `${resourcesPath}/api/v1/namespaces/${inNamespace}/pods/${pod}/log?${query}`,
      timeoutMs: Math.min(forwardedAnswerMs, left),
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    return { how: error instanceof NoAnswerError && error.reason === 'timeout' ? 'silent' : 'lost' };
  }
  const { response: incoming } = answer;
  if (incoming.statusCode !== 200) {
    const text = await refusalText(incoming);
    // The agent has left its replica.
    return incoming.statusCode === 502 ? { how: 'lost' } : { how: 'ended', error: text };
  }
  begin(response);
  try {
    for await (const bytes of incoming as AsyncIterable<Buffer>) {
      const text = lines.push(bytes);
      if (text.length > 0 && !response.write(text)) {
        await once(response, 'drain', { signal });
      }
    }
    return { how: 'ended', error: undefined };
  } catch {
    signal.throwIfAborted();
    return { how: 'lost' };
  }
}

function begin(response: ServerResponse): void {
  if (response.headersSent) {
    return;
  }
  response.writeHead(200, {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
  });
  response.flushHeaders();
}

/** Agents of this project send the reason as a Status, the originals as plain text. */
function refusalOf(error: string): LogRefusal {
  const code = error.length <= longestStatus ? codeOf(error) : undefined;
  if (code !== undefined) {
    return { status: code, text: error };
  }
  const text = error.slice(0, 1_000);
  const status = /not found/i.test(text) ? 404 : /forbidden/i.test(text) ? 403 : 500;
  return { status, text: statusText(status, text) };
}

/** The code of a Kubernetes Status that reports an error; undefined for every other text. */
function codeOf(text: string): number | undefined {
  try {
    const { kind, code } = JSON.parse(text) as { kind?: unknown; code?: unknown };
    return kind === 'Status' && typeof code === 'number' && code >= 400 && code < 600 ? code : undefined;
  } catch {
    return undefined;
  }
}
