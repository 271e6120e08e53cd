import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { fleetPorts, portsInTheWay, takenPorts } from './ports.ts';

async function listen(host: string): Promise<{ port: number; close(): void }> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

test.each(['0.0.0.0', '::'])(
  'a port that a program has on %s is taken, and the program is named',
  { tags: 'linux' },
  async (host) => {
    const program = `const s = require('node:net').createServer().listen(0, '${host}', () => console.log(s.address().port))`;
    const child = spawn(process.execPath, ['--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const port = Number(line.toString());
      const taken = await takenPorts([port]);
      expect(taken).toEqual([{ port, owner: expect.stringContaining(`(process ${child.pid})`) }]);
      expect(portsInTheWay(taken)).toContain(`  ${port}: `);
    } finally {
      child.kill('SIGKILL');
    }
  },
);

test('a port at one loopback address, and a free one, are in nobody’s way', { tags: 'linux' }, async () => {
  const one = await listen('127.0.0.1');
  const other = await listen('0.0.0.0');
  other.close();
  try {
    expect(await takenPorts([one.port, other.port])).toEqual([]);
  } finally {
    one.close();
  }
});

test('a process that cannot be named is one of another user', () => {
  expect(portsInTheWay([{ port: 8083, owner: undefined }])).toContain('  8083: a process of another user');
  expect(new Set(fleetPorts).size).toBe(fleetPorts.length);
});
