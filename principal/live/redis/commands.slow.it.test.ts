import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../../e2e/pair/index.ts';
import { Random } from '../../../e2e/random/index.ts';
import { maxGrownBytes, maxTurnMs, TurnMeter } from '../../../e2e/random/meters.ts';
import { type Redis, startRedis } from '../../../e2e/redis/index.ts';
import { effort, until } from '../../../lib/base/testing.ts';
import { encodeCommand, ReplySplitter } from '../../../lib/live/index.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { applicationOf } from './keys.ts';
import { type RedisProxy, serveRedisProxy } from './proxy.ts';

// Random orders of commands, before and after authentication, to a Redis with a password: once directly and once through the proxy.
// REDIS_COMMANDS_SEED=<number> repeats a run.

const password = 'secret';
const keys = [
  'app|resources-tree|edge_a|1.8.3.gz',
  'app|managed-resources|edge_b|1.8.3',
  'app|resources-tree|edge_a|1|1.8.3.gz',
];
const agentValueOf = (key: string) => `value of the agent for ${key}`;

let redis: Redis;
let admin: Awaited<ReturnType<typeof open>>;
let proxy: RedisProxy;
/** Whether Redis forgets the answer to a failed AUTH while others wait to be sent, as versions since 7.2 do. */
let forgetsFailedAuth: boolean;
/** Keys and channels that the agent was asked for. */
let askedKeys: string[] = [];
let askedChannels: string[] = [];

beforeAll(async () => {
  redis = await startRedis({ port: await freePort(), args: ['--requirepass', password] });
  admin = await open(redis.port);
  admin.socket.write(encodeCommand(['AUTH', password]));
  await until(() => admin.text() === '+OK\r\n');
  admin.socket.write(Buffer.concat([['PING'], ['AUTH', 'wrong'], ['PING']].map(encodeCommand)));
  await until(() => admin.text().match(/PONG/g)?.length === 2);
  forgetsFailedAuth = !admin.text().includes('WRONGPASS');
  proxy = await serveRedisProxy({
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    upstream: { host: '127.0.0.1', port: redis.port, tls: () => undefined },
    cache: {
      get: async (_agent, _connection, key) => {
        askedKeys.push(key);
        return Buffer.from(agentValueOf(key));
      },
      subscribe: async (_agent, connection, channel) => {
        askedChannels.push(channel);
        // At any time, and in any number.
        proxy.news('edge', connection, channel);
        return true;
      },
      ping: async () => undefined,
    },
    agentOf: (key) => applicationOf(key)?.namespace || undefined,
    keyPrefix: '',
    logger: createLogger({ level: 'fatal' }),
  });
});
afterAll(async () => {
  admin?.socket.destroy();
  await proxy?.close();
  await redis?.stop();
});

type Command = readonly string[];

/** Commands that the proxy refuses by itself. */
const refused: readonly Command[] = [
  ['RESET'],
  ['reset\0x'],
  ['MONITOR'],
  ['CLIENT', 'REPLY', 'OFF'],
  ['client', 'reply', 'skip'],
  ['SYNC'],
  ['REPLCONF', 'ACK', '1'],
];

function randomCommand(random: Random): Command {
  const name = () => random.pick([...keys, 'x', 'y']);
  const names = (least: number) => Array.from({ length: random.integer(least, least + 2) }, name);
  const choices: readonly (() => Command)[] = [
    () => ['GET', random.pick(keys)],
    () => ['get', random.pick(keys)],
    () => ['GET', random.pick(['x', 'list'])],
    () => ['SET', 'x', random.pick(['1', 'message', '$5\r\nvalue\r\n'])],
    () => ['LRANGE', 'list', '0', '-1'],
    () => ['PING'],
    () => ['EXISTS', name()],
    () => ['AUTH', password],
    () => ['AUTH', 'wrong'],
    () => ['AUTH', 'default', password],
    () => ['HELLO', random.pick(['2', '3'])],
    () => ['HELLO', random.pick(['2', '3']), 'AUTH', 'default', random.pick([password, 'wrong'])],
    () => ['HELLO'],
    () => ['HELLO', '9'],
    () => ['SUBSCRIBE', ...names(1)],
    () => ['subscribe', random.pick(keys)],
    () => ['UNSUBSCRIBE', ...names(0)],
    () => ['UNSUBSCRIBE'],
    () => ['PSUBSCRIBE', ...names(1)],
    () => ['PUNSUBSCRIBE', ...names(0)],
    () => ['SSUBSCRIBE', name()],
    () => ['SUNSUBSCRIBE', ...names(0)],
    () => ['SUBSCRIBE'],
    () => ['PUBLISH', name(), 'text'],
    () => ['MULTI'],
    () => ['EXEC'],
    () => ['EXEC', 'one', 'too', 'many'],
    () => ['DISCARD'],
    () => ['WATCH', 'x'],
    () => ['CLIENT', 'SETNAME', 'someone'],
    () => ['NOSUCHCOMMAND'],
    () => ['GET'],
    () => (random.chance(0.2) ? ['QUIT'] : ['PING', 'text']),
    () => ['GET', random.pick(keys), 'more'],
    () => ['MGET', random.pick(keys), 'x'],
    () => random.pick(refused),
  ];
  return random.pick(choices)();
}

const isRefused = (command: Command) => refused.includes(command);
/** Redis reports a command that does not exist before it looks at the authentication; this shows where the replies to the one before end. */
const marker = (index: number): Command => [`NOSUCH-${index}`];

/** A connection that keeps all output. */
async function open(port: number): Promise<{ socket: Socket; text: () => string; isClosed: () => boolean }> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  let text = '';
  let isClosed = false;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  await once(socket, 'connect');
  return { socket, text: () => text, isClosed: () => isClosed };
}

/** Sends bytes as one packet, or cut at random places. */
async function write(socket: Socket, bytes: Buffer, random: Random, cuts: number): Promise<void> {
  const places = Array.from({ length: cuts }, () => random.integer(0, bytes.length)).sort((a, b) => a - b);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    socket.write(bytes.subarray(from, to));
    from = to;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Top-level replies, pushes and messages, without what differs between two connections. */
function repliesIn(text: string): string[] {
  const replies: string[] = [];
  let reply = '';
  for (const piece of new ReplySplitter().push(Buffer.from(text, 'latin1'))) {
    reply += piece.bytes.toString('latin1');
    if (piece.isEnd) {
      // The id of the connection, and the number of receivers of a message.
      if (!(forgetsFailedAuth && reply.startsWith('-WRONGPASS '))) {
        replies.push(reply.replace(/(\$2\r\nid\r\n):\d+/, '$1:0').replace(/^:\d+/, ':0'));
      }
      reply = '';
    }
  }
  return replies;
}

const isAgentMessage = (reply: string) =>
  keys.some((key) => reply.endsWith(`$7\r\nmessage\r\n$${key.length}\r\n${key}\r\n$0\r\n\r\n`));

/**
 * Runs the commands on a new connection to a port, and an empty Redis.
 *
 * Redis ends a connection that has not authenticated when replies of more than its output buffer wait at once, and they are lost
 * (CVE-2025-21605). That buffer has 16 KiB at first and 1 KiB after some 200 ms. The proxy never has two replies to wait for, but the
 * direct connection gets all commands at once, so a slow one is repeated.
 */
async function run(port: number, commands: readonly Command[], random: Random): Promise<string[]> {
  let cuts = random.chance(0.3) ? random.integer(1, 20) : 0;
  for (let left = port === redis.port ? 10 : 1; ; left--) {
    const { text, isComplete } = await runOnce(port, commands, (socket, bytes) => write(socket, bytes, random, cuts));
    if (isComplete || left === 1) {
      return repliesIn(text);
    }
    cuts = 0;
  }
}

async function runOnce(
  port: number,
  commands: readonly Command[],
  send: (socket: Socket, bytes: Buffer) => Promise<void>,
): Promise<{ text: string; isComplete: boolean }> {
  admin.socket.write(encodeCommand(['FLUSHALL']));
  const flushed = admin.text().length + '+OK\r\n'.length;
  await until(() => admin.text().length >= flushed);
  const { socket, text, isClosed } = await open(port);
  const last = marker(commands.length);
  // Redis closes the connection after QUIT. What it has not read by then may cost the client the replies before.
  const quit = port === redis.port ? commands.findIndex(([name]) => name === 'QUIT') : -1;
  await send(socket, Buffer.concat((quit < 0 ? [...commands, last] : commands.slice(0, quit + 1)).map(encodeCommand)));
  const isAnswered = () => text().includes(`'${last[0]}'`) && text().endsWith('\r\n');
  await until(() => isClosed() || isAnswered(), { details: () => JSON.stringify(text()) });
  socket.destroy();
  return { text: text(), isComplete: quit < 0 ? isAnswered() : text().endsWith('+OK\r\n') };
}

/** The replies to each command, where a marker follows each of them. */
function byCommand(replies: readonly string[], count: number): string[][] {
  const lists: string[][] = Array.from({ length: count }, () => []);
  let index = 0;
  for (const reply of replies) {
    if (reply.includes(`'NOSUCH-${index}'`)) {
      index++;
    } else {
      lists[index]?.push(reply);
    }
  }
  return lists;
}

test(
  'whatever is sent, an agent is asked only after Redis accepts the password, and replies are as on a direct connection',
  async () => {
    const seed = Number(process.env.REDIS_COMMANDS_SEED ?? Math.floor(Math.random() * 2 ** 31));
    const sequences = effort(2_000, 100_000);
    console.log(`REDIS_COMMANDS_SEED=${seed}`);
    const run = async (at: number) => {
      const random = new Random(seed + at);
      const commands = Array.from({ length: random.integer(1, 12) }, () => randomCommand(random));
      const what = `REDIS_COMMANDS_SEED=${seed + at}: ${JSON.stringify(commands)}`;
      askedKeys = [];
      askedChannels = [];
      // A marker after each command assigns the replies, but makes transactions fail.
      const direct = random.chance(0.5)
        ? await compareMarked(commands, random, what)
        : await compareWhole(commands, random, what);
      const successes = direct.filter((reply) => !reply.startsWith('-')).length;
      // Redis confirms QUIT to everybody.
      const isAuthenticated = successes > (commands.some(([name]) => name === 'QUIT') ? 1 : 0);
      expect(isAuthenticated || askedKeys.length + askedChannels.length === 0, what).toBe(true);
      for (const channel of askedChannels) {
        const confirmation = `$9\r\nsubscribe\r\n$${channel.length}\r\n${channel}\r\n`;
        expect(
          direct.some((reply) => reply.includes(confirmation)),
          what,
        ).toBe(true);
      }
      return askedKeys.length;
    };
    const meter = new TurnMeter();
    let served = 0;
    for (let at = 0; at < sequences; at++) {
      served += await meter.measure(() => run(at));
    }
    meter.stop();
    console.log(`${sequences} sequences: ${meter}`);
    expect(meter.longestMs).toBeLessThan(maxTurnMs);
    expect(meter.grownBytes).toBeLessThan(maxGrownBytes);
    // About one in twenty gets as far as a value of the agent.
    expect(served).toBeGreaterThan(sequences / 40);
  },
  effort(600_000, 7_200_000),
);

test('a transaction ends when Redis aborts it for the arguments of EXEC', async () => {
  askedKeys = [];
  const commands = [['AUTH', password], ['MULTI'], ['EXEC', 'one'], ['HELLO', '2'], ['SUBSCRIBE', 'x']];
  await compareMarked(commands, new Random(1), 'EXEC one');
});

const isNil = (reply: string | undefined) => reply === '$-1\r\n' || reply === '_\r\n';
const agentReplies = new Set(
  keys.map((key) =>
    encodeCommand([agentValueOf(key)])
      .toString()
      .slice('*1\r\n'.length),
  ),
);
const ofProxy = (replies: readonly string[]) => replies.filter((reply) => !isAgentMessage(reply));

/** Compares the replies to each command. Returns those of the direct connection. */
async function compareMarked(commands: readonly Command[], random: Random, what: string): Promise<string[]> {
  const marked = (isSent: (command: Command) => boolean) =>
    commands.flatMap((command, index) => [...(isSent(command) ? [command] : []), marker(index)]);
  const direct = await run(
    redis.port,
    marked((command) => !isRefused(command)),
    random,
  );
  const theirs = byCommand(direct, commands.length);
  const ours = byCommand(
    ofProxy(
      await run(
        proxy.port,
        marked(() => true),
        random,
      ),
    ),
    commands.length,
  );
  const expectedKeys: string[] = [];
  let isInTransaction = false;
  for (const [index, [name = '', ...args]] of commands.entries()) {
    const [key = ''] = args;
    const upper = name.toUpperCase();
    const isLocal = isInTransaction && /^(HELLO|[PS]?(UN)?SUBSCRIBE)$/.test(upper);
    if (isRefused(commands[index] ?? []) || isLocal) {
      const refusal = /^-ERR .* is not served by the Redis proxy( in a transaction)?\r\n$/;
      expect(ours[index], what).toEqual([expect.stringMatching(refusal)]);
    } else if (upper === 'GET' && args.length === 1 && keys.includes(key) && isNil(theirs[index]?.[0])) {
      expectedKeys.push(key);
      expect(ours[index], what).toEqual([`$${agentValueOf(key).length}\r\n${agentValueOf(key)}\r\n`]);
    } else {
      expect(ours[index], what).toEqual(theirs[index]);
    }
    if (upper === 'QUIT') {
      break;
    }
    if (upper === 'MULTI' && theirs[index]?.[0] === '+OK\r\n') {
      isInTransaction = true;
    } else if (
      upper === 'DISCARD' ||
      (upper === 'EXEC' && (args.length === 0 || theirs[index]?.[0]?.startsWith('-EXECABORT ')))
    ) {
      isInTransaction = false;
    }
  }
  expect(askedKeys, what).toEqual(expectedKeys);
  return direct;
}

/** Compares all replies, in their order. Returns those of the direct connection. */
async function compareWhole(commands: readonly Command[], random: Random, what: string): Promise<string[]> {
  const hasTransaction = commands.some(([name]) => name === 'MULTI');
  const isComparable = (command: Command) =>
    !isRefused(command) && !(hasTransaction && /^(HELLO|[PS]?(UN)?SUBSCRIBE)$/i.test(command[0] ?? ''));
  const sent = commands.filter(isComparable);
  const direct = await run(redis.port, sent, random);
  const proxied = ofProxy(await run(proxy.port, sent, random));
  const normal = proxied.map((reply, index) =>
    isNil(direct[index]) && agentReplies.has(reply) ? direct[index] : reply,
  );
  expect(normal, what).toEqual(direct);
  expect(proxied.filter((reply) => agentReplies.has(reply)).length, what).toBe(askedKeys.length);
  return direct;
}
