/**
 * Frames of gRPC over WebSocket as `golang.stackrox.io/grpc-http1` has them: each binary message is one flag byte, the
 * length and the content. Written from the description, apart from the programs' own.
 */
export type GrpcWsFrame =
  | { readonly is: 'data'; readonly bytes: Buffer }
  | { readonly is: 'metadata'; readonly fields: Readonly<Record<string, string>> };

/** The end of what a client sends. */
export const halfClose = Buffer.from([0x80, 0, 0, 0, 0]);

/** @throws Error for anything that is not exactly a frame */
export function readGrpcWs(message: Buffer): GrpcWsFrame {
  const [flags = 0] = message;
  if (message.length < 5 || message.readUInt32BE(1) !== message.length - 5) {
    throw new Error('the length does not fit');
  }
  const content = message.subarray(5);
  if (flags === 0) {
    return { is: 'data', bytes: Buffer.from(content) };
  }
  if (flags !== 0x80) {
    throw new Error(`unexpected flags ${flags}`);
  }
  const lines = content.toString('latin1').split('\r\n');
  if (content.length > 0 && lines.pop() !== '') {
    throw new Error('the last line is not ended');
  }
  return { is: 'metadata', fields: Object.fromEntries(lines.filter((line) => line !== '').map(fieldOf)) };
}

/** A frame with a message. */
export function dataFrame(bytes: Uint8Array): Buffer {
  return frame(0, bytes);
}

/** A frame with header or trailer fields. */
export function goMetadataFrame(fields: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return frame(0x80, Buffer.from(lines.join(''), 'latin1'));
}

function fieldOf(line: string): [string, string] {
  const colon = line.indexOf(': ');
  if (colon <= 0) {
    throw new Error(`"${line}" is no field`);
  }
  return [line.slice(0, colon), line.slice(colon + 2)];
}

function frame(flags: number, content: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(content.length, 1);
  return Buffer.concat([head, content]);
}
