import type { ServerResponse } from 'node:http';
import { BoundedSet } from '../../../lib/base/index.ts';
import type { Peer } from '../../replicas/index.ts';
import type { NewsLine } from './news-lines.ts';

/** A peer that reads our news, and what it has asked for. */
interface Reader {
  readonly response: ServerResponse;
  readonly connections: BoundedSet<string>;
  readonly agents: Set<string>;
}

/** Connections of clients of one peer's Redis proxy: as many as that proxy serves. */
const mostReaderConnections = 10_000;
/** A peer that leaves more than this unread is disconnected, and asks for everything again. */
const mostUnreadBytes = 1024 * 1024;

/** Tells peers what happens on channels of agents' Redis that their clients follow. */
export class PeerNews {
  /** By fingerprint. */
  readonly #readers = new Map<string, Reader>();

  /** The peer reads the news from now on, as the body of this response. */
  follow({ fingerprint }: Peer, response: ServerResponse): void {
    this.#readers.get(fingerprint)?.response.destroy();
    const reader = { response, connections: new BoundedSet<string>(mostReaderConnections), agents: new Set<string>() };
    this.#readers.set(fingerprint, reader);
    response.once('close', () => {
      if (this.#readers.get(fingerprint) === reader) {
        this.#readers.delete(fingerprint);
      }
    });
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.flushHeaders();
  }

  /** A client of the peer, with this connection, has asked the agent something. */
  asked({ fingerprint }: Peer, agent: string, connectionUuid: string): void {
    const reader = this.#readers.get(fingerprint);
    reader?.connections.add(connectionUuid);
    reader?.agents.add(agent);
  }

  /** A channel of the agent has a message for the client whose connection has this UUID. */
  news(agent: string, connectionUuid: string, channel: string): void {
    for (const reader of this.#readers.values()) {
      if (reader.connections.has(connectionUuid)) {
        tell(reader, { agent, connectionUuid, channel });
      }
    }
  }

  /** The agent has a new stream, and knows nothing of what it was asked before. */
  arrived(agent: string): void {
    for (const reader of this.#readers.values()) {
      if (reader.agents.has(agent)) {
        tell(reader, { agent });
      }
    }
  }
}

function tell({ response }: Reader, line: NewsLine): void {
  if (response.writableLength > mostUnreadBytes) {
    response.destroy();
  } else {
    response.write(`${JSON.stringify(line)}\n`);
  }
}
