import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort } from '../e2e/testbed/index.ts';

/** Records the package of every module that is loaded in a file: a write to a full standard error would fail. */
const reporter = `
  import { registerHooks } from 'node:module';
  import { appendFileSync } from 'node:fs';
  registerHooks({
    load(url, context, next) {
      const name = /\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)\\//.exec(url)?.[1];
      if (name !== undefined) {
        appendFileSync(process.env.LOADED_PACKAGES, name + '\\n');
      }
      return next(url, context);
    },
  });
`;

let folder: string;
let kubeconfig: string;
/** Stands for an API server: whoever connects to it is at work, with everything loaded. */
let server: Server;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'loaded-'));
  kubeconfig = join(folder, 'kubeconfig');
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cluster = { server: `https://127.0.0.1:${(server.address() as AddressInfo).port}` };
  await writeFile(
    kubeconfig,
    JSON.stringify({
      'current-context': 'a',
      clusters: [{ name: 'a', cluster }],
      users: [{ name: 'a', user: { token: 'token' } }],
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    }),
  );
});
afterEach(async () => {
  server.close();
  await rm(folder, { recursive: true, force: true });
});

/** The packages that a program loads from its start until it connects to its API server. */
async function packagesOf(program: string, args: readonly string[]): Promise<Set<string>> {
  const packages = join(folder, 'packages');
  const hook = `data:text/javascript,${encodeURIComponent(reporter)}`;
  const child = spawn(process.execPath, ['--import', hook, join(import.meta.dirname, program), ...args], {
    env: { PATH: process.env.PATH, HOME: '/nonexistent', LOADED_PACKAGES: packages },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const closed = once(child, 'close').then(() => 'closed');
  const connected = once(server, 'connection').then(([socket]) => {
    socket.destroy();
    return 'connected';
  });
  expect(await Promise.race([connected, closed]), output).toBe('connected');
  child.kill('SIGKILL');
  await closed;
  return new Set((await readFile(packages, 'utf8')).split('\n'));
}

// What is optional at work: kubeconfigs with plug-ins, a sink for events, and tests.
const neverInPods = ['@grpc/grpc-js', '@kubernetes/client-node', 'cloudevents'];

test.each([
  ['argocd-agent.ts', 'principal', ['--auth=mtls:subject:CN=([^,]+)']],
  ['argocd-agent.ts', 'agent', ['--server-address=127.0.0.1', '--creds=mtls:any', '--agent-mode=managed']],
  ['gitops-controller.ts', 'controller', ['--agent-image=x', '--health-probe-bind-address=0']],
])('%s %s loads neither grpc-js nor client-node nor cloudevents', async (program, command, given) => {
  const [health, metrics] = [await freePort(), await freePort()];
  const ports =
    command === 'controller'
      ? [`--metrics-bind-address=127.0.0.1:${metrics}`]
      : ['--namespace=argocd', `--healthz-port=${health}`, `--metrics-port=${metrics}`];
  const loaded = await packagesOf(program, [command, `--kubeconfig=${kubeconfig}`, ...ports, ...given]);
  expect(loaded).toContain('undici');
  for (const name of neverInPods) {
    expect(loaded).not.toContain(name);
  }
});
