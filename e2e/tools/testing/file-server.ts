import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** Answers a request; `content` is the file that is asked for, empty where there is none. */
export type FileAnswer = (request: IncomingMessage, response: ServerResponse, content: Buffer) => void;

/** A server on loopback that gives files, right or otherwise. */
export class FileServer {
  readonly #server: Server;
  readonly #files: ReadonlyMap<string, Buffer>;
  readonly #answers: FileAnswer[] = [];
  /** What was asked: the path, and the range where there was one. */
  readonly asked: string[] = [];

  private constructor(files: Readonly<Record<string, string | Buffer>>) {
    this.#files = new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)]));
    this.#server = createServer((request, response) => {
      const { url = '/', headers } = request;
      this.asked.push(headers.range === undefined ? url : `${url} ${headers.range}`);
      const content = this.#files.get(url);
      const answer = this.#answers.shift() ?? (content ? right : missing);
      answer(request, response, content ?? Buffer.alloc(0));
    });
    // As a proxy, it wants a login.
    this.#server.on('connect', ({ url }, socket) => {
      this.asked.push(`CONNECT ${url}`);
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    });
  }

  /**
   * @param files by path, such as `/a/b`
   * @param port default: a free one
   */
  static async start(files: Readonly<Record<string, string | Buffer>>, port = 0): Promise<FileServer> {
    const server = new FileServer(files);
    server.#server.listen(port, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The next requests get these answers, those after them the right file. */
  next(...answers: readonly FileAnswer[]): void {
    this.#answers.push(...answers);
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

/** The file, or the part that was asked for. */
export const right: FileAnswer = (request, response, content) => {
  response.end(begin(request, response, content));
};

/** The file or the part, a byte after the other with a pause between them. */
export const slowly =
  (pauseMs: number): FileAnswer =>
  async (request, response, content) => {
    for (const byte of begin(request, response, content)) {
      response.write(Buffer.from([byte]));
      await setTimeout(pauseMs);
    }
    response.end();
  };

/**
 * The first bytes of the file or the part; then the connection ends.
 * @param arrived resolves when the client has as many bytes of the file
 */
export const cut =
  (bytes: number, arrived?: (size: number) => Promise<unknown>): FileAnswer =>
  async (request, response, content) => {
    stall(bytes)(request, response, content);
    await arrived?.(startOf(request) + bytes);
    response.destroy();
  };

/** The first bytes of the file or the part; then nothing. */
export const stall =
  (bytes: number): FileAnswer =>
  (request, response, content) => {
    const part = begin(request, response, content);
    response.flushHeaders();
    response.write(part.subarray(0, bytes));
  };

/** No answer. */
export const noAnswer: FileAnswer = () => undefined;

/** There is no such file. */
export const missing: FileAnswer = (_request, response) => response.writeHead(404).end('Not Found');

/** Only a status. */
export const status =
  (code: number, headers: Record<string, string> = {}): FileAnswer =>
  (_request, response) =>
    response.writeHead(code, headers).end();

/** Another file, as if it were the right one. */
export const instead =
  (content: string, headers: Record<string, string> = {}): FileAnswer =>
  (_request, response) =>
    response.writeHead(200, { 'content-length': Buffer.byteLength(content), ...headers }).end(content);

/** The page of a proxy that wants a login. */
export const webPage = instead('<html>Log in</html>', { 'content-type': 'text/html; charset=utf-8' });

/** Sends the head of the answer, and returns what belongs after it. */
function begin(request: IncomingMessage, response: ServerResponse, content: Buffer): Buffer {
  const { range } = request.headers;
  const start = startOf(request);
  if (range === undefined) {
    response.writeHead(200, { 'content-length': content.length });
  } else if (start >= content.length) {
    response.writeHead(416, { 'content-range': `bytes */${content.length}` });
  } else {
    const end = range.endsWith('-') ? content.length : Number(range.split('-')[1]) + 1;
    const contentRange = `bytes ${start}-${end - 1}/${content.length}`;
    response.writeHead(206, { 'content-range': contentRange, 'content-length': end - start });
    return content.subarray(start, end);
  }
  return content.subarray(start);
}

const startOf = ({ headers }: IncomingMessage) => Number(/^bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0);
