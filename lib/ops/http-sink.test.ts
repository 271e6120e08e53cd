import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../base/testing.ts';
import { createLogger, HttpSink, type HttpSinkOptions } from './index.ts';

let server: Server;
let url = '';
let status = 200;
let hits = 0;
/** The status for a body; undefined: `status` for all. */
let decide: ((body: string) => number) | undefined;
const received: string[] = [];
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(async () => {
  status = 200;
  hits = 0;
  decide = undefined;
  received.length = 0;
  stop = new AbortController();
  server = createServer(async (request: IncomingMessage, response) => {
    hits++;
    const body = (await request.toArray()).join('');
    const answer = decide?.(body) ?? status;
    if (answer < 300) {
      received.push(body);
    }
    response.writeHead(answer).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sink`;
});
afterEach(async () => {
  stop.abort();
  await running;
  server.closeAllConnections();
  server.close();
});

function start(options: Partial<HttpSinkOptions<string>> = {}): HttpSink<string> {
  const sink = new HttpSink<string>({
    what: 'things',
    url,
    encode: (items) => ({ headers: { 'content-type': 'text/plain' }, body: items.join('+') }),
    backoff: { initialMs: 5, maxMs: 20 },
    logger: createLogger({ level: 'fatal' }),
    ...options,
  });
  running = sink.run(stop.signal);
  return sink;
}

test('delivers in order, again and again until the server takes it', async () => {
  status = 503;
  const sink = start();
  sink.add('a');
  sink.add('b');
  await until(() => hits > 2);
  expect([sink.pending, received]).toEqual([2, []]);
  status = 202;
  await until(() => sink.pending === 0);
  expect(received).toEqual(['a', 'b']);
  expect([sink.pending, sink.dropped]).toEqual([0, 0]);
});

test('sends several in one request', async () => {
  status = 503;
  const sink = start({ batch: 3 });
  for (const item of 'abcde') {
    sink.add(item);
  }
  await until(() => hits > 0);
  status = 200;
  await until(() => sink.pending === 0);
  expect(received.join('+')).toBe('a+b+c+d+e');
});

test('what does not fit is dropped and said, when the server is back', async () => {
  status = 503;
  const sink = start({ capacity: 3, resumed: (dropped) => `${dropped} lost` });
  for (const item of 'abcde') {
    sink.add(item);
  }
  await until(() => hits > 0);
  status = 200;
  await until(() => received.length === 4);
  expect(received).toEqual(['a', 'b', 'c', '2 lost']);
  expect(sink.dropped).toBe(2);
});

test('what the server will never take does not hold up the rest', async () => {
  status = 422;
  const sink = start();
  sink.add('bad');
  await until(() => sink.dropped === 1);
  status = 200;
  sink.add('good');
  await until(() => received.length === 1);
  expect(received).toEqual(['good']);
});

test.each([
  ['is too large', 413, (items: readonly string[]) => items.length > 3],
  ['has an item that it does not take', 422, (items: readonly string[]) => items.includes('e')],
])('of a request that %s nothing else is lost', async (_, refusal, refuses) => {
  status = 503;
  const sink = start({ batch: 8 });
  for (const item of 'abcdefghij') {
    sink.add(item);
  }
  await until(() => hits > 0);
  decide = (body) => (refuses(body.split('+')) ? refusal : 200);
  await until(() => sink.pending === 0);
  expect(received.join('+').split('+')).toEqual([...'abcdefghij'].filter((item) => !refuses([item])));
  expect(sink.dropped).toBe(refuses(['e']) ? 1 : 0);
});

test('sends what is left when the program ends', async () => {
  status = 503;
  const sink = start({ backoff: { initialMs: 60_000, maxMs: 60_000 } });
  sink.add('a');
  await until(() => hits === 1);
  status = 200;
  stop.abort();
  await running;
  expect([received, sink.pending]).toEqual([['a'], 0]);
});
