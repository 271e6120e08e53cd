import { apiVersionOf, type ResourceType } from './types.ts';

/** The fields of a Kubernetes `Status` object that explain an error. */
export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: { reason?: string; message?: string; field?: string }[];
  retryAfterSeconds?: number;
}

/**
 * The API server refused a request, or a watch ended with an ERROR event. `message` is the server's, prefixed with
 * the request.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status code. */
  readonly status: number;
  /** The `reason` of the Status object (`NotFound`, `Conflict`, …), or one derived from the code. */
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  /** The server's `Retry-After`, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The server's message, without the request. */
  readonly serverMessage: string;

  constructor(options: {
    status: number;
    reason?: string | undefined;
    message: string;
    serverMessage?: string | undefined;
    details?: StatusDetails | undefined;
    retryAfterMs?: number | undefined;
    cause?: unknown;
  }) {
    super(options.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = options.status;
    this.reason = options.reason || reasonOf(options.status);
    this.details = options.details;
    this.serverMessage = options.serverMessage ?? options.message;
    this.retryAfterMs =
      options.retryAfterMs ??
      (options.details?.retryAfterSeconds === undefined ? undefined : options.details.retryAfterSeconds * 1000);
  }
}

/**
 * No usable response arrived: the connection failed, broke or was silent too long. Whether a write happened is unknown
 * unless `sent` is false.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  /** The system's or HTTP library's code: `ECONNREFUSED`, `ETIMEDOUT`, … */
  readonly code: string;
  /** False when the request certainly did not reach the server. */
  readonly sent: boolean;

  constructor(message: string, options: { code: string; sent: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.code = options.code;
    this.sent = options.sent;
  }
}

/** Builds the error for a response body, which is a Status object or, from proxies, any text. */
export function errorFromResponse(what: string, status: number, body: string, retryAfter?: string): ApiError {
  const retryAfterMs = retryAfter && /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined;
  const parsed = parseStatus(body);
  const text = parsed?.message || body.trim().slice(0, 500) || reasonOf(status);
  return new ApiError({
    status,
    reason: parsed?.reason,
    message: `${what}: ${text}`,
    serverMessage: text,
    details: parsed?.details,
    retryAfterMs,
  });
}

/** Explains a list that is answered with 404: an API server answers so only for kinds that it does not serve. */
export function errorOfUnservedKind(type: ResourceType, cause: unknown): ApiError {
  const version = apiVersionOf(type);
  // Groups of Kubernetes itself have no dot, or end like this; their kinds have no CustomResourceDefinition.
  const isOwn = !type.group.includes('.') || type.group.endsWith('.k8s.io');
  const hint = isOwn
    ? ''
    : `: install the CustomResourceDefinition ${type.plural}.${type.group} with version ${type.version}`;
  const message = `the API server does not serve ${type.plural} of ${version}${hint}`;
  return new ApiError({ status: 404, message, cause });
}

/** Explains a JSON Patch that was made for what the object is no longer: a Conflict. */
export function errorOfStalePatch(path: string, cause: unknown): ApiError {
  return new ApiError({
    status: 409,
    message: `PATCH ${path}: the object has changed since the patch was made`,
    cause,
  });
}

/** Builds the error for the Status object of a watch's ERROR event. */
export function errorFromStatus(what: string, object: unknown): ApiError {
  const status = (object ?? {}) as { code?: number; reason?: string; message?: string; details?: StatusDetails };
  return new ApiError({
    status: status.code ?? 500,
    reason: status.reason,
    message: `${what}: ${status.message || 'the watch ended with an error'}`,
    details: status.details,
  });
}

function parseStatus(
  body: string,
): { reason?: string; message?: string; details?: StatusDetails; code?: number } | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined; // not JSON: a proxy's page, shown as text
  }
}

const reasons: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

function reasonOf(status: number): string {
  return reasons[status] ?? `HTTP ${status}`;
}

const hasStatus = (error: unknown, status: number) => error instanceof ApiError && error.status === status;

/** The object, namespace or kind does not exist. */
export function isNotFound(error: unknown): boolean {
  return hasStatus(error, 404);
}

/** The object changed since it was read, or another field manager owns a field. Not for "already exists". */
export function isConflict(error: unknown): boolean {
  return hasStatus(error, 409) && !isAlreadyExists(error);
}

/** A create found an object of that name. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason === 'AlreadyExists';
}

/** The resourceVersion or continue token is too old: list again. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone');
}

/** RBAC or admission denies the request. */
export function isForbidden(error: unknown): boolean {
  return hasStatus(error, 403);
}

/** The object violates its schema or validation: another try cannot help. */
export function isInvalid(error: unknown): boolean {
  return hasStatus(error, 422) || hasStatus(error, 400);
}

/** Another try of the same request may succeed: connection trouble, throttling, a conflict, the server's own error. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof ConnectionError) {
    return true;
  }
  return error instanceof ApiError && (error.status === 429 || error.status >= 500 || isConflict(error));
}
