const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  413: 'RequestEntityTooLarge',
  429: 'TooManyRequests',
  500: 'InternalError',
  501: 'NotImplemented',
  502: 'BadGateway',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** A refusal in the form of Kubernetes: the JSON of a `Status`, which kubectl and Argo CD show. */
export function statusText(code: number, message: string, rest: { reason?: string; details?: object } = {}): string {
  return JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: rest.reason ?? reasons[code] ?? (code < 500 ? 'BadRequest' : 'InternalError'),
    ...(rest.details === undefined ? {} : { details: rest.details }),
    code,
  });
}
