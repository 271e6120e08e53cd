import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { aborted } from '../lib/base/index.ts';
import { until } from '../lib/base/testing.ts';
import type { RunningProgram } from '../lib/bridge/index.ts';
import { createRegistry, type Loggers, parseFlags } from '../lib/ops/index.ts';
import { principalFlags } from './flags.ts';
import { openInputs } from './inputs.ts';
import { principalSettings } from './settings.ts';

const nothing = () => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const loggers = { root: logger, component: () => logger } as unknown as Loggers;

/** A client of an API server that lists nothing: who waits for its caches waits on. */
const clientWithoutLists = {
  get: async () => ({
    metadata: { name: 'identity', uid: 'one' },
    data: { 'principal-uid': 'hub-1', 'config-map-uid': 'one' },
  }),
  listPage: async (_type: unknown, { signal }: { signal: AbortSignal }) => {
    await aborted(signal);
    throw signal.reason;
  },
} as unknown as RunningProgram['client'];

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Whether somebody listens on a port. */
function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const tell = (isThere: boolean) => {
      socket.destroy();
      resolve(isThere);
    };
    socket.on('connect', () => tell(true));
    socket.on('error', () => tell(false));
  });
}

test('a principal whose start is ended listens no more for the others when it says so: it may begin anew at once', async () => {
  const port = await freePort();
  const args = [
    '--namespace=argocd',
    '--auth=mtls:subject:CN=([^,]+)',
    '--enable-replicas',
    `--replica-listen=127.0.0.1:${port}`,
    `--replica-address=127.0.0.1:${port}`,
  ];
  const { values } = parseFlags(principalFlags, { args, env: {} });
  const settings = principalSettings(values);
  for (let turn = 0; turn < 3; turn++) {
    const stop = new AbortController();
    const program = {
      client: clientWithoutLists,
      registry: createRegistry(),
      signal: stop.signal,
      failed: nothing,
      health: nothing,
    } as unknown as RunningProgram;
    const opened = openInputs(settings, program, loggers, {});
    await until(() => isListening(port));
    setTimeout(() => stop.abort(new Error('the phase has ended')));
    await expect(opened).rejects.toThrow('the phase has ended');
  }
});
