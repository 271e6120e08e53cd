import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger, type HttpEndpoint, serveProfiles } from './index.ts';

let endpoint: HttpEndpoint;
const ask = (path: string) => fetch(`http://127.0.0.1:${endpoint.port}${path}`);

beforeAll(async () => {
  endpoint = await serveProfiles({ port: 0, logger: createLogger({ level: 'fatal' }) });
});
afterAll(() => endpoint.close());

test('the help page names what there is', async () => {
  const page = await (await ask('/debug/pprof/')).text();
  for (const path of ['profile', 'allocs', 'heap', 'report']) {
    expect(page).toContain(`/debug/pprof/${path}`);
  }
  expect((await ask('/debug/pprof/nothing')).status).toBe(404);
});

test('a CPU profile, one at a time', async () => {
  const [first, second] = await Promise.all([
    ask('/debug/pprof/profile?seconds=0.2'),
    ask('/debug/pprof/allocs?seconds=0.2'),
  ]);
  expect([first.status, second.status].sort()).toEqual([200, 503]);
  const profile = (await (await ask('/debug/pprof/profile?seconds=0.05')).json()) as { nodes?: unknown[] };
  expect(profile.nodes?.length).toBeGreaterThan(0);
});

test('a heap snapshot and a report without the environment', async () => {
  const heap = (await (await ask('/debug/pprof/heap')).json()) as { snapshot?: unknown };
  expect(heap.snapshot).toBeDefined();
  const report = (await (await ask('/debug/pprof/report')).json()) as Record<string, unknown>;
  expect(report.javascriptHeap).toBeDefined();
  expect(report.environmentVariables).toBeUndefined();
  expect(JSON.stringify(report.header)).not.toContain('commandLine');
});

test.each([
  [403, { host: 'evil.example' }],
  [403, { host: 'evil.example:80', 'sec-fetch-site': 'same-origin' }],
  [403, { host: '127.0.0.1.evil.example' }],
  [403, { host: 'localhost', 'sec-fetch-site': 'cross-site' }],
  [200, { host: 'localhost:6060' }],
  [200, { host: '[::1]:6060', 'sec-fetch-site': 'none' }],
])('it answers %d to a request with %j', async (status, headers) => {
  const answered = await new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port: endpoint.port, path: '/debug/pprof/', headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on('error', reject).end();
  });
  expect(answered).toBe(status);
});
