import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { type KubeletPod, kubeletPods, type Node, startNode } from '../node/index.ts';
import type { Pair } from '../pair/index.ts';
import { isProcessAlive } from '../testbed/index.ts';
import type { ProxyClient } from './proxy-client.ts';
import { deployWeb, shopPod, startProxiedPair } from './shop.ts';
import { TerminalClient } from './terminal-client.ts';

// Terminals in containers that run on a node, and their logs, as Argo CD opens them through the resource proxy.

const generous = { timeoutMs: 120_000 };

let pair: Pair;
let node: Node;
let port: number;
let mine: KeyCertificate;
let proxy: ProxyClient;

beforeAll(async () => {
  ({ pair, port, credential: mine, proxy } = await startProxiedPair());
  const { client } = pair.managed;
  node = await startNode({ cluster: pair.managed, dir: pair.managed.dir });
  await deployWeb(pair.hub.client, pair.name, client, proxy);
  const annotations = { 'argocd.argoproj.io/tracking-id': 'web:/Pod:shop/web' };
  await Promise.all([
    client.create(
      kubeletPods,
      shopPod('web', 'i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done', annotations),
    ),
    client.create(kubeletPods, shopPod('foreign', 'exec sleep 100000', {})),
  ]);
  for (const name of ['web', 'foreign']) {
    const isRunning = ({ status }: KubeletPod) => status?.phase === 'Running';
    const look = async () => {
      const found = await client.get(kubeletPods, { name, namespace: 'shop' });
      return found && isRunning(found);
    };
    await until(`pod ${name} runs`, look, generous);
  }
});
afterAll(async () => {
  await node?.stop();
  await pair?.stop();
});

const asked = 'stdin=true&stdout=true&stderr=true';
const execOf = (command: readonly string[], options: { name?: string; query?: string } = {}) => {
  const words = command.map((word) => `command=${encodeURIComponent(word)}`).join('&');
  const { name = 'web', query = `${asked}&tty=true` } = options;
  return `/api/v1/namespaces/shop/pods/${name}/exec?container=main&${query}&${words}`;
};
const open = (path: string, protocols?: readonly string[]) =>
  TerminalClient.open({ port, authority: pair.authority, client: mine }, path, protocols);

test('a shell answers, takes a new size and ctrl-C, and its exit code is told', async () => {
  const terminal = await open(execOf(['sh']));
  terminal.type("echo hel''lo $HOSTNAME; hostname\n");
  await terminal.shows('hello');
  await terminal.shows('web\r\n');
  terminal.resize(40, 120);
  terminal.type('while [ "$(stty size)" != "40 120" ]; do sleep 0.1; done; echo re\'\'sized\n');
  await terminal.shows('resized\r\n');
  // One command in the foreground says that it is ready: ctrl-C before the shell has started it would reach the shell alone.
  terminal.type(`sh -c "echo rea''dy; exec sleep 100000"\n`);
  await terminal.shows('ready\r\n');
  terminal.type('\x03');
  terminal.type("echo al''ive\n");
  await terminal.shows('alive\r\n');
  terminal.type('exit 3\n');
  expect(await terminal.ends()).toMatchObject({
    status: 'Failure',
    reason: 'NonZeroExitCode',
    details: { causes: [{ message: '3' }] },
  });
  expect(terminal.closeCode).toBe(1000);
});

test.each(['v5.channel.k8s.io', 'v4.channel.k8s.io'])('a command without a terminal, in %s', async (protocol) => {
  const script = 'read line; echo got $line; echo bad >&2';
  const command = await open(execOf(['sh', '-c', script], { query: asked }), [protocol]);
  command.type('this\n');
  expect(await command.ends()).toMatchObject({ status: 'Success' });
  expect([command.stdout, command.stderr]).toEqual(['got this\n', 'bad\n']);
});

test('a large input comes through whole, up to its end', async () => {
  const command = await open(execOf(['sh', '-c', 'wc -c'], { query: asked }));
  for (let part = 0; part < 30; part++) {
    command.type('x'.repeat(100_000));
  }
  command.endInput();
  expect(await command.ends()).toMatchObject({ status: 'Success' });
  expect(command.stdout.trim()).toBe('3000000');
});

test('a large output comes through whole', async () => {
  const command = await open(execOf(['sh', '-c', 'head -c 20000000 /dev/zero | tr "\\0" x'], { query: 'stdout=true' }));
  expect(await command.ends()).toMatchObject({ status: 'Success' });
  expect(command.stdout.length).toBe(20_000_000);
});

test('two terminals at once know nothing of each other', async () => {
  const both = await Promise.all([open(execOf(['sh'])), open(execOf(['sh']))]);
  both.forEach((terminal, index) => {
    terminal.type(`name=viewer${index}; echo I am $name\n`);
  });
  await Promise.all(both.map((terminal, index) => terminal.shows(`I am viewer${index}\r\n`)));
  both.forEach((terminal) => {
    terminal.type('echo still $name; exit\n');
  });
  for (const [index, terminal] of both.entries()) {
    expect(await terminal.ends()).toMatchObject({ status: 'Success' });
    expect(terminal.stdout).toContain(`still viewer${index}\r\n`);
    expect(terminal.stdout).not.toContain(`viewer${1 - index}`);
  }
});

test.each([
  ['a pod of no Application', execOf(['sh'], { name: 'foreign' }), 403, /belongs to no Application/],
  ['a pod that there is not', execOf(['sh'], { name: 'nothing' }), 404, /not found/],
  ['a shell that there is not', execOf(['no-such-shell']), 500, /executable file not found/],
  ['a container that there is not', execOf(['sh']).replace('container=main', 'container=x'), 400, /container x is not/],
])('%s is refused, in words', async (_what, path, code, words) => {
  const terminal = await open(path);
  const outcome = await terminal.ends();
  expect(outcome).toMatchObject({ status: 'Failure', code });
  expect(outcome.message).toMatch(words);
});

test('what a viewer leaves behind is ended', async () => {
  const terminal = await open(execOf(['sh', '-c', 'echo pid=$$; exec sleep 100000']));
  await terminal.shows('\r\n');
  const pid = Number(/pid=(\d+)/.exec(terminal.stdout)?.[1]);
  expect(isProcessAlive(pid)).toBe(true);
  terminal.webSocket.terminate();
  await until('the process is gone', async () => !isProcessAlive(pid), generous);
});

test('logs of a container that runs are followed', async () => {
  const stop = new AbortController();
  const path = '/api/v1/namespaces/shop/pods/web/log?container=main&follow=true&tailLines=2';
  const log = await proxy.open('GET', path, { signal: stop.signal });
  let text = '';
  log.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  log.on('error', () => undefined);
  await until('five lines have come', async () => text.split('\n').length > 5, generous);
  const numbers = Array.from(text.matchAll(/^line (\d+)\n/gm), ([, number]) => Number(number));
  expect(numbers.map((number) => number - Number(numbers[0]))).toEqual(numbers.map((_, index) => index));
  stop.abort();
});

async function raw(request: string | Buffer, after?: Buffer): Promise<string> {
  const { certificate: cert, key } = mine;
  const socket = connectTls({ host: '127.0.0.1', port, ca: pair.authority.certificate, cert, key });
  socket.on('error', () => undefined);
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    if (text === '' && after !== undefined) {
      socket.write(after);
    }
    text += chunk.toString('latin1');
  });
  await once(socket, 'secureConnect');
  socket.write(request);
  if (!socket.closed) {
    await new Promise((resolve) => socket.once('close', resolve));
  }
  return text;
}

const handshake = (fields: Record<string, string>, method = 'GET', path = execOf(['sh'])) => {
  const headers = {
    Host: 'x',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol': 'v5.channel.k8s.io',
    ...fields,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
};

test.each([
  ['a bad key', handshake({ 'Sec-WebSocket-Key': 'short' }), 400],
  ['an old version', handshake({ 'Sec-WebSocket-Version': '7' }), 400],
  ['an unknown subprotocol', handshake({ 'Sec-WebSocket-Protocol': 'graphql-ws' }), 400],
  ['a broken list of subprotocols', handshake({ 'Sec-WebSocket-Protocol': 'v5.channel.k8s.io,,' }), 400],
  ['another method', handshake({}, 'DELETE'), 405],
  ['SPDY', handshake({ Upgrade: 'SPDY/3.1', 'Content-Length': '0', Connection: 'Upgrade, close' }, 'POST'), 426],
  ['no upgrade at all', handshake({ Connection: 'close' }), 400],
  ['another subresource', handshake({}, 'GET', '/api/v1/namespaces/shop/pods/web/portforward'), 403],
  ['another resource', handshake({}, 'GET', '/apis/apps/v1/namespaces/shop/deployments/web/exec?command=sh'), 403],
  ['a path in disguise', handshake({}, 'GET', '/api/v1/namespaces/shop/pods/..%2fweb/exec?command=sh'), 404],
  ['impersonation', handshake({ 'Impersonate-User': 'admin' }), 403],
])('a handshake with %s is refused', async (_what, request, code) => {
  expect(await raw(request)).toMatch(new RegExp(`^HTTP/1.1 ${code} `));
});

test.each([
  ['a frame that is not masked', Buffer.from([0x82, 2, 0, 0x61]), 1002],
  ['a frame that says to be huge', Buffer.from([0x82, 0xff, 0, 0, 0, 16, 0, 0, 0, 0, 1, 2, 3, 4]), 1009],
  ['a second handshake', Buffer.from(handshake({})), 1002],
  // And says good-bye, as it is waited for.
  ['a stream that there is not', Buffer.from([0x82, 0x82, 0, 0, 0, 0, 9, 9, 0x88, 0x80, 0, 0, 0, 0]), 1000],
])('%s ends the terminal and nothing else', async (_what, bytes, code) => {
  const answer = Buffer.from(await raw(handshake({}), bytes), 'latin1');
  expect(answer.toString('latin1')).toMatch(/^HTTP\/1.1 101 /);
  expect(answer.includes(Buffer.from([0x88, 2, code >> 8, code & 255]))).toBe(true);
  expect((await proxy.send('GET', '/api/v1/namespaces/shop/pods/web')).status).toBe(200);
});

test('another agent, and who is nobody, get no terminal', async () => {
  const client = await issueCertificate({ authority: pair.authority, commonName: 'other', usages: ['client'] });
  const at = { port, authority: pair.authority, client };
  await expect(TerminalClient.open(at, execOf(['sh']))).rejects.toThrow('502');
  const token = await raw(handshake({ Authorization: 'Bearer nonsense' }));
  expect(token).toMatch(/^HTTP\/1.1 401 /);
});

test('nothing that was typed or shown is in the logs', async () => {
  const programs = [pair.principal, pair.agent].map((program) => ({ program, after: program.output.length }));
  const terminal = await open(execOf(['sh', '-c', 'read word; echo a-$word-b']));
  terminal.type('confidential\n');
  await terminal.ends();
  expect(terminal.stdout).toContain('a-confidential-b');
  for (const { program, after } of programs) {
    await program.says(/a terminal is closed/, { after });
    expect(program.output).not.toMatch(/confidential|read word/);
  }
});

test('the viewer is told when the agent goes, and the command ends; idle terminals are closed', async () => {
  const terminal = await open(execOf(['sh', '-c', 'echo pid=$$; exec sleep 100000']));
  await terminal.shows('\r\n');
  const pid = Number(/pid=(\d+)/.exec(terminal.stdout)?.[1]);
  await pair.agent.stop('SIGKILL');
  expect(await terminal.ends()).toMatchObject({ status: 'Failure', code: 502 });
  await until('the process is gone', async () => !isProcessAlive(pid), generous);

  const hasty = await pair.otherAgent({ args: ['--terminal-idle-timeout=1s'] });
  hasty.start();
  await hasty.says(/Connected to the principal/);
  const idle = await until(
    'the agent is back',
    () => open(execOf(['sleep', '100000'])).catch(() => undefined),
    generous,
  );
  const outcome = await idle.ends();
  expect(outcome).toMatchObject({ status: 'Failure', code: 504 });
  expect(outcome.message).toContain('nothing happened');
});
