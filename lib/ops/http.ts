import type { Registry } from 'prom-client';
import { keptFor, type Logger } from '../base/index.ts';
import { boundedServer, type HttpLimits } from '../http/index.ts';
import { FatalError } from './errors.ts';

/** A small HTTP server that is up; `port` is the real one when 0 was asked for. */
export interface HttpEndpoint {
  readonly port: number;
  close(): Promise<void>;
}

/** An answer of a health check. */
export interface Health {
  readonly ok: boolean;
  /** Shown to whoever asks; say what is wrong. */
  readonly text?: string;
  /** Headers of the answer besides its type. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Where a small server listens. */
interface EndpointOptions {
  readonly port: number;
  readonly host?: string;
  readonly logger: Pick<Logger, 'warn'>;
}

/** Enough for several of Prometheus and for the probes of nodes, which ask for little, seldom, and read at once. */
const limits: HttpLimits = {
  connections: 100,
  connectionsPerNetwork: 30,
  requestsUnderWay: 2,
  headersMs: 5_000,
  requestMs: 10_000,
  idleMs: 90_000,
  stallMs: 15_000,
  answerMs: 60_000,
};
/** For so long a text of metrics is good for all who ask. */
const metricsMs = 1_000;

async function serve(
  what: string,
  options: EndpointOptions,
  routes: Readonly<Record<string, () => Answer | Promise<Answer>>>,
): Promise<HttpEndpoint> {
  const bounded = boundedServer({ what, limits, logger: options.logger }, (request, response) => {
    // Not parsed as a URL: that throws for some of what a stranger may send.
    const [path = ''] = (request.url ?? '').split('?', 1);
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    const answer = route ?? ((): Answer => ({ status: 404, type: 'text/plain', body: '404 page not found\n' }));
    Promise.resolve()
      .then(answer)
      .catch((error: Error): Answer => ({ status: 500, type: 'text/plain', body: `${error.message}\n` }))
      .then(({ status, type, body, headers }) => {
        response.writeHead(status, { 'content-type': type, ...headers });
        response.end(request.method === 'HEAD' ? undefined : body);
      });
  });
  const port = await bounded.listen({ port: options.port, host: options.host ?? '' }).catch((error: Error) => {
    throw new FatalError(`cannot serve ${what} on port ${options.port}: ${error.message}`, { cause: error });
  });
  bounded.server.unref();
  return { port, close: () => bounded.close() };
}

/**
 * `/healthz` (and `/readyz` and `/livez`, which default to the same and to always-well): 200 when well, 503 with the reason
 * when not.
 * @throws FatalError when the port cannot be had
 */
export function serveHealth(
  options: EndpointOptions & { readonly healthz: () => Health; readonly readyz?: () => Health },
): Promise<HttpEndpoint> {
  const answer = (check: () => Health) => (): Answer => {
    const { ok, text, headers } = check();
    return { status: ok ? 200 : 503, type: 'text/plain', body: text === undefined ? '' : `${text}\n`, headers };
  };
  return serve('health checks', options, {
    '/healthz': answer(options.healthz),
    '/readyz': answer(options.readyz ?? options.healthz),
    '/livez': answer(() => ({ ok: true })),
  });
}

/**
 * `/metrics` of a prom-client registry. The text is made once a second at most.
 * @throws FatalError when the port cannot be had
 */
export function serveMetrics(options: EndpointOptions & { readonly registry: Registry }): Promise<HttpEndpoint> {
  const { registry } = options;
  const text = keptFor(metricsMs, async () => Buffer.from(await registry.metrics()));
  return serve('metrics', options, {
    '/metrics': async () => ({ status: 200, type: registry.contentType, body: await text() }),
  });
}
