import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGunzip } from 'node:zlib';

/** Who may read the repositories of a {@link PrivateGit}. */
export interface GitCredential {
  readonly username: string;
  readonly password: string;
}

/** Git over HTTP for those who know a password. */
export interface PrivateGit {
  /** The URL of a repository, without the password. */
  url(repository: string): string;
  /** From now on only this one may read. */
  admit(credential: GitCredential): void;
  stop(): Promise<void>;
}

/** Serves the repositories of a folder by `git http-backend`, on loopback. */
export async function startPrivateGit(folder: string, first: GitCredential): Promise<PrivateGit> {
  let expected = headerOf(first);
  const server = createServer((request, response) => {
    if (request.headers.authorization !== expected) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    void serve(folder, request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: (repository) => `http://127.0.0.1:${port}/${repository}`,
    admit(credential) {
      expected = headerOf(credential);
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const headerOf = ({ username, password }: GitCredential) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** A request as CGI (RFC 3875), which is what Git's program speaks. */
async function serve(folder: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const backend = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REQUEST_METHOD: request.method,
      PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const isPacked = request.headers['content-encoding'] === 'gzip';
  (isPacked ? request.pipe(createGunzip()) : request).pipe(backend.stdin);
  const chunks: Buffer[] = [];
  backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(backend, 'close');
  const output = Buffer.concat(chunks);
  const end = output.indexOf('\r\n\r\n');
  const headers = Object.fromEntries(
    output
      .subarray(0, Math.max(end, 0))
      .toString()
      .split('\r\n')
      .map((line) => line.split(': ') as [string, string]),
  );
  const { Status: status = end < 0 ? '500' : '200', ...others } = headers;
  response.writeHead(Number.parseInt(status, 10), others).end(output.subarray(end + 4));
}
