import { GrpcError, grpcStatus } from './status.ts';

// gRPC over WebSocket as argocd-agent speaks it (`--enable-websocket`): one binary message is one gRPC frame; a frame
// with the top bit of its flags set carries metadata, as header lines of HTTP/1.

const prefixBytes = 5;
const metadataFlag = 0x80;
const compressedFlag = 0x01;

/** The subprotocol that is asked for in the header of the request, and never confirmed. */
export const webSocketProtocol = 'grpc-ws';
/** The largest WebSocket message of either side, the prefix of its frame included. */
export const maxWebSocketBytes = 64 * 1024 * 1024;
/** The largest gRPC message that fits. */
export const maxWebSocketMessageBytes = maxWebSocketBytes - prefixBytes;
/** Buffered bytes at which a WebSocket counts as full, and at which it accepts more. */
export const webSocketBuffer = { fullBytes: 256 * 1024, freeBytes: 64 * 1024 } as const;

/** The frame that ends the client's messages: metadata without a line. */
export const halfCloseFrame: Buffer = Buffer.from([metadataFlag, 0, 0, 0, 0]);

/** A frame that carries headers or trailers. Names are written as Go writes them (`Grpc-Status`). */
export function encodeMetadataFrame(metadata: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(metadata).map(([name, value]) => `${canonical(name)}: ${value}\r\n`);
  const payload = Buffer.from(lines.join(''), 'latin1');
  const prefix = Buffer.alloc(prefixBytes);
  prefix[0] = metadataFlag;
  prefix.writeUInt32BE(payload.length, 1);
  return Buffer.concat([prefix, payload]);
}

/** A WebSocket message, taken apart. */
export type WebSocketFrame =
  | { readonly kind: 'data'; readonly frame: Buffer }
  | { readonly kind: 'metadata'; readonly metadata: Record<string, string> }
  | { readonly kind: 'halfClose' };

/** @throws GrpcError `internal` when the message is not exactly one frame */
export function readFrame(message: Buffer, isBinary: boolean): WebSocketFrame {
  if (!isBinary) {
    throw broken('a message is text');
  }
  if (message.length < prefixBytes) {
    throw broken('a message is shorter than the prefix of a frame');
  }
  const flags = message.readUInt8(0);
  const length = message.readUInt32BE(1);
  if (length !== message.length - prefixBytes) {
    throw broken('a message is not one frame');
  }
  if ((flags & metadataFlag) === 0) {
    return { kind: 'data', frame: message };
  }
  if ((flags & compressedFlag) !== 0) {
    throw broken('metadata is compressed');
  }
  if (length === 0) {
    return { kind: 'halfClose' };
  }
  return { kind: 'metadata', metadata: parseLines(message.subarray(prefixBytes).toString('latin1')) };
}

function parseLines(text: string): Record<string, string> {
  const metadata: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0) {
      metadata[line.slice(0, colon).trim().toLowerCase()] ??= line.slice(colon + 1).trim();
    }
  }
  return metadata;
}

function canonical(name: string): string {
  return name.replace(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase());
}

function broken(what: string): GrpcError {
  return new GrpcError(grpcStatus.internal, `the WebSocket carries no gRPC: ${what}`);
}
