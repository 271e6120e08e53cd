import type { ServerResponse } from 'node:http';
import { BoundedMap, BoundedSet } from '../../../lib/base/index.ts';
import type { RedisRequest } from '../../../lib/live/index.ts';
import type { Peer } from '../../replicas/index.ts';
import { PacedNews } from '../redis/paced-news.ts';
import type { NewsLine } from './news-lines.ts';

/** A peer that reads our news, and what it has asked for. */
interface Reader {
  readonly response: ServerResponse;
  /** Channels that clients of the peer follow, by their connection. */
  readonly connections: BoundedMap<string, BoundedSet<string>>;
  readonly agents: Set<string>;
  /** Of each channel of each connection, so that no agent fills what the peer has to read. */
  readonly paced: PacedNews;
}

/** Connections of clients of one peer's Redis proxy: as many as that proxy serves. */
const mostReaderConnections = 10_000;
/** Channels of one connection: as many as the proxy admits. */
const mostChannels = 1_000;
/** A peer that leaves more than this unread is disconnected, and asks for everything again. */
const mostUnreadBytes = 1024 * 1024;

/** Tells peers what happens on channels of agents' Redis that their clients follow. */
export class PeerNews {
  /** By fingerprint. */
  readonly #readers = new Map<string, Reader>();

  /** The peer reads the news from now on, as the body of this response. */
  follow({ fingerprint }: Peer, response: ServerResponse): void {
    this.#readers.get(fingerprint)?.response.destroy();
    const reader: Reader = {
      response,
      connections: new BoundedMap(mostReaderConnections),
      agents: new Set<string>(),
      paced: new PacedNews((line) => write(response, line)),
    };
    this.#readers.set(fingerprint, reader);
    response.once('close', () => {
      reader.paced.close();
      if (this.#readers.get(fingerprint) === reader) {
        this.#readers.delete(fingerprint);
      }
    });
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.flushHeaders();
  }

  /** A client of the peer has asked the agent something. */
  asked(
    { fingerprint }: Peer,
    agent: string,
    { connectionUuid, body }: Pick<RedisRequest, 'connectionUuid' | 'body'>,
  ): void {
    const reader = this.#readers.get(fingerprint);
    if (reader === undefined) {
      return;
    }
    const channels = reader.connections.get(connectionUuid) ?? new BoundedSet<string>(mostChannels);
    if (body.subscribe) {
      channels.add(channelOf(agent, body.subscribe.channel));
    }
    reader.connections.set(connectionUuid, channels);
    reader.agents.add(agent);
  }

  /** A channel of the agent has a message for the client whose connection has this UUID. */
  news(agent: string, connectionUuid: string, channel: string): void {
    for (const reader of this.#readers.values()) {
      if (reader.connections.get(connectionUuid)?.has(channelOf(agent, channel)) === true) {
        reader.paced.news(lineOf({ agent, connectionUuid, channel }));
      }
    }
  }

  /** The agent has a new stream, and knows nothing of what it was asked before. */
  arrived(agent: string): void {
    for (const reader of this.#readers.values()) {
      if (reader.agents.has(agent)) {
        write(reader.response, lineOf({ agent }));
      }
    }
  }
}

function channelOf(agent: string, channel: string): string {
  return `${agent} ${channel}`;
}

function lineOf(line: NewsLine): string {
  return `${JSON.stringify(line)}\n`;
}

function write(response: ServerResponse, line: string): void {
  if (response.writableLength > mostUnreadBytes) {
    response.destroy();
  } else {
    response.write(line);
  }
}
