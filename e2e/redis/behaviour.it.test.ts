import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { encodeCommand } from '../../lib/live/index.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { freePort } from '../testbed/index.ts';
import { closed, RawConnection, type Sent } from './ask.ts';
import { type Redis, type RedisOptions, type RedisServer, startRedis } from './index.ts';

// What cannot be told as sent and received bytes: several clients at a time, readers that stop, TLS, the command line.

const megabyte = 1_000_000;
const clean: (() => unknown)[] = [];

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

describe('the embedded Redis', () => behaves('embedded'));
describe('the installed Redis', { tags: 'redis-server' }, () => behaves('installed'));

function behaves(server: RedisServer): void {
  const tested = test.extend<{ start: (options?: RedisOptions) => Promise<Redis> }>({
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one needs.
    start: async ({}, use) => {
      await use(async (options) => {
        const redis = await startRedis({ server, ...options });
        clean.push(() => redis.stop());
        return redis;
      });
    },
  });

  tested('a subscriber that stops reading is disconnected, and nobody waits for it', async ({ start }) => {
    const { port } = await start();
    const [stopped, reading, writer] = [await open(port), await open(port), await open(port)];
    for (const subscriber of [stopped, reading]) {
      subscriber.send('SUBSCRIBE c');
      await until(() => subscriber.unread.endsWith(':1\r\n'));
      subscriber.skip();
    }
    stopped.socket.pause();
    const text = 'x'.repeat(megabyte);
    let sent = 0;
    for (let receivers = 2; receivers === 2; sent++) {
      receivers = Number(/:(\d)\r\n/.exec(await answer(writer, ['PUBLISH', 'c', text]))?.[1]);
      expect(sent, 'messages of a megabyte').toBeLessThan(100);
    }
    // 32 MiB, and what the kernel takes.
    expect(sent).toBeGreaterThan(32);
    await until(() => reading.unread.length > sent * megabyte);
    expect(reading.unread.match(/message/g)).toHaveLength(sent);
    stopped.socket.resume();
    await until(() => stopped.isClosed);
  });

  tested('a client that does not read its replies loses none, and nobody waits for it', async ({ start }) => {
    const { port } = await start();
    const [slow, other] = [await open(port), await open(port)];
    await answer(other, ['SET', 'large', 'x'.repeat(megabyte)]);
    slow.socket.pause();
    for (let n = 0; n < 60; n++) {
      slow.send('GET large');
    }
    slow.send('SET last 1');
    await until(async () => (await answer(other, 'GET last')) === '$1\r\n1\r\n');
    slow.socket.resume();
    await until(() => slow.unread.endsWith('+OK\r\n'));
    expect(slow.unread).toHaveLength(60 * `$${megabyte}\r\n\r\n`.length + 60 * megabyte + '+OK\r\n'.length);
  });

  // In versions with a mend of CVE-2025-21605.
  tested('a client that has not authenticated and does not read is disconnected', async ({ start }) => {
    const { port } = await start({ args: ['--requirepass', 'secret'] });
    const stranger = await open(port);
    stranger.socket.pause();
    const batch = Buffer.from('PING\r\n'.repeat(1_000));
    let sent = 0;
    await until(() => {
      // What the kernel does not take waits here.
      if (!stranger.socket.writableNeedDrain) {
        stranger.socket.write(batch);
        sent += batch.length;
      }
      expect(sent, 'bytes').toBeLessThan(100 * megabyte);
      return stranger.isClosed;
    });
  });

  tested('a client that has ended its side gets its answers', async ({ start }) => {
    const { port } = await start();
    const client = await open(port);
    client.socket.end(encodeCommand(['PING']));
    await until(() => client.isClosed);
    expect(client.unread).toBe(`+PONG\r\n${closed}`);
  });

  tested('subscriptions end with their client', async ({ start }) => {
    const { port } = await start();
    const [gone, writer] = [await open(port), await open(port)];
    await answer(gone, 'SUBSCRIBE c', /:1\r\n$/);
    gone.close();
    await until(async () => (await answer(writer, 'PUBLISH c x')) === ':0\r\n');
  });

  tested('a search in steps finds every key that is there all the time', async ({ start }) => {
    const { port } = await start();
    const client = await open(port);
    const lasting = Array.from({ length: 1_000 }, (_, n) => `app|${n}`);
    for (const key of lasting) {
      client.send(['SET', key, 'x']);
    }
    await until(() => client.unread === '+OK\r\n'.repeat(1_000));
    client.skip();
    const found = new Set<string>();
    let steps = 0;
    for (let cursor = '0'; steps === 0 || cursor !== '0'; steps++) {
      await answer(client, ['SET', `other|${steps}`, 'x']);
      await answer(client, ['DEL', `other|${steps - 3}`]);
      const page = await answer(client, ['SCAN', cursor, 'MATCH', 'app|*', 'COUNT', '100'], isWholePage);
      cursor = /^\*2\r\n\$\d+\r\n(\d+)\r\n/.exec(page)?.[1] ?? '';
      for (const [, key = ''] of page.matchAll(/(app\|\d+)\r\n/g)) {
        found.add(key);
      }
    }
    expect(found).toEqual(new Set(lasting));
    expect(steps).toBeGreaterThan(3);
  });

  tested('transactions of many clients do not mix', async ({ start }) => {
    const { port } = await start();
    const count = async () => {
      const client = await open(port);
      for (let done = 0; done < 20; ) {
        await answer(client, 'WATCH n');
        const value = Number(/\r\n(\d+)\r\n/.exec(await answer(client, 'GET n'))?.[1] ?? 0);
        await answer(client, 'MULTI');
        await answer(client, `SET n ${value + 1}`);
        done += (await answer(client, 'EXEC')) === '*-1\r\n' ? 0 : 1;
      }
    };
    await Promise.all(Array.from({ length: 10 }, count));
    expect(await answer(await open(port), 'GET n')).toBe('$3\r\n200\r\n');
  });

  tested('a message comes after the change that it is about', async ({ start }) => {
    const { port } = await start();
    const [reader, writer] = [await open(port), await open(port)];
    await answer(reader, 'SUBSCRIBE c', /:1\r\n$/);
    const looking = await open(port);
    for (let n = 1; n <= 200; n++) {
      writer.send(`SET k ${n}`);
      writer.send('PUBLISH c x');
      await until(() => reader.unread.includes('message'));
      reader.skip();
      expect(await answer(looking, 'GET k')).toContain(`\r\n${n}\r\n`);
    }
  });

  tested('TLS, with and without certificates of clients', async ({ start }) => {
    const { files, authority, client } = await certificates();
    const ca = authority.certificate;
    const own = { cert: client.certificate, key: client.key };
    const tlsArgs = ['--tls-cert-file', files.cert, '--tls-key-file', files.key, '--tls-ca-cert-file', files.ca];
    for (const [clients, needsOwn] of [
      ['yes', true],
      ['optional', false],
      ['no', false],
    ] as const) {
      const [port, plainPort] = [await freePort(), await freePort()];
      const ports = ['--port', `${plainPort}`, '--tls-port', `${port}`];
      const redis = await start({ port, args: [...ports, '--tls-auth-clients', clients, ...tlsArgs] });
      expect(await pingOverTls({ port, ca, ...own }), clients).toBe('+PONG\r\n');
      expect(await pingOverTls({ port, ca }), clients).toBe(needsOwn ? closed : '+PONG\r\n');
      expect(await answer(await open(plainPort), 'PING')).toBe('+PONG\r\n');
      const plain = await open(port);
      plain.send('PING');
      await until(() => plain.isClosed);
      await redis.stop();
    }
  });

  tested('certificates of clients are asked for unless the command line says otherwise', async ({ start }) => {
    const { files, authority } = await certificates();
    const port = await freePort();
    const args = ['--tls-cert-file', files.cert, '--tls-key-file', files.key, '--tls-ca-cert-file', files.ca];
    await start({ port, args: ['--port', '0', '--tls-port', `${port}`, ...args] });
    expect(await pingOverTls({ port, ca: authority.certificate })).toBe(closed);
  });

  tested.for([
    ['an option that does not exist', ['--nosuch', 'x'], /nosuch/],
    ['a value that is none', ['--port', 'x'], /port/],
    ['no value', ['--requirepass'], /requirepass/],
    ['TLS without a certificate', ['--tls-port', '1'], /tls|certificate/i],
  ] as const)('%s on the command line is an error', async ([, args, message], { start }) => {
    await expect(start({ args })).rejects.toThrow(message);
  });

  tested('an address that the machine does not have is an error, unless it may be missing', async ({ start }) => {
    // Of a network for documentation.
    const { port } = await start({ args: ['--bind', '127.0.0.1', '-192.0.2.1'] });
    expect(await answer(await open(port), 'PING')).toBe('+PONG\r\n');
    await expect(start({ args: ['--bind', '127.0.0.1', '192.0.2.1'] })).rejects.toThrow('192.0.2.1');
  });

  tested('a port that is taken is an error', async ({ start }) => {
    const { port } = await start();
    await expect(start({ port })).rejects.toThrow(/in use/);
  });

  tested('an empty password is none, and the last one counts', async ({ start }) => {
    const { port } = await start({ args: ['--requirepass', 'x', '--requirepass', ''] });
    expect(await answer(await open(port), 'GET a')).toBe('$-1\r\n');
  });

  tested('it ends in good order when asked to', async ({ start }) => {
    const redis = await start();
    const client = await open(redis.port);
    await answer(client, 'PING');
    expect(await redis.stop('SIGTERM')).toBe(0);
    await until(() => client.isClosed);
  });
}

test('a Redis ends with the process that started it, however that ends', async () => {
  const program = `
    import { startRedis } from ${JSON.stringify(join(import.meta.dirname, 'index.ts'))};
    console.log((await startRedis()).port);
  `;
  // Its files stay.
  const folder = mkdtempSync(join(tmpdir(), 'redis-killed-'));
  clean.push(() => rmSync(folder, { recursive: true }));
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const client = await open(Number((await once(child.stdout, 'data'))[0]));
  expect(await answer(client, 'PING')).toBe('+PONG\r\n');
  child.kill('SIGKILL');
  await until(() => client.isClosed);
});

test.each([
  [['--maxmemory', '1mb'], /--maxmemory: the embedded Redis does not have this option/],
  [['--appendonly', 'yes'], /--appendonly: the embedded Redis has only "no", not "yes"/],
  [['--save', '60', '1'], /--save: it takes one value, not 2/],
  [['--save', '60 1'], /--save: the embedded Redis has only "", not "60 1"/],
  [['--user', 'eve', 'on', 'nopass', '~*', '+@all'], /--user/],
])('the embedded Redis does not start with what it cannot do: %j', async (args, message) => {
  await expect(startRedis({ server: 'embedded', args })).rejects.toThrow(message);
});

test('the embedded Redis refuses what it does not have of tracking', async () => {
  const redis = await startRedis({ server: 'embedded' });
  clean.push(() => redis.stop());
  const client = await open(redis.port);
  expect(await answer(client, 'CLIENT TRACKING ON BCAST')).toBe(
    '-ERR the embedded Redis has CLIENT TRACKING without BCAST only\r\n',
  );
});

test('the embedded Redis outlives more connections than it may have files', async () => {
  const redis = await startRedis({ server: 'embedded', files: 30 });
  clean.push(() => redis.stop());
  const client = await open(redis.port);
  const many = await Promise.all(Array.from({ length: 40 }, () => open(redis.port)));
  expect(await answer(client, 'PING')).toBe('+PONG\r\n');
  for (const one of many) {
    one.close();
  }
  expect(await answer(await open(redis.port), 'PING')).toBe('+PONG\r\n');
});

async function open(port: number): Promise<RawConnection> {
  const connection = await RawConnection.open(port);
  clean.push(() => connection.close());
  return connection;
}

/** Waits for the answer to a command: unless told otherwise, one of one or two lines. */
async function answer(
  client: RawConnection,
  sent: Sent,
  isWhole: RegExp | ((text: string) => boolean) = /^([-+:][^\r]*|\*-1|\$-1|[$*]\d+\r\n[^\r]*)\r\n$/,
): Promise<string> {
  client.send(sent);
  const text = () => client.unread;
  await until(() => (isWhole instanceof RegExp ? isWhole.test(text()) : isWhole(text())), { details: text });
  const taken = text();
  client.skip();
  return taken;
}

/** Whether a page of a search has all the keys that it announces. */
function isWholePage(text: string): boolean {
  const count = Number(/^\*2\r\n\$\d+\r\n\d+\r\n\*(\d+)\r\n/.exec(text)?.[1] ?? Number.NaN);
  return text.split('\r\n').length === 5 + 2 * count;
}

async function certificates() {
  const authority = await createAuthority({ commonName: 'redis-ca' });
  const issue = (commonName: string, usage: 'server' | 'client') =>
    issueCertificate({ authority, commonName, hosts: ['127.0.0.1'], usages: [usage] });
  const [pair, client] = await Promise.all([issue('redis', 'server'), issue('reader', 'client')]);
  const folder = mkdtempSync(join(tmpdir(), 'redis-tls-'));
  clean.push(() => rmSync(folder, { recursive: true }));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const files = {
    cert: file('tls.crt', pair.certificate),
    key: file('tls.key', pair.key),
    ca: file('ca.crt', authority.certificate),
  };
  return { files, authority, client };
}

/** What a client gets for a PING; {@link closed} when it is not let in. */
async function pingOverTls(options: ConnectionOptions): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', ...options });
  try {
    socket.write(encodeCommand(['PING']));
    const [chunk] = await once(socket, 'data');
    return String(chunk);
  } catch {
    return closed;
  } finally {
    socket.destroy();
  }
}
