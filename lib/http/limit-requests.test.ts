import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../base/index.ts';
import { until } from '../base/testing.ts';
import { boundedServer, type HttpLimits } from './index.ts';

const host = '127.0.0.1';
const limits: HttpLimits = {
  connections: 20,
  connectionsPerNetwork: 20,
  requestsUnderWay: 2,
  headersMs: 1_000,
  requestMs: 2_000,
  idleMs: 2_000,
  stallMs: 60_000,
};
/** More than the kernel takes for a client that reads nothing. */
const large = Buffer.alloc(32 * 1024 * 1024, 'x');

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

async function serve(own: Partial<HttpLimits>, answer: (response: ServerResponse, request: IncomingMessage) => void) {
  const lines: string[] = [];
  const served: string[] = [];
  const logger = { warn: (_: object, line: string) => lines.push(line) };
  const bounded = boundedServer({ what: 'tests', limits: { ...limits, ...own }, logger }, (request, response) => {
    served.push(request.url ?? '');
    answer(response, request);
  });
  const port = await bounded.listen({ port: 0, host });
  stops.push(() => bounded.close());
  return { port, lines, served };
}

/** A client that reads nothing until told to. */
async function client(port: number): Promise<Socket & { hasEnded: boolean }> {
  const socket = Object.assign(connect(port, host), { hasEnded: false });
  stops.push(() => socket.destroy());
  socket.pause();
  socket.on('error', () => undefined);
  socket.on('close', () => {
    socket.hasEnded = true;
  });
  await once(socket, 'connect');
  return socket;
}

const request = 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n';

test.each(['', 'Expect: 100-continue\r\n', 'Expect: the-unexpected\r\n'])(
  'of 63 KiB of pipelined requests with %j no more than two are begun, and the connection ends',
  async (header) => {
    const { port, lines, served } = await serve({}, (response) => response.write('x'));
    const flooding = await client(port);
    const { stackTraceLimit } = Error;
    const one = request.replace('\r\n\r\n', `\r\n${header}\r\n`);
    flooding.write(one.repeat(Math.floor((63 * 1024) / one.length)));
    flooding.resume();
    await until('the connection to end', () => flooding.hasEnded);
    expect(served.length).toBeLessThanOrEqual(2);
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
    expect(lines).toEqual(['The server for tests ends a connection: it has too many requests without an answer']);
  },
);

test('a connection may have any number of requests one after another', async () => {
  const { port, served, lines } = await serve({}, (response) => response.end('well'));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  stops.push(() => agent.destroy());
  const ports = new Set<number | undefined>();
  for (let index = 0; index < 200; index++) {
    const [response] = await once(get({ port, host, agent }), 'response');
    ports.add(response.socket.localPort);
    await text(response);
  }
  expect([served.length, ports.size, lines]).toEqual([200, 1, []]);
});

test('a client that takes nothing of its answer is cut off', async () => {
  const { port, lines } = await serve({ stallMs: 300 }, (response) => response.end(large));
  const stuck = await client(port);
  stuck.write(request);
  await until(() => lines.length > 0);
  expect(lines).toEqual(['The server for tests ends a connection: it does not take its answer']);
});

test('a client that takes its answer slowly, but takes it, gets it', async () => {
  const { port, lines } = await serve({ stallMs: 300 }, (response) => response.end(large));
  const slow = await client(port);
  let bytes = 0;
  slow.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    // For about two seconds.
    if (bytes % (large.length / 16) < chunk.length) {
      slow.pause();
      setTimeout(() => slow.resume(), 125);
    }
  });
  slow.write(request);
  slow.resume();
  await until(() => expect(bytes).toBeGreaterThan(large.length));
  expect(lines).toEqual([]);
});

test('a stream that is silent for longer than a client may stall goes on', async () => {
  const { port, lines } = await serve({ stallMs: 1_000 }, async (response) => {
    response.write('one');
    await sleep(2_500, new AbortController().signal);
    response.end('two');
  });
  const answer = await fetch(`http://${host}:${port}`);
  expect([await answer.text(), lines]).toEqual(['onetwo', []]);
});

test('an answer that drips is cut off when its time is over', async () => {
  const { port, lines } = await serve({ answerMs: 200 }, (response) => response.write('never the end'));
  const waiting = await client(port);
  waiting.write(request);
  waiting.resume();
  await until(() => waiting.hasEnded);
  expect(lines).toEqual(['The server for tests ends a connection: its answer has not left in time']);
});

test('a connection without a request ends when its time is over, and so does one with half a request', async () => {
  const { port, served } = await serve({ stallMs: 200, headersMs: 200 }, (response) => response.end());
  const idle = await client(port);
  const half = await client(port);
  half.write('GET /x HTTP/1.1\r\nHo');
  idle.resume();
  half.resume();
  await until(() => idle.hasEnded && half.hasEnded);
  expect(served).toEqual([]);
});
