import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { listenHost } from '../base/index.ts';
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
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

async function serve(
  what: string,
  options: { port: number; host?: string },
  routes: Readonly<Record<string, () => Answer | Promise<Answer>>>,
): Promise<HttpEndpoint> {
  const server = createServer((request, response) => {
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
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new FatalError(`cannot serve ${what} on port ${options.port}: ${error.message}`, { cause: error })),
    );
    server.listen(options.port, listenHost(options.host ?? ''), resolve);
  });
  server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * `/healthz` (and `/readyz` and `/livez`, which default to the same and to always-well): 200 when well, 503 with the reason
 * when not.
 * @throws FatalError when the port cannot be had
 */
export function serveHealth(options: {
  port: number;
  host?: string;
  healthz: () => Health;
  readyz?: () => Health;
}): Promise<HttpEndpoint> {
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
 * `/metrics` of a prom-client registry.
 * @throws FatalError when the port cannot be had
 */
export function serveMetrics(options: { port: number; host?: string; registry: Registry }): Promise<HttpEndpoint> {
  return serve('metrics', options, {
    '/metrics': async () => ({
      status: 200,
      type: options.registry.contentType,
      body: await options.registry.metrics(),
    }),
  });
}
