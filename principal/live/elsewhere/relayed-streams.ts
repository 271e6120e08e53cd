import type { Duplex } from 'node:stream';
import {
  grpcStatus,
  type LiveStreamHandlers,
  type LiveStreamService,
  LogStreamData,
  LogStreamResponse,
  type ServerLiveStream,
  TerminalStreamData,
} from '../../../lib/wire/index.ts';
import { streamProtocol, streamsPath } from '../../peers/link-protocol.ts';
import type { PeerLink } from '../../peers/peer-link.ts';
import { StreamFrameReader, writeFrame } from './stream-frames.ts';

/** The kinds of live streams, as they are called on the link. */
export type StreamKind = keyof LiveStreamService;

interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

/** How the messages of either direction are written. */
const codecs = {
  logs: { fromAgent: LogStreamData as Codec<LogStreamData>, toAgent: LogStreamResponse as Codec<LogStreamResponse> },
  terminal: {
    fromAgent: TerminalStreamData as Codec<TerminalStreamData>,
    toAgent: TerminalStreamData as Codec<TerminalStreamData>,
  },
};

/** How long the holder may take to take the stream. */
const openMs = 5_000;
/** What of a stream waits until the holder has taken it: the agent stops with the first message. */
const mostEarlyBytes = 4 * 1024 * 1024;

/**
 * Passes on a live stream that an agent has opened at a replica that does not hold it: agents that come over HTTP/1.1 or WebSocket open
 * a connection for each call, and the Service leads it anywhere.
 * @returns undefined when no other replica holds the agent
 */
export function relayStream<Out, In>(
  link: PeerLink,
  kind: StreamKind,
  stream: ServerLiveStream<Out>,
): LiveStreamHandlers<In> | undefined {
  if (link.holderOf(stream.agent) === undefined) {
    return undefined;
  }
  const { fromAgent, toAgent } = codecs[kind] as unknown as { fromAgent: Codec<In>; toAgent: Codec<Out> };
  const ended = new AbortController();
  let socket: Duplex | undefined;
  const early: Buffer[] = [];
  let earlyBytes = 0;
  let isHalfClosed = false;
  const write = (bytes: Buffer) => {
    if (socket !== undefined && !writeFrame(socket, { kind: 'message', bytes })) {
      stream.pause();
    }
  };
  const open = async () => {
    const answer = await link.send(stream.agent, {
      method: 'GET',
      path: `${streamsPath}/${kind}`,
      headers: { connection: 'Upgrade', upgrade: streamProtocol },
      timeoutMs: openMs,
      signal: ended.signal,
    });
    if (answer?.upgraded === undefined) {
      throw new Error('the agent is not held elsewhere any more');
    }
    socket = answer.upgraded.socket;
    receive(socket, answer.upgraded.head, stream, toAgent);
    const { signal } = ended;
    signal.addEventListener('abort', () => socket?.destroy(), { once: true });
    socket.on('drain', () => stream.resume());
    for (const bytes of early.splice(0)) {
      writeFrame(socket, { kind: 'message', bytes });
    }
    if (isHalfClosed) {
      writeFrame(socket, { kind: 'half-closed' });
    }
    if (!socket.writableNeedDrain) {
      stream.resume();
    }
  };
  stream.pause();
  open().catch(() => stream.finish(grpcStatus.unavailable, 'the principal that has this agent cannot be reached'));
  return {
    message: (message) => {
      const bytes = Buffer.from(fromAgent.encode(message).finish());
      if (socket !== undefined) {
        write(bytes);
        return;
      }
      earlyBytes += bytes.length;
      if (earlyBytes > mostEarlyBytes) {
        stream.finish(grpcStatus.resourceExhausted, 'too much at once');
        return;
      }
      early.push(bytes);
    },
    halfClosed: () => {
      isHalfClosed = true;
      if (socket !== undefined) {
        writeFrame(socket, { kind: 'half-closed' });
      }
    },
    closed: () => ended.abort(new Error('the agent has ended the stream')),
  };
}

/** Passes on to the agent what the holder sends. */
function receive<Out>(socket: Duplex, head: Buffer, stream: ServerLiveStream<Out>, { decode }: Codec<Out>): void {
  const reader = new StreamFrameReader();
  const take = (chunk: Buffer) => {
    try {
      for (const frame of reader.push(chunk)) {
        if (frame.kind === 'finish') {
          stream.finish(frame.code, frame.details);
          socket.destroy();
        } else if (frame.kind === 'message' && !stream.send(decode(frame.bytes)) && !stream.ended) {
          socket.pause();
        }
      }
    } catch (error) {
      socket.destroy(error as Error);
    }
  };
  stream.onDrain(() => socket.resume());
  socket.on('data', take);
  socket.once('close', () => stream.finish(grpcStatus.unavailable, 'the principal that has this agent has gone'));
  if (head.length > 0) {
    take(head);
  }
}

/** Serves a live stream that has come over the link, as if its agent had opened it here. */
export function serveRelayed(
  services: LiveStreamService,
  kind: StreamKind,
  agent: string,
  socket: Duplex,
  head: Buffer,
): void {
  if (kind === 'logs') {
    serveAs(services.logs, codecs.logs, agent, socket, head);
  } else {
    serveAs(services.terminal, codecs.terminal, agent, socket, head);
  }
}

function serveAs<In, Out>(
  start: (stream: ServerLiveStream<Out>) => LiveStreamHandlers<In>,
  { fromAgent, toAgent }: { readonly fromAgent: Codec<In>; readonly toAgent: Codec<Out> },
  agent: string,
  socket: Duplex,
  head: Buffer,
): void {
  let isOver = false;
  let drained: () => void = () => undefined;
  socket.on('drain', () => drained());
  const handlers = start({
    agent,
    get ended() {
      return isOver || socket.destroyed;
    },
    send: (message) => {
      const bytes = Buffer.from(toAgent.encode(message).finish());
      return !isOver && !socket.destroyed && writeFrame(socket, { kind: 'message', bytes });
    },
    onDrain: (listener) => {
      drained = listener;
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    finish: (code = grpcStatus.ok, details = '') => {
      if (!isOver && !socket.destroyed) {
        isOver = true;
        writeFrame(socket, { kind: 'finish', code, details });
        socket.end();
        // What the agent still sends is not read.
        socket.resume();
      }
    },
  });
  const reader = new StreamFrameReader();
  const take = (chunk: Buffer) => {
    if (isOver) {
      return;
    }
    try {
      for (const frame of reader.push(chunk)) {
        if (isOver) {
          return;
        }
        if (frame.kind === 'message') {
          handlers.message(fromAgent.decode(frame.bytes));
        } else if (frame.kind === 'half-closed') {
          handlers.halfClosed?.();
        }
      }
    } catch (error) {
      socket.destroy(error as Error);
    }
  };
  socket.on('data', take);
  socket.once('close', () => handlers.closed());
  socket.once('end', () => socket.end());
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${streamProtocol}\r\n\r\n`);
  if (head.length > 0) {
    take(head);
  }
}
