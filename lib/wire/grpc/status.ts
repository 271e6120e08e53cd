/** The status codes of gRPC. */
export const grpcStatus = {
  ok: 0,
  canceled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

/** One of the codes. */
export type GrpcStatusCode = (typeof grpcStatus)[keyof typeof grpcStatus];

const names = new Map<number, string>(Object.entries(grpcStatus).map(([name, code]) => [code, name]));

/** How a call ended, other than well. */
export class GrpcError extends Error {
  override readonly name = 'GrpcError';
  readonly code: GrpcStatusCode;
  /** The text that the peer sent, or that it gets. */
  readonly details: string;
  /** Whether the connection was lost before a status arrived: the connection's error is the real reason. */
  readonly isConnectionLoss: boolean;

  constructor(
    code: GrpcStatusCode,
    details: string,
    options: { readonly cause?: unknown; readonly isConnectionLoss?: boolean } = {},
  ) {
    super(`${statusName(code)}: ${details}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.isConnectionLoss = options.isConnectionLoss ?? false;
    this.code = code;
    this.details = details;
  }
}

/** The name of a status code, for messages. */
export function statusName(code: number): string {
  return names.get(code) ?? `status ${code}`;
}

/** The code for a `grpc-status` text; anything unknown is `unknown`. */
export function parseStatus(text: string): GrpcStatusCode {
  const code = Number(text);
  return names.has(code) && text !== '' ? (code as GrpcStatusCode) : grpcStatus.unknown;
}

/** `grpc-message` in its percent-encoded form: printable ASCII except `%` stays. */
export function encodeMessage(details: string): string {
  let encoded = '';
  for (const byte of Buffer.from(details, 'utf8')) {
    encoded +=
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

/** The reverse of `encodeMessage`; broken encodings are taken as they are. */
export function decodeMessage(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** The gRPC status for an HTTP status without one, from gRPC's table. */
export function statusOfHttp(status: number): GrpcStatusCode {
  switch (status) {
    case 400:
      return grpcStatus.internal;
    case 401:
      return grpcStatus.unauthenticated;
    case 403:
      return grpcStatus.permissionDenied;
    case 404:
      return grpcStatus.unimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return grpcStatus.unavailable;
    default:
      return grpcStatus.unknown;
  }
}
