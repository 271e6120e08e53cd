import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { Counter } from 'prom-client';
import { expect, test } from 'vitest';
import { createLogger, createRegistry, serveHealth, serveMetrics } from './index.ts';

const host = '127.0.0.1';
const logger = createLogger({ level: 'fatal' });

test('health answers 200 or 503 with the reason', async () => {
  let ok = false;
  const server = await serveHealth({ port: 0, host, logger, healthz: () => ({ ok, text: ok ? '' : 'not connected' }) });
  const get = (path: string) => fetch(`http://${host}:${server.port}${path}`);
  const down = await get('/healthz');
  expect([down.status, await down.text()]).toEqual([503, 'not connected\n']);
  ok = true;
  expect((await get('/healthz')).status).toBe(200);
  expect((await get('/nothing')).status).toBe(404);
  await server.close();
});

test('requests that are no URLs are answered, not fatal', async () => {
  const server = await serveHealth({ port: 0, host, logger, healthz: () => ({ ok: true }) });
  for (const [target, status] of [
    ['//', 404],
    ['http://[', 404],
    ['/healthz?x=//', 200],
  ] as const) {
    const socket = connect(server.port, host);
    socket.end(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(await text(socket)).toContain(`HTTP/1.1 ${status} `);
  }
  await server.close();
});

test('metrics are served in the Prometheus format', async () => {
  const registry = createRegistry();
  new Counter({ name: 'things', help: 'things', registers: [registry] }).inc(2);
  const server = await serveMetrics({ port: 0, host, logger, registry });
  const text = await (await fetch(`http://${host}:${server.port}/metrics`)).text();
  expect(text).toContain('things 2');
  expect(text).toContain('argocd_agent_build_info{');
  await server.close();
});

test('a port in use is a clear error', async () => {
  const first = await serveHealth({ port: 0, host, logger, healthz: () => ({ ok: true }) });
  await expect(serveHealth({ port: first.port, host, logger, healthz: () => ({ ok: true }) })).rejects.toThrow(
    `cannot serve health checks on port ${first.port}`,
  );
  await first.close();
});

test.each([undefined, '', '0.0.0.0', '::', '[::]'])(
  'with the host %j both IPv4 and IPv6 are served',
  { tags: 'ipv6' },
  async (given) => {
    const server = await serveHealth({
      port: 0,
      logger,
      ...(given === undefined ? {} : { host: given }),
      healthz: () => ({ ok: true }),
    });
    for (const address of ['127.0.0.1', '[::1]']) {
      expect((await fetch(`http://${address}:${server.port}/healthz`)).status).toBe(200);
    }
    await server.close();
  },
);

test('an address in brackets is listened on alone', { tags: 'ipv6' }, async () => {
  const server = await serveHealth({ port: 0, host: '[::1]', logger, healthz: () => ({ ok: true }) });
  expect((await fetch(`http://[::1]:${server.port}/healthz`)).status).toBe(200);
  await expect(fetch(`http://127.0.0.1:${server.port}/healthz`)).rejects.toThrow();
  await server.close();
});

test('the text of metrics is made once for all who ask within a second', async () => {
  const registry = createRegistry();
  let made = 0;
  const { metrics } = registry;
  registry.metrics = () => {
    made++;
    return metrics.call(registry);
  };
  const server = await serveMetrics({ port: 0, host, logger, registry });
  const began = performance.now();
  const all = Array.from({ length: 20 }, () => fetch(`http://${host}:${server.port}/metrics`));
  await Promise.all((await Promise.all(all)).map((answer) => answer.text()));
  expect(made).toBeLessThanOrEqual(1 + (performance.now() - began) / 1_000);
  await server.close();
});

test('63 KiB of pipelined requests cost one text of metrics, and others are served meanwhile', async () => {
  const registry = createRegistry();
  let made = 0;
  const { metrics } = registry;
  registry.metrics = () => {
    made++;
    return metrics.call(registry);
  };
  const server = await serveMetrics({ port: 0, host, logger, registry });
  const flooding = connect(server.port, host).pause();
  const closed = new Promise((resolve) => flooding.once('close', resolve));
  flooding.on('error', () => undefined);
  flooding.write('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_900));
  flooding.resume();
  await closed;
  expect((await fetch(`http://${host}:${server.port}/metrics`)).status).toBe(200);
  expect(made).toBeLessThanOrEqual(2);
  await server.close();
});
