import { ApiError, ConnectionError } from '../../lib/kube/index.ts';
import { statusText } from '../../lib/live/index.ts';
import { WireError } from '../../lib/wire/index.ts';

/** A refused request, with its HTTP status. */
export class RequestRefusedError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The answer to a failed request: HTTP status and the JSON of a `Status`. */
export function statusOf(error: unknown): [code: number, text: string] {
  if (error instanceof RequestRefusedError) {
    return [error.code, statusText(error.code, error.message)];
  }
  if (error instanceof ApiError) {
    const { status, serverMessage, reason, details } = error;
    return [status, statusText(status, serverMessage, { reason, ...(details === undefined ? {} : { details }) })];
  }
  if (error instanceof ConnectionError) {
    const isSlow = /TIMEOUT|TIMEDOUT/.test(error.code);
    const code = isSlow ? 504 : 502;
    return [code, statusText(code, `the agent got no answer from its cluster's API server: ${error.message}`)];
  }
  if (error instanceof WireError) {
    return [400, statusText(400, (error as Error).message)];
  }
  return [500, statusText(500, `the agent could not carry out the request: ${(error as Error).message}`)];
}
