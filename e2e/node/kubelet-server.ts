import type { ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import { serveExec } from './exec.ts';
import type { LogQuery } from './logs.ts';
import type { PodRunner } from './pod-runner.ts';
import { offersForwarding, serveForward } from './port-forward.ts';

/** The port that kubelets listen on. */
export const kubeletPort = 10250;

/**
 * The kubelet's own HTTPS server, which the API server calls for logs, `kubectl exec` and forwarded ports. Whoever calls must have a client
 * certificate of the cluster's authority. The server's own certificate comes later, by `setSecureContext`, because its address is
 * found by listening.
 *
 * @param ca the cluster's authority, PEM
 */
export function createKubeletServer(
  ca: string,
  find: (namespace: string, name: string) => PodRunner | undefined,
): Server {
  const server = createServer({ requestCert: true, rejectUnauthorized: true, ca }, (request, response) => {
    const url = new URL(request.url ?? '/', 'https://kubelet');
    const [what = '', ...rest] = url.pathname.slice(1).split('/').map(decodeURIComponent);
    const [namespace = '', name = '', container] = rest;
    if (what === 'healthz') {
      return void response.end('ok');
    }
    if (what !== 'containerLogs') {
      return fail(response, 404, `the node does not serve ${url.pathname}`);
    }
    const runner = find(namespace, name);
    if (!runner) {
      return fail(response, 404, `pod "${name}" not found`);
    }
    const life = runner.container(container);
    if (!life) {
      return fail(response, 404, `container ${container} not found in pod ${name}`);
    }
    const previous = url.searchParams.get('previous') === 'true';
    const log = life.log(previous);
    if (!log) {
      const why = previous ? `previous terminated container "${container}"` : `container "${container}"`;
      return fail(response, 400, `${why} in pod "${name}" is waiting to start or not found`);
    }
    const stop = new AbortController();
    response.on('close', () => stop.abort());
    // The pod may go, and its log with it, before it is read.
    send(response, log.read(queryOf(url.searchParams), stop.signal)).catch(() => response.destroy());
  });
  server.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url ?? '/', 'https://kubelet');
    const [what, namespace = '', name = '', container] = url.pathname.slice(1).split('/').map(decodeURIComponent);
    const run = find(namespace, name)?.container(container)?.run;
    socket.on('error', () => undefined);
    if (what === 'portForward') {
      const runner = find(namespace, name);
      if (runner && offersForwarding(request)) {
        // The API server's callers say `ports`, and it says `port`.
        const ports = url.searchParams.getAll('port').flatMap((text) => text.split(',').map(Number));
        const pod = { name, locate: (port: number) => runner.locate(port) };
        return serveForward(request, socket as Socket, head, pod, ports);
      }
      const why = runner
        ? `its pod "${name}" has the address ${runner.address} of this machine`
        : `pod "${name}" not found`;
      return void socket.end(
        `HTTP/1.1 501 Not Implemented\r\nConnection: close\r\n\r\nthis node forwards no ports over SPDY: ${why}`,
      );
    }
    if (what === 'exec' && run !== undefined) {
      serveExec(request, socket as Socket, head, run, url.searchParams);
    } else {
      socket.end(`HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\ncontainer not found ("${container}")`);
    }
  });
  return server;
}

function queryOf(parameters: URLSearchParams): LogQuery {
  const number = (name: string) => {
    const text = parameters.get(name);
    return text === null || text === '' ? undefined : Number(text);
  };
  const seconds = number('sinceSeconds');
  const time = parameters.get('sinceTime');
  return {
    follow: parameters.get('follow') === 'true',
    timestamps: parameters.get('timestamps') === 'true',
    tailLines: number('tailLines'),
    since: seconds === undefined ? (time ? Date.parse(time) : undefined) : Date.now() - seconds * 1000,
    limitBytes: number('limitBytes'),
  };
}

async function send(response: ServerResponse, texts: AsyncIterable<string>): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' });
  response.flushHeaders();
  for await (const text of texts) {
    if (response.destroyed) {
      return;
    }
    if (!response.write(text)) {
      await drained(response);
    }
  }
  response.end();
}

/** Resolves when the response can take more, or nobody wants more. */
async function drained(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once('drain', resolve).once('close', resolve);
  await promise;
  response.off('drain', resolve).off('close', resolve);
}

function fail(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'text/plain' }).end(message);
}
