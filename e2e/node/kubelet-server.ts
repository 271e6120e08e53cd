import type { ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import type { LogQuery } from './logs.ts';
import type { PodRunner } from './pod-runner.ts';

/** The port that kubelets listen on. */
export const kubeletPort = 10250;

/**
 * The kubelet's own HTTPS server, which the API server calls for `kubectl logs`. It is created without a certificate,
 * because its address is found by listening: call `certify` before anything is told of it.
 */
export function createKubeletServer(find: (namespace: string, name: string) => PodRunner | undefined): Server {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'https://kubelet');
    const [what = '', ...rest] = url.pathname.slice(1).split('/').map(decodeURIComponent);
    const [namespace = '', name = '', container] = rest;
    if (what === 'healthz') return void response.end('ok');
    if (what !== 'containerLogs') return fail(response, 404, `the node does not serve ${url.pathname}`);
    const runner = find(namespace, name);
    if (!runner) return fail(response, 404, `pod "${name}" not found`);
    const life = runner.container(container);
    if (!life) return fail(response, 404, `container ${container} not found in pod ${name}`);
    const previous = url.searchParams.get('previous') === 'true';
    const log = life.log(previous);
    if (!log) {
      const why = previous ? `previous terminated container "${container}"` : `container "${container}"`;
      return fail(response, 400, `${why} in pod "${name}" is waiting to start or not found`);
    }
    const stop = new AbortController();
    response.on('close', () => stop.abort());
    void send(response, log.read(queryOf(url.searchParams), stop.signal));
  });
  return server;
}

/** Gives the server a certificate for its address. */
export async function certify(server: Server, address: string): Promise<void> {
  const authority = await createAuthority({ commonName: 'process node' });
  const { certificate, key } = await issueCertificate({
    authority,
    algorithm: 'p256',
    commonName: 'process node',
    hosts: [address],
    usages: ['server'],
  });
  server.setSecureContext({ cert: certificate, key });
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

async function send(response: ServerResponse, lines: AsyncIterable<string>): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' });
  response.flushHeaders();
  for await (const line of lines) {
    if (response.destroyed) return;
    if (!response.write(line)) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
  }
  response.end();
}

function fail(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'text/plain' }).end(message);
}
