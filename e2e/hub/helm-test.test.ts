import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';

// The program that `helm test` runs in the hub's chart, against a controller that answers as ours does.

const program = new URL('../../charts/argocd-agent-addon/files/helm-test.mjs', import.meta.url).pathname;
const condition = (type: string, status: string) =>
  `gitops_controller_condition{namespace="argocd",name="fleet",type="${type}",status="${status}"} 1`;

let server: Server;
let metrics: string | undefined;

beforeAll(async () => {
  server = createServer(({ url }, response) => {
    const isMetrics = url === '/metrics';
    response.writeHead(isMetrics && metrics === undefined ? 503 : 200).end(isMetrics ? metrics : 'ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => server?.close());

async function run(answer: string | undefined): Promise<{ code: number | null; lines: string[] }> {
  metrics = answer;
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { CONTROLLER_URL: `${base}/readyz`, METRICS_URL: `${base}/metrics`, TIMEOUT_SECONDS: '5' };
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const output = await text(child.stdout);
  return { code: await exited, lines: output.trim().split('\n') };
}

const ready = 'ok: the controller is ready';

test("the hub's application controller that reconciles the fleet is reported, and fails nothing", async () => {
  const answer = [
    '# TYPE gitops_controller_condition gauge',
    condition('Ready', 'True'),
    condition('HubArgoCDCompatible', 'False'),
    condition('ClustersReady', 'Unknown'),
  ].join('\n');
  expect(await run(answer)).toEqual({
    code: 0,
    lines: [
      ready,
      'warning: HubArgoCDCompatible is False: kubectl -n argocd describe gitopsclusters fleet',
      'warning: ClustersReady is Unknown: kubectl -n argocd describe gitopsclusters fleet',
    ],
  });
});

test('there is nothing to report', async () => {
  expect(await run(condition('Ready', 'True'))).toEqual({ code: 0, lines: [ready] });
});

test('metrics that cannot be read are reported', async () => {
  const { code, lines } = await run(undefined);
  expect([code, lines[1]]).toEqual([0, expect.stringMatching(/^warning: the conditions .* cannot be read: .*503/)]);
});
