import { once } from 'node:events';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { OpenConnections } from '../../lib/credentials/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { FleetPage } from './fleet-page.ts';
import { type PageAnswer, type PageHandler, servePages } from './page-server.ts';

const logger = createLogger({ level: 'fatal' });
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

/** The page as a stranger finds it. */
function pageForStrangers(): FleetPage {
  const access = { onChange: () => undefined, identify: async () => undefined, loginUrl: 'https://argocd.example.com' };
  const rest = { lenses: {}, applications: () => undefined, way: () => undefined };
  const { signal } = new AbortController();
  return new FleetPage({ access, ...rest, path: '/fleet/', loginUrl: '', logger, signal } as never);
}

async function serve(handler: PageHandler) {
  const address = { host: '127.0.0.1', port: 0 };
  const certified = new OpenConnections({ logger }).port('fleet page');
  const server = await servePages({ address, path: '/fleet/', tls: 'plaintext', handler, certified, logger });
  stops.push(() => server.close());
  return server;
}

test('what strangers get is made once: the assets, their gzip, and the page that asks them to sign in', async () => {
  const page = pageForStrangers();
  const made = new Map<string, Set<PageAnswer | undefined>>();
  const { port } = await serve(async (request, response) => {
    const answer = await page.handle(request, response);
    made.set(request.path, (made.get(request.path) ?? new Set()).add(answer));
    return answer;
  });
  for (const path of ['', 'assets/fleet.css', 'assets/extension-fleet.js', 'clusters/edge']) {
    const get = (encoding: string) =>
      fetch(`http://127.0.0.1:${port}/fleet/${path}`, { headers: { 'accept-encoding': encoding } });
    const zipped = await get('gzip');
    expect([path, zipped.headers.get('content-encoding')]).toEqual([path, 'gzip']);
    const plain = await (await get('identity')).text();
    expect(await zipped.text()).toBe(plain);
    const answers = [...(made.get(`/${path}`) ?? [])];
    expect([path, answers.length]).toEqual([path, 1]);
    expect(gunzipSync(answers[0]?.zipped ?? '').toString()).toBe(plain);
  }
});

test('a path of a thousand steps makes no page', async () => {
  const page = pageForStrangers();
  const { port } = await serve((request, response) => page.handle(request, response));
  const answer = await fetch(`http://127.0.0.1:${port}/fleet/${'a/'.repeat(1_000)}`);
  expect([answer.status, await answer.text()]).toEqual([404, 'there is nothing here\n']);
});

test('of 63 KiB of pipelined requests no more than two are begun, and the connection ends', async () => {
  let begun = 0;
  const { port } = await serve(() => {
    begun++;
    return new Promise(() => undefined);
  });
  const flooding = connect(port, '127.0.0.1');
  flooding.on('error', () => undefined);
  flooding.write('GET /fleet/ HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_900));
  flooding.resume();
  await once(flooding, 'close');
  expect(begun).toBeLessThanOrEqual(2);
});
