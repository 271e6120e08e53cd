import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { download } from './download.ts';
import {
  cut as cutBy,
  type FileAnswer,
  FileServer,
  instead,
  missing,
  noAnswer,
  right,
  slowly,
  stall,
  status,
  webPage,
} from './testing/file-server.ts';

const content = 'a program of 28 bytes in all';
const sha256 = createHash('sha256').update(content).digest('hex');

/** The first bytes; the connection ends when they are in the file. */
const cut = (bytes: number) =>
  cutBy(bytes, async (size) => {
    if (bytes > 0) {
      await until(async () => expect((await stat(`${path}.part`)).size).toBe(size));
    }
  });
/** The rest, with other bytes. */
const wrongRest: FileAnswer = (request, response, bytes) => right(request, response, Buffer.alloc(bytes.length, 'X'));

let server: FileServer;
let folder = '';
let path = '';
let log: string[] = [];
beforeEach(async () => {
  for (const variable of ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']) {
    vi.stubEnv(variable, undefined).stubEnv(variable.toLowerCase(), undefined);
  }
  server = await FileServer.start({ '/program': content });
  folder = await mkdtemp(join(tmpdir(), 'download-'));
  path = join(folder, 'program');
  log = [];
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server.stop();
  await rm(folder, { recursive: true });
});

const load = (url = `${server.url}/program`, more: { bytes?: number; silenceMs?: number; signal?: AbortSignal } = {}) =>
  download({ url, sha256, bytes: more.bytes }, path, {
    name: 'program',
    log: (line) => log.push(line),
    silenceMs: 2000,
    ...more,
  });
const there = () => readFile(path, 'utf8');
const files = () => readdir(folder);

describe('a download succeeds', () => {
  it('at once', async () => {
    expect(await load()).toBe(content.length);
    expect(await there()).toBe(content);
    expect(await files()).toEqual(['program']);
    expect(server.asked).toEqual(['/program']);
    expect(log).toEqual([`program: downloading ${server.url}/program`]);
  });

  it.each<[string, FileAnswer[], string[]]>([
    ['with the rest, when the connection ended', [cut(10)], ['/program', '/program bytes=10-']],
    ['when the connection ended before anything came', [cut(0)], ['/program', '/program']],
    [
      'in many pieces',
      Array(9).fill(cut(3)),
      ['/program', ...[...Array(9).keys()].map((n) => `/program bytes=${3 * n + 3}-`)],
    ],
    ['when the server has recovered', [status(503), status(429)], ['/program', '/program', '/program']],
    ['with the whole, when the server sends no parts', [cut(10), instead(content)], ['/program', '/program bytes=10-']],
    [
      'from the beginning, when the pieces do not fit',
      [cut(10), wrongRest],
      ['/program', '/program bytes=10-', '/program'],
    ],
  ])('%s', async (_how, answers, asked) => {
    server.next(...answers);
    await load();
    expect(await there()).toBe(content);
    expect(await files()).toEqual(['program']);
    expect(server.asked).toEqual(asked);
  });

  it('with the rest, when nothing more came', async () => {
    server.next(stall(10));
    await load(undefined, { silenceMs: 500 });
    expect(await there()).toBe(content);
    expect(server.asked).toEqual(['/program', '/program bytes=10-']);
  });

  it('however slowly it comes', async () => {
    server.next(slowly(100));
    // All in all it takes more than twice as long.
    await load(undefined, { silenceMs: 1200 });
    expect(await there()).toBe(content);
    expect(server.asked).toEqual(['/program']);
  });

  it('through redirects', async () => {
    const other = await FileServer.start({ '/moved': content });
    try {
      server.next(status(302, { location: '/next' }), status(307, { location: `${other.url}/moved` }));
      await load();
      expect(await there()).toBe(content);
    } finally {
      await other.stop();
    }
  });

  it.each<[string, string, string[]]>([
    ['with the rest of what an earlier run left', content.slice(0, 12), ['/program bytes=12-']],
    ['with nothing more, when an earlier run left all', content, ['/program bytes=28-']],
    ['from the beginning, when an earlier run left too much', `${content}!`, ['/program bytes=29-', '/program']],
    ['from the beginning, when an earlier run left wrong bytes', 'another', ['/program bytes=7-', '/program']],
  ])('%s', async (_how, left, asked) => {
    await writeFile(`${path}.part`, left);
    await load();
    expect(await there()).toBe(content);
    expect(await files()).toEqual(['program']);
    expect(server.asked).toEqual(asked);
  });
});

describe('a download fails, and puts nothing in place', () => {
  it.each<[string, FileAnswer, string]>([
    [
      'wrong bytes',
      instead('something else of 28 bytes!!'),
      `has not the published SHA-256 ${sha256}, and was thrown away`,
    ],
    ['an empty file', instead(''), 'and was thrown away'],
    ['no such file', missing, 'it answered 404'],
    ['a refusal', status(403), 'it answered 403'],
    ['the page of a proxy', webPage, 'the answer is a web page and not the file, as of a proxy that wants a login'],
    [
      'too much, and the server says so',
      status(200, { 'content-length': '1000000001' }),
      'it has more than the 1000000000 bytes',
    ],
  ])('%s: at once', async (_what, answer, message) => {
    server.next(answer);
    await expect(load()).rejects.toThrow(`${server.url}/program: `);
    server.next(answer);
    await expect(load()).rejects.toThrow(message);
    expect(server.asked).toHaveLength(2);
    expect(await files()).toEqual([]);
    await load();
    expect(await there()).toBe(content);
  });

  it('more than was published: before it comes, or as soon as it does', async () => {
    await expect(load(undefined, { bytes: 20 })).rejects.toThrow('it has more than the 20 bytes that were published');
    server.next((_request, response) => response.end(content));
    await expect(load(undefined, { bytes: 20 })).rejects.toThrow('it has more than the 20 bytes that were published');
    expect(server.asked).toHaveLength(2);
  });

  it('on a full disk: at once', { tags: 'linux' }, async () => {
    await symlink('/dev/full', `${path}.part`);
    await expect(load()).rejects.toMatchObject({
      code: 'NotWritable',
      message: `${path}.part cannot be written: ENOSPC: no space left on device, write`,
    });
    expect(server.asked).toHaveLength(1);
  });

  it('another part than was asked for', async () => {
    await writeFile(`${path}.part`, content.slice(0, 12));
    server.next(status(206, { 'content-range': 'bytes 0-27/28' }));
    await expect(load()).rejects.toThrow('it sent another part than it was asked for: bytes 0-27/28');
  });

  it('wrong bytes in pieces: after it was loaded once more', async () => {
    server.next(cut(10), wrongRest, instead('X'.repeat(28)));
    await expect(load()).rejects.toThrow('and was thrown away');
    expect(log).toContain(
      'program: the pieces of several tries make a wrong file; it is loaded again from its beginning',
    );
    expect(server.asked).toEqual(['/program', '/program bytes=10-', '/program']);
    expect(await files()).toEqual([]);
  });

  it.each<[string, FileAnswer, string]>([
    ['the connection ends', cut(0), 'the connection was closed (other side closed)'],
    ['nothing more comes', stall(0), 'nothing more came (Body Timeout Error)'],
    ['there is no answer', noAnswer, 'no answer (Headers Timeout Error)'],
    ['the server is out of order', status(503), 'it answered 503'],
  ])('%s, again and again: after four tries', async (_what, answer, message) => {
    server.next(cut(10), ...Array(3).fill(answer));
    const failure = load(undefined, { silenceMs: 500 });
    await expect(failure).rejects.toThrow(`${message}, after 0.0 of 0.0 MB (35 %)`);
    await expect(failure).rejects.toThrow('; the next download goes on from there');
    expect(server.asked).toHaveLength(4);
    await load();
    expect(server.asked[4]).toBe('/program bytes=10-');
    expect(await there()).toBe(content);
  });

  it('ends after twenty tries, even if each brings something', async () => {
    server.next(...Array(30).fill(cut(1)));
    await expect(load()).rejects.toThrow('the connection was closed (other side closed), after');
    expect(server.asked).toHaveLength(20);
  });

  it.each([
    ['http://127.0.0.1:1/program', 'the connection was refused (connect ECONNREFUSED 127.0.0.1:1)'],
    ['https://nowhere.invalid/program', 'no address is known for this name ('],
  ])('%s', async (url, message) => {
    await expect(load(url)).rejects.toThrow(`${url}: ${message}`);
  });

  it('redirects that never end', async () => {
    server.next(...Array.from({ length: 40 }, (_, n) => status(302, { location: `/${n}` })));
    await expect(load()).rejects.toThrow('it redirects again and again');
  });
});

it('stops when it is told to, and goes on from there the next time', async () => {
  server.next(stall(10));
  const stop = new AbortController();
  const loading = load(undefined, { signal: stop.signal });
  await until(async () => expect(await readFile(`${path}.part`, 'utf8')).toHaveLength(10));
  stop.abort(new Error('enough'));
  await expect(loading).rejects.toThrow('enough');
  await load();
  expect(server.asked).toEqual(['/program', '/program bytes=10-']);
  expect(await there()).toBe(content);
});

it('stays as it was checked, whatever comes for another process that began to load it before', async () => {
  const begun = Promise.withResolvers<ServerResponse>();
  server.next((_request, response) => {
    response.writeHead(200, { 'content-length': content.length }).flushHeaders();
    begun.resolve(response);
  });
  const other = load();
  other.catch(() => undefined);
  const response = await begun.promise;
  await until(async () => expect((await stat(`${path}.part`)).size).toBe(0));
  await load();
  response.end('X'.repeat(content.length));
  await expect(other).rejects.toThrow();
  expect(await there()).toBe(content);
});

describe('through a proxy', () => {
  it('that has the file', async () => {
    vi.stubEnv('HTTP_PROXY', server.url);
    server.next(instead(content));
    await load('http://files.invalid/program');
    expect(server.asked).toEqual(['http://files.invalid/program']);
    expect(await there()).toBe(content);
  });

  it('that wants a login', async () => {
    vi.stubEnv('HTTPS_PROXY', server.url);
    await expect(load('https://files.invalid/program')).rejects.toThrow('407');
    expect(server.asked[0]).toBe('CONNECT files.invalid:443');
  });

  it.each(['proxy:3128', '127.0.0.1:3128', 'ftp://proxy'])('that is no URL: %s', async (proxy) => {
    vi.stubEnv('HTTPS_PROXY', proxy);
    await expect(load()).rejects.toThrow('The proxy (HTTPS_PROXY) is not a URL such as http://proxy.example:3128');
    expect(server.asked).toEqual([]);
  });

  it('except to the hosts of NO_PROXY', async () => {
    vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:1');
    vi.stubEnv('NO_PROXY', '127.0.0.1');
    await load();
    expect(await there()).toBe(content);
  });
});
