import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bracketed } from '../../base/index.ts';
import { createAuthority, issueCertificate } from '../../pki/index.ts';

/** One request that the server got. */
export interface Seen {
  method: string;
  url: string;
  httpVersion: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** Answers a request. */
export type Script = (request: Seen, response: Http2ServerResponse) => void | Promise<void>;

/** An HTTPS server that speaks HTTP/1.1 and HTTP/2 like an API server, with scripted responses. */
export interface ScriptedServer {
  /** Path of a kubeconfig for it, with `tokenFile`. */
  kubeconfig: string;
  port: number;
  requests: Seen[];
  /** What clients present; takes effect in the kubeconfig's token file. */
  setToken(token: string): Promise<void>;
  answer(script: Script): void;
  /** Writes a kubeconfig that reaches the server at another port of 127.0.0.1, as through a proxy. */
  kubeconfigVia(port: number): Promise<string>;
  /** Cuts all connections. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts a server on a free port of an address. */
export async function startScriptedServer(speaksHttp2 = true, host = '127.0.0.1'): Promise<ScriptedServer> {
  const authority = await createAuthority({ commonName: 'test' });
  const leaf = await issueCertificate({
    authority,
    commonName: 'api',
    hosts: ['127.0.0.1', '::1'],
    usages: ['server'],
  });
  const folder = await mkdtemp(path.join(tmpdir(), 'scripted-'));
  const requests: Seen[] = [];
  const sockets = new Set<Socket>();
  let script: Script = (_, response) => void response.writeHead(500).end();
  const onRequest = async (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const parts: Buffer[] = [];
    for await (const part of request) {
      parts.push(part as Buffer);
    }
    const { method, url, httpVersion, headers } = request;
    const seen: Seen = { method, url, httpVersion, headers, body: Buffer.concat(parts).toString() };
    requests.push(seen);
    await script(seen, response);
  };
  const tls = { cert: leaf.certificate, key: leaf.key };
  const listener = (request: unknown, response: unknown) =>
    void onRequest(request as Http2ServerRequest, response as Http2ServerResponse);
  const server = speaksHttp2 ? createSecureServer({ ...tls, allowHTTP1: true }, listener) : createServer(tls, listener);
  server.on('secureConnection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  const tokenFile = path.join(folder, 'token');
  await writeFile(tokenFile, 'first-token\n');
  const kubeconfigVia = async (at: number) => {
    const file = path.join(folder, `kubeconfig-${at}`);
    const ca = Buffer.from(authority.certificate).toString('base64');
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      clusters: [
        { name: 'c', cluster: { server: `https://${bracketed(host)}:${at}`, 'certificate-authority-data': ca } },
      ],
      users: [{ name: 'u', user: { tokenFile: 'token' } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: 'mine' } }],
    };
    await writeFile(file, JSON.stringify(config));
    return file;
  };
  return {
    kubeconfig: await kubeconfigVia(port),
    port,
    requests,
    kubeconfigVia,
    setToken: (token) => writeFile(tokenFile, token),
    answer(next) {
      script = next;
    },
    cut() {
      for (const socket of sockets) {
        socket.destroy();
      }
    },
    async close() {
      for (const socket of sockets) {
        socket.destroy();
      }
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(folder, { recursive: true });
    },
  };
}
