import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../../e2e/pair/index.ts';
import { type Redis, startRedis } from '../../e2e/redis/index.ts';
import { until } from '../base/testing.ts';
import type { Secret } from '../kube/index.ts';
import { createLogger } from '../ops/index.ts';
import { createAuthority, issueCertificate } from '../pki/index.ts';
import { RedisLink, type RedisLinkOptions, redisLink } from './index.ts';

const clean: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

/** A Redis that is gone after the test. */
async function redisOn(port: number, ...args: string[]): Promise<Redis> {
  const redis = await startRedis({ port, args });
  clean.push(() => redis.stop());
  return redis;
}

function startLink(port: number, options: Partial<RedisLinkOptions> = {}) {
  const lines: string[] = [];
  const link = new RedisLink({
    address: `127.0.0.1:${port}`,
    credentials: () => ({ username: '', password: '' }),
    tls: () => undefined,
    backoff: { initialMs: 10, maxMs: 50 },
    logger: createLogger({ destination: { write: (line) => void lines.push(line) } }),
    ...options,
  });
  const stop = new AbortController();
  const running = link.run(stop.signal);
  clean.push(async () => {
    stop.abort();
    await running;
  });
  return { link, lines, connected: () => until(() => link.problem === undefined) };
}

test('an absent Redis is a state; it is used as soon as it is there, again after a restart, and a value expires', async () => {
  const port = await freePort();
  const { link, lines, connected } = startLink(port);
  await until(() => lines.length > 0);
  expect(lines[0]).toMatch(/level=warning.*Redis cannot be used.*ECONNREFUSED/);
  await expect(link.get('a')).rejects.toThrow(/ECONNREFUSED/);
  let ready = 0;
  link.onReady(() => ready++);
  const redis = await redisOn(port);
  await connected();
  await link.set('a', Buffer.from([0, 255]), 60_000);
  expect(await link.get('a')).toEqual(Buffer.from([0, 255]));
  await link.delete('a');
  expect(await link.get('a')).toBeUndefined();
  await link.set('short', Buffer.from('x'), 20);
  await until(async () => (await link.get('short')) === undefined);
  await redis.stop();
  await until(() => link.problem !== undefined);
  await redisOn(port);
  await connected();
  expect(ready).toBe(2);
});

test('changes of keys that were read are reported', async () => {
  const port = await freePort();
  await redisOn(port);
  const { link, connected } = startLink(port, { notify: true });
  const writer = startLink(port);
  await Promise.all([connected(), writer.connected()]);
  expect(link.isNotified).toBe(true);
  let heard = 0;
  link.onChanged(() => heard++);
  expect(await link.get('key')).toBeUndefined();
  await writer.link.set('key', Buffer.from('1'), 60_000);
  await until(() => heard === 1);
  expect((await link.get('key'))?.toString()).toBe('1');
  await writer.link.set('key', Buffer.from('2'), 60_000);
  await until(() => heard === 2);
});

test('no message on a subscribed channel is missed, also right after another subscriber has ended, also after a break', async () => {
  const port = await freePort();
  const redis = await redisOn(port);
  const { link, connected } = startLink(port, { notify: true });
  await connected();
  const publish = async (at: number) => {
    const writer = createClient({ socket: { host: '127.0.0.1', port: at, reconnectStrategy: false } });
    await writer.connect();
    await writer.publish('channel', 'news');
    writer.destroy();
  };
  let heard = 0;
  const follow = () => link.subscribe('channel', () => heard++);
  let subscription = follow();
  for (let round = 1; round <= 10; round++) {
    await subscription.followed;
    await publish(port);
    await until(() => heard === round);
    subscription.end();
    subscription = follow();
  }
  await redis.stop();
  await until(() => link.problem !== undefined);
  subscription.end();
  subscription = follow();
  await subscription.followed;
  await redisOn(port);
  await until(() => heard === 11);
  await publish(port);
  await until(() => heard === 12);
});

test('the sizes of values are read by the prefix of their keys', async () => {
  const port = await freePort();
  await redisOn(port);
  const { link, connected } = startLink(port);
  await connected();
  for (let n = 1; n <= 2_500; n++) {
    await link.set(`a[1]*|${n}`, Buffer.alloc(n), 60_000);
  }
  await link.set('a1x|1', Buffer.alloc(1), 60_000);
  const sizes = new Map<string, number>();
  for await (const [key, bytes] of link.sizes('a[1]*|')) {
    sizes.set(key, bytes);
  }
  expect(sizes.size).toBe(2_500);
  expect(sizes.get('a[1]*|2500')).toBe(2_500);
});

test('a wrong password is named; a right one counts at the next attempt', async () => {
  const port = await freePort();
  await redisOn(port, '--requirepass', 'right');
  let password = 'wrong';
  const { link, lines, connected } = startLink(port, { credentials: () => ({ username: '', password }), notify: true });
  await until(() => lines.length > 0);
  expect(link.problem).toMatch(/WRONGPASS/);
  expect(lines.join('')).not.toContain('wrong"');
  password = 'right';
  await connected();
  await link.set('a', Buffer.from('x'), 1_000);
  expect(link.isNotified).toBe(true);
});

test("the password of Argo CD's Redis is used as soon as its Secret is there, unless another one is given", async () => {
  const port = await freePort();
  await redisOn(port, '--requirepass', 'later');
  const stored = new Map<string, Secret>();
  const secrets = { get: ({ name }: { name: string }) => stored.get(name), subscribe: () => () => undefined };
  const stop = new AbortController();
  const linkWith = (password: string, notify = false) => {
    const settings = {
      address: `127.0.0.1:${port}`,
      credentials: () => ({ username: '', password }),
      tls: 'off' as const,
    };
    const logger = createLogger({ level: 'fatal' });
    const link = redisLink(settings, { secrets, namespace: 'argocd', notify, logger, signal: stop.signal });
    const running = link.run(stop.signal);
    clean.push(() => running);
    return link;
  };
  const [link, notified, other] = [linkWith(''), linkWith('', true), linkWith('wrong')];
  clean.push(() => stop.abort());
  await until(() => [link, notified].every(({ problem }) => /NOAUTH/.test(problem ?? '')));
  const auth = Buffer.from('later').toString('base64');
  stored.set('argocd-redis', { metadata: { namespace: 'argocd', name: 'argocd-redis' }, data: { auth } });
  await until(() => link.problem === undefined && notified.problem === undefined);
  expect(notified.isNotified).toBe(true);
  expect(other.problem).toMatch(/WRONGPASS/);
});

test('TLS: the CA is checked, and one that comes later is taken', async () => {
  const port = await freePort();
  const [authority, stranger] = await Promise.all([
    createAuthority({ commonName: 'redis-ca' }),
    createAuthority({ commonName: 'other-ca' }),
  ]);
  const pair = await issueCertificate({ authority, commonName: 'redis', hosts: ['127.0.0.1'], usages: ['server'] });
  const folder = mkdtempSync(join(tmpdir(), 'redis-tls-'));
  clean.push(() => rmSync(folder, { recursive: true }));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  await redisOn(
    port,
    ...['--port', '0', '--tls-port', `${port}`, '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', file('tls.crt', pair.certificate), '--tls-key-file', file('tls.key', pair.key)],
    ...['--tls-ca-cert-file', file('ca.crt', authority.certificate)],
  );
  let ca: string | undefined;
  const { link, connected } = startLink(port, {
    tls: () => {
      if (ca === undefined) {
        throw new Error('no CA yet');
      }
      return { ca };
    },
  });
  await until(() => link.problem === 'no CA yet');
  ca = stranger.certificate;
  await until(() => /certificate/.test(link.problem ?? ''));
  ca = authority.certificate;
  await connected();
  await link.set('a', Buffer.from('x'), 1_000);
  const insecure = startLink(port, { tls: () => ({ rejectUnauthorized: false }) });
  await insecure.connected();
});

test('a server that is not a Redis is reported', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  clean.push(() => server.close());
  const { port } = server.address() as { port: number };
  const { link, lines } = startLink(port);
  await until(() => lines.length > 0);
  await expect(link.get('a')).rejects.toThrow(/not connected/);
});
