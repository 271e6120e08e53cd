/** The streams of a WebSocket that Kubernetes executes commands over: the first byte of each message. */
export const channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** One of {@link channel}. */
export type Channel = (typeof channel)[keyof typeof channel];

/** The subprotocols that are spoken, by their names in `Sec-WebSocket-Protocol`. Since v5 a stream can be closed by itself. */
export const channelProtocols = [
  'v5.channel.k8s.io',
  'v4.channel.k8s.io',
  'v3.channel.k8s.io',
  'v2.channel.k8s.io',
  'channel.k8s.io',
] as const;

/** One of {@link channelProtocols}. */
export type ChannelProtocol = (typeof channelProtocols)[number];

/** The first of the subprotocols that a client offers which is spoken; undefined when none is. */
export function chosenProtocol(offered: Iterable<string>): ChannelProtocol | undefined {
  for (const name of offered) {
    const known = channelProtocols.find((protocol) => protocol === name);
    if (known !== undefined) {
      return known;
    }
  }
  return undefined;
}

/** Whether the error stream carries a `Status`; before v4 it carries plain text, which is empty after success. */
export function hasStatus(protocol: string): boolean {
  return protocol === 'v5.channel.k8s.io' || protocol === 'v4.channel.k8s.io';
}

/** A message on a stream. */
export function channelMessage(to: Channel, bytes: Uint8Array | string): Buffer {
  const data = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  const message = Buffer.allocUnsafe(data.length + 1);
  message[0] = to;
  message.set(data, 1);
  return message;
}

/** Closes stdin; v5 only. */
export const stdinClosed: Buffer = Buffer.from([channel.close, channel.stdin]);

/** The size of a terminal, in characters. */
export interface TerminalSize {
  readonly rows: number;
  readonly cols: number;
}

/** Decodes a message of a client. */
export type ChannelInput =
  | { readonly kind: 'stdin'; readonly data: Buffer }
  | { readonly kind: 'resize'; readonly size: TerminalSize }
  /** Nothing more will come on stdin. */
  | { readonly kind: 'closed' }
  /** Empty messages, which some clients open streams with. */
  | { readonly kind: 'nothing' };

/** Terminals count rows and columns with 16 bits. */
const largest = 65_535;

/** Reads a client's message; undefined when it is none of the protocol. */
export function readInput(message: Buffer): ChannelInput | undefined {
  const [to] = message;
  const data = message.subarray(1);
  if (to === channel.close) {
    return data.length === 1 ? { kind: data[0] === channel.stdin ? 'closed' : 'nothing' } : undefined;
  }
  if (data.length === 0) {
    return to === undefined || to <= channel.resize ? { kind: 'nothing' } : undefined;
  }
  if (to === channel.stdin) {
    return { kind: 'stdin', data };
  }
  if (to !== channel.resize) {
    return undefined;
  }
  const size = sizeOf(data.toString('utf8'));
  return size && { kind: 'resize', size };
}

/** A message that resizes the terminal. */
export function resizeMessage({ rows, cols }: TerminalSize): Buffer {
  const clamp = (count: number) => Math.min(count, largest);
  return channelMessage(channel.resize, JSON.stringify({ Width: clamp(cols), Height: clamp(rows) }));
}

function sizeOf(text: string): TerminalSize | undefined {
  if (text.length > 1_000) {
    return undefined;
  }
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof read !== 'object' || read === null) {
    return undefined;
  }
  // Go's names of the fields, which it reads in any case.
  const fields = new Map(Object.entries(read).map(([key, value]) => [key.toLowerCase(), value]));
  const [cols, rows] = [fields.get('width'), fields.get('height')];
  const isCount = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) <= largest;
  return isCount(cols) && isCount(rows) ? { rows, cols } : undefined;
}
