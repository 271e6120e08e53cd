import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { until } from '../base/testing.ts';
import { RedisLink } from './index.ts';

const clean: (() => unknown)[] = [];

afterEach(() => {
  for (const step of clean.splice(0).reverse()) {
    step();
  }
});

/** A server that answers each command by its name. */
async function serverThat(
  answers: (command: string) => string,
): Promise<{ server: Server; connections: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      for (const [, command = ''] of bytes.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        socket.write(`${answers(command.toUpperCase())}\r\n`);
      }
    });
    clean.push(() => socket.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  clean.push(() => server.close());
  return { server, connections: () => connections };
}

async function linkTo(answers: (command: string) => string) {
  const { server, connections } = await serverThat(answers);
  const lines: string[] = [];
  const say = (fields: object, text: string) => void lines.push(`${text} ${JSON.stringify(fields)}`);
  const link = new RedisLink({
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    credentials: () => ({ username: '', password: '' }),
    tls: () => undefined,
    backoff: { initialMs: 5, maxMs: 20 },
    logger: { debug: say, info: say, warn: say, error: say },
  });
  const stop = new AbortController();
  void link.run(stop.signal);
  clean.push(() => stop.abort());
  await until(() => expect(link.problem).toBeUndefined());
  const set = () =>
    link.set('k', Buffer.from('v'), 1_000).then(
      () => 'written',
      ({ message }: Error) => message,
    );
  return { link, set, lines, connections };
}

test.each([
  "READONLY You can't write against a read only replica.",
  'LOADING Redis is loading the dataset in memory',
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
])(
  'an answer of a server that is not the master ends the connection, and the next one finds that: %s',
  async (answer) => {
    let isMaster = true;
    const { link, set, connections, lines } = await linkTo((command) =>
      command === 'SET' && !isMaster ? `-${answer}` : '+OK',
    );
    expect(await set()).toBe('written');
    isMaster = false;
    expect(await set()).toBe(answer);
    expect(link.problem).toBe(answer);
    await until(() => expect(connections()).toBe(2));
    await until(() => expect(link.isConnected).toBe(true));
    expect(link.problem, 'nothing was written since').toBe(answer);
    expect(await set()).toBe(answer);
    await until(() => expect(connections()).toBe(3));
    expect(lines.filter((line) => line.includes(answer.slice(0, 8)))).toHaveLength(1);
    isMaster = true;
    await until(async () => expect(await set()).toBe('written'));
    expect(link.problem).toBeUndefined();
  },
);

test('a read that a server without its master refuses ends the connection, too', async () => {
  const { link, connections } = await linkTo((command) =>
    command === 'GET' ? '-MASTERDOWN Link with MASTER is down' : '+OK',
  );
  await expect(link.get('k')).rejects.toThrow('MASTERDOWN');
  await until(() => expect(connections()).toBe(2));
});

test('what Redis refuses to write is said once and shown, whatever else it takes, until it takes that', async () => {
  let isFull = true;
  const oom = "OOM command not allowed when used memory > 'maxmemory'.";
  const { link, set, connections, lines } = await linkTo((command) => {
    if (command === 'DEL') {
      return ':1';
    }
    return command === 'SET' && isFull ? `-${oom}` : '+OK';
  });
  for (let turn = 0; turn < 3; turn++) {
    expect(await set()).toBe(oom);
    await link.delete('k');
  }
  expect(link.problem).toBe(oom);
  expect(connections()).toBe(1);
  expect(lines.filter((line) => line.includes('OOM'))).toHaveLength(1);
  isFull = false;
  expect(await set()).toBe('written');
  expect(link.problem).toBeUndefined();
});
