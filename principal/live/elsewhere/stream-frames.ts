import type { Duplex } from 'node:stream';
import { type GrpcStatusCode, grpcStatus } from '../../../lib/wire/index.ts';

/** What is said on a connection that carries one live stream of an agent between replicas. */
export type StreamFrame =
  /** A message of the stream, encoded. */
  | { readonly kind: 'message'; readonly bytes: Buffer }
  /** The agent has ended its messages. */
  | { readonly kind: 'half-closed' }
  /** The holder has ended the stream. */
  | { readonly kind: 'finish'; readonly code: GrpcStatusCode; readonly details: string };

const kinds = ['message', 'half-closed', 'finish'] as const;
/** The length of what follows, and the kind. */
const headBytes = 5;
/** Messages of live streams have at most 1 MiB. */
const mostFrameBytes = 2 * 1024 * 1024;
const codes = new Set<number>(Object.values(grpcStatus));

/** Writes a frame. @returns false when the connection is full */
export function writeFrame(socket: Duplex, frame: StreamFrame): boolean {
  const body =
    frame.kind === 'message'
      ? frame.bytes
      : frame.kind === 'finish'
        ? Buffer.concat([Buffer.of(frame.code), Buffer.from(frame.details.slice(0, 1_000))])
        : Buffer.alloc(0);
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(body.length);
  head[headBytes - 1] = kinds.indexOf(frame.kind);
  socket.cork();
  socket.write(head);
  const hasRoom = socket.write(body);
  socket.uncork();
  return hasRoom;
}

/** Splits what comes into frames. */
export class StreamFrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that are complete now. @throws Error for what is no frame */
  *push(chunk: Buffer): Generator<StreamFrame> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= headBytes) {
      const length = this.#rest.readUInt32BE();
      if (length > mostFrameBytes) {
        throw new Error(`a frame of ${length} bytes is too long`);
      }
      const end = headBytes + length;
      if (this.#rest.length < end) {
        return;
      }
      const kind = this.#rest[headBytes - 1] ?? 0;
      const body = this.#rest.subarray(headBytes, end);
      this.#rest = this.#rest.subarray(end);
      yield frameOf(kind, body);
    }
  }
}

function frameOf(kind: number, body: Buffer): StreamFrame {
  switch (kinds[kind]) {
    case 'message':
      return { kind: 'message', bytes: body };
    case 'half-closed':
      return { kind: 'half-closed' };
    case 'finish': {
      const code = body[0] ?? -1;
      if (codes.has(code)) {
        return { kind: 'finish', code: code as GrpcStatusCode, details: body.subarray(1).toString('utf8') };
      }
    }
  }
  throw new Error(`a frame of kind ${kind} is not known`);
}
