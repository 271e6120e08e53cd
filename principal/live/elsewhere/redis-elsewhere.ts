import type { IncomingMessage } from 'node:http';
import { abortable, type Logger } from '../../../lib/base/index.ts';
import { eventTypes, principalSource, targets, type WireEvent } from '../../../lib/wire/index.ts';
import { failureHeader, newsPath, redisPath } from '../../peers/link-protocol.ts';
import type { LinkAnswer, PeerLink } from '../../peers/peer-link.ts';
import type { Peer } from '../../replicas/index.ts';
import { isNoAnswer, NoAnswerError } from '../agent-requests.ts';
import type { AskRedis } from '../redis/ask-redis.ts';
import { newsLine } from './news-lines.ts';

/** What of peers' news reaches the Redis proxy. */
export interface NewsReader {
  /** A channel of an agent has a message for the client whose connection has this UUID. */
  news(agent: string, connectionUuid: string, channel: string): void;
  /** Messages of the agent may have been missed: its channels have to be asked for again. */
  arrived(agent: string): void;
}

/** The news of one peer. */
interface Source {
  readonly agents: Set<string>;
  readonly opened: Promise<void>;
}

/** A little more than the agent has. */
const answerMs = 5_000;
/** Longest line of news. */
const longestLine = 64 * 1024;

/** Asks the Redis of agents that other replicas hold, and follows their messages. */
export class RedisElsewhere {
  readonly #link: PeerLink;
  readonly #here: AskRedis;
  readonly #reader: NewsReader;
  readonly #maxAnswerBytes: number;
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  /** By fingerprint. */
  readonly #sources = new Map<string, Source>();

  /** @param options.here asks agents of this replica */
  constructor(options: {
    readonly link: PeerLink;
    readonly here: AskRedis;
    readonly reader: NewsReader;
    readonly maxAnswerBytes: number;
    readonly logger: Logger;
    readonly signal: AbortSignal;
  }) {
    this.#link = options.link;
    this.#here = options.here;
    this.#reader = options.reader;
    this.#maxAnswerBytes = options.maxAnswerBytes;
    this.#logger = options.logger;
    this.#signal = options.signal;
  }

  readonly ask: AskRedis = async (agent, command, signal) => {
    const request = {
      method: 'POST',
      path: redisPath,
      body: Buffer.from(JSON.stringify(command)),
      timeoutMs: answerMs,
      signal,
    };
    // Messages that follow a subscription come as news.
    const answer = await this.#link.send(agent, request, (peer) => abortable(this.#follow(peer, agent), signal));
    return answer === undefined ? this.#here(agent, command, signal) : this.#answerOf(agent, answer);
  };

  async #answerOf(agent: string, { response }: LinkAnswer): Promise<WireEvent> {
    const reason = response.headers[failureHeader];
    if (response.statusCode !== 200) {
      response.resume();
      throw new NoAnswerError(isNoAnswer(reason) ? reason : 'lost', agent);
    }
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of response as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > this.#maxAnswerBytes) {
        throw new NoAnswerError('lost', agent, { cause: new Error(`more than ${this.#maxAnswerBytes} bytes`) });
      }
      parts.push(part);
    }
    return {
      type: eventTypes.redisResponse,
      target: targets.redis,
      source: principalSource,
      resourceId: agent,
      eventId: agent,
      extensions: {},
      data: Buffer.concat(parts),
    };
  }

  /** Resolves when the peer's news are read. */
  #follow(peer: Peer, agent: string): Promise<void> {
    const known = this.#sources.get(peer.fingerprint);
    if (known !== undefined) {
      known.agents.add(agent);
      return known.opened;
    }
    const agents = new Set([agent]);
    const opening = this.#link.ask(peer, '', {
      method: 'GET',
      path: newsPath,
      timeoutMs: answerMs,
      signal: this.#signal,
    });
    const source: Source = { agents, opened: opening.then(() => undefined) };
    this.#sources.set(peer.fingerprint, source);
    const over = () => this.#sources.delete(peer.fingerprint);
    opening.then(({ response }) => {
      const end = (error?: unknown) => {
        over();
        if (this.#signal.aborted) {
          return;
        }
        this.#logger.debug({ replica: peer.identity, error }, 'the news of another replica have ended');
        for (const name of agents) {
          this.#reader.arrived(name);
        }
      };
      this.#read(response).then(end, end);
    }, over);
    return source.opened;
  }

  async #read(response: IncomingMessage): Promise<void> {
    let rest = '';
    response.setEncoding('utf8');
    for await (const text of response as AsyncIterable<string>) {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > longestLine) {
        throw new Error('a line of news is too long');
      }
      for (const line of lines) {
        const { agent, connectionUuid, channel } = newsLine.parse(JSON.parse(line));
        if (connectionUuid === undefined || channel === undefined) {
          this.#reader.arrived(agent);
        } else {
          this.#reader.news(agent, connectionUuid, channel);
        }
      }
    }
  }
}
