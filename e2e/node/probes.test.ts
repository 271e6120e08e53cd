import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { tryProbe } from './probes.ts';

/** A server in a process of its own, which answers at once, or never. */
async function targetOf(answer: string) {
  const program = `
    const server = require('node:http').createServer((request, response) => ${answer});
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));
  `;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return {
    container: { name: 'main', image: 'busybox' },
    locate: () => ({ host: '127.0.0.1', port: Number(port) }),
    inside: ([command = '', ...args]: string[]) => ({ command, args }),
  };
}

/** Nothing else happens in this process for so long. */
const standStill = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test.each([
  ['httpGet', { httpGet: { port: 80 } }],
  ['tcpSocket', { tcpSocket: { port: 80 } }],
  ['exec', { exec: { command: ['true'] } }],
])(
  '%s: what answers at once passes, though the node itself could not run for longer than the timeout',
  async (_, probe) => {
    const target = await targetOf('response.end()');
    const verdict = tryProbe({ ...probe, timeoutSeconds: 1 }, target);
    standStill(1_200);
    expect(await verdict).toBeUndefined();
  },
);

test.each([
  ['httpGet', { httpGet: { port: 80 } }, 'context deadline exceeded'],
  ['exec', { exec: { command: ['sleep', '60'] } }, 'command timed out after 1s'],
])('%s: what does not answer in time fails', async (_, probe, why) => {
  expect(await tryProbe({ ...probe, timeoutSeconds: 1 }, await targetOf('undefined'))).toContain(why);
});

test('an answer that is no success is told', async () => {
  const target = await targetOf('response.writeHead(503).end()');
  expect(await tryProbe({ httpGet: { port: 80 } }, target)).toBe('HTTP probe failed with statuscode: 503');
});
