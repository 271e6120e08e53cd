import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../../../lib/base/index.ts';
import { redisRequest } from '../../../lib/live/index.ts';
import { parseTraceparent, type Tracer } from '../../../lib/tracing/index.ts';
import type { LiveStreamService } from '../../../lib/wire/index.ts';
import {
  deposedPath,
  failureHeader,
  newsPath,
  redisPath,
  resourcesPath,
  streamProtocol,
  streamsPath,
} from '../../peers/link-protocol.ts';
import type { PeerService } from '../../peers/peer-server.ts';
import type { Peer } from '../../replicas/index.ts';
import { NoAnswerError } from '../agent-requests.ts';
import type { AskRedis } from '../redis/ask-redis.ts';
import { type AgentApi, serveRequest, serveTerminal } from '../resources/agent-api.ts';
import type { PeerNews } from './peer-news.ts';
import { type StreamKind, serveRelayed } from './relayed-streams.ts';

/** What peers' requests are served with. */
export interface PeerServiceOptions {
  readonly api: Omit<AgentApi, 'metrics'>;
  /** Whether another replica holds the agent. */
  isElsewhere(agent: string): boolean;
  readonly ask: AskRedis;
  readonly streams: LiveStreamService;
  readonly news: PeerNews;
  /** A peer says that it has deposed the replica of this identity. */
  readonly deposed: (identity: string) => void;
  /** Undefined when nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly logger: Logger;
}

const redisCommand = redisRequest.omit({ uuid: true });
const mostCommandBytes = 64 * 1024;

/** Serves what peers ask about agents of this replica. Nothing of it is passed on to a third replica. */
export function peerService(options: PeerServiceOptions): PeerService {
  const { streams, news, logger } = options;
  const api: Omit<AgentApi, 'metrics'> = {
    ...options.api,
    elsewhere: undefined,
    connected: async (agent, signal) => {
      await options.api.connected(agent, signal);
      // The peer asks the new holder.
      if (options.isElsewhere(agent)) {
        throw new NoAnswerError('disconnected', agent);
      }
    },
  };
  return {
    request({ peer, agent }, request, response) {
      const path = request.url ?? '';
      if (agent !== '' && strip(request, resourcesPath)) {
        const metrics: AgentApi['metrics'] = {
          request: () => undefined,
          // The replica at which the request arrived counts it.
          failed: (_agent, reason) => void (response.headersSent || response.setHeader(failureHeader, reason)),
        };
        void serveRequest({ ...api, metrics }, () => Promise.resolve(agent), request, response);
      } else if (agent !== '' && path === redisPath) {
        void serveRedis(options, peer, agent, request, response);
      } else if (path === newsPath) {
        news.follow(peer, response);
      } else if (path.startsWith(`${deposedPath}/`)) {
        options.deposed(path.slice(deposedPath.length + 1));
        response.writeHead(204).end();
      } else {
        response.writeHead(404).end();
      }
    },
    upgrade({ agent }, request, socket, head) {
      const kind = /^\/(logs|terminal)$/.exec((request.url ?? '').slice(streamsPath.length))?.[1];
      const isStream = request.headers.upgrade === streamProtocol && request.url?.startsWith(streamsPath);
      if (agent !== '' && isStream && kind !== undefined) {
        serveRelayed(streams, kind as StreamKind, agent, socket, head);
      } else if (agent !== '' && strip(request, resourcesPath)) {
        const metrics = { request: () => undefined, failed: () => undefined };
        void serveTerminal({ ...api, metrics }, () => Promise.resolve(agent), request, socket, head);
      } else {
        logger.warn({ path: request.url }, 'another replica asks for an unknown service');
        socket.destroy();
      }
    },
  };
}

/** Removes the beginning of a request's path; false when it has another one. */
function strip(request: IncomingMessage, prefix: string): boolean {
  const { url = '' } = request;
  if (!url.startsWith(`${prefix}/`)) {
    return false;
  }
  request.url = url.slice(prefix.length);
  return true;
}

async function serveRedis(
  { ask, news, tracer, logger }: PeerServiceOptions,
  peer: Peer,
  agent: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort(new Error('the peer has left')));
  response.on('error', () => undefined);
  try {
    const command = redisCommand.parse(JSON.parse(await textOf(request)));
    news.asked(peer, agent, command);
    const context = parseTraceparent(request.headers.traceparent?.toString());
    const asked = () => ask(agent, command, gone.signal);
    const { data } = await (tracer && context ? tracer.within({ context }, asked) : asked());
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': data.byteLength }).end(data);
  } catch (error) {
    if (gone.signal.aborted) {
      return;
    }
    const reason = error instanceof NoAnswerError ? error.reason : undefined;
    if (reason === undefined) {
      logger.warn({ agent, replica: peer.identity, error }, 'a request of another replica to Redis failed');
    }
    response
      .writeHead(502, { ...(reason === undefined ? {} : { [failureHeader]: reason }), 'content-length': 0 })
      .end();
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > mostCommandBytes) {
      throw new Error(`a command has more than ${mostCommandBytes} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
