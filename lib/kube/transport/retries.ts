import { backoffDelay, sleep } from '../../base/index.ts';
import { ApiError, ConnectionError, errorFromResponse } from '../errors.ts';
import type { HttpRequest, HttpResponse } from './connection.ts';

/** A request with the data that decides whether it may be repeated. */
export interface RepeatableRequest extends Omit<HttpRequest, 'body'> {
  body?: string | Uint8Array | undefined;
  /** Whether repeating it is harmless even if it was executed. */
  idempotent?: boolean | undefined;
}

/** Sends a request once. */
export type Send = (request: HttpRequest) => Promise<HttpResponse>;

const attempts = 4;

/**
 * Sends a request until the response is below 400 or the error is not worth another attempt. `unauthorized`
 * is called before the one repetition after a 401: credentials may have been rotated.
 */
export async function sendWithRetries(
  request: RepeatableRequest,
  send: Send,
  unauthorized: () => void,
): Promise<HttpResponse> {
  const { idempotent, body, ...rest } = request;
  const isRepeatable = idempotent || request.method === 'GET';
  for (let attempt = 1; ; attempt++) {
    try {
      return await accepted(send, body === undefined ? rest : { ...rest, body });
    } catch (error) {
      const waitMs = attempt < attempts ? retryDelay(error, attempt, isRepeatable) : undefined;
      if (waitMs === undefined) {
        throw error;
      }
      if (error instanceof ApiError && error.status === 401) {
        unauthorized();
      }
      if (waitMs > 0) {
        await sleep(waitMs, request.signal);
      }
      request.signal?.throwIfAborted();
    }
  }
}

/** Sends, and turns error responses into ApiError. */
async function accepted(send: Send, request: HttpRequest): Promise<HttpResponse> {
  const response = await send(request);
  if (response.status < 400) {
    return response;
  }
  const body = await response.body.text();
  const what = `${request.method} ${request.path.replace(/\?.*/, '')}`;
  throw errorFromResponse(what, response.status, body, response.headers['retry-after']);
}

/** Milliseconds until the next attempt of a failed request, or undefined when it must not be repeated here. */
function retryDelay(error: unknown, attempt: number, isRepeatable: boolean): number | undefined {
  const backoff = backoffDelay(attempt, { initialMs: 150, jitter: 2 / 3 });
  if (error instanceof ConnectionError) {
    // One more try: a kept-alive connection may have been closed under the request. A server that is down is for the
    // caller to wait for.
    return attempt === 1 && error.sent && isRepeatable ? 0 : undefined;
  }
  if (!(error instanceof ApiError)) {
    return undefined;
  }
  if (error.status === 401) {
    return attempt === 1 ? 0 : undefined;
  }
  if (error.status === 429) {
    return Math.min(error.retryAfterMs ?? backoff, 10_000);
  }
  if (error.status === 503 && error.retryAfterMs !== undefined && isRepeatable) {
    return Math.min(error.retryAfterMs, 10_000);
  }
  return undefined;
}
