import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventBytes, frame, mutated } from '../../e2e/hostile/index.ts';
import { Random } from '../../e2e/random/index.ts';
import { effort, until } from '../../lib/base/testing.ts';
import {
  agentSource,
  eventTypes,
  heartbeatEvent,
  LogStreamData,
  messageEvent,
  objectEvent,
  TerminalStreamData,
  targets,
} from '../../lib/wire/index.ts';
import { expectedUuids, type ServerReport, type ServerStart, secret } from './testing/fuzzed-server.ts';

// A hostile agent sends mutated messages through real connections: as gzip, cut, and interleaved over its streams.

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const count = effort(2_000, 1_000_000);
/** Hostile agents at the same time. Each waits for answers most of the time. */
const attackers = effort(1, 8);
/** Messages that an attacker sends before it looks whether its streams are still open. */
const atOnce = 50;
/** Heartbeats, four a second, until a stream of events that answers none is given up: a busy machine needs time to read all. */
const patientBeats = effort(20, 240);
/** CPU time of the server in one turn of the event loop. */
const maxTurnMs = 100;
/** Memory of the server. The first messages of a process take most: compiled code and pooled buffers. */
const maxBytes = 256 * 1024 * 1024;
/** Streams that a hostile agent opens before another one takes its place: the server slows down whoever opens more. */
const streamsPerAgent = 60;

let server: Worker;
let start: ServerStart;
let failure: Error | undefined;
beforeAll(async () => {
  server = new Worker(new URL('./testing/fuzzed-server.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  });
  server.on('error', (error) => {
    failure = error as Error;
  });
  [start] = (await once(server, 'message')) as [ServerStart];
});
afterAll(() => server?.terminate());

async function report(): Promise<ServerReport> {
  const answer = once(server, 'message');
  server.postMessage('report');
  const [given] = (await answer) as [ServerReport];
  return given;
}

const paths = {
  events: '/eventstreamapi.EventStream/Subscribe',
  logs: '/principal.apis.logstreamapi.LogStreamService/StreamLogs',
  terminal: '/terminalstreamapi.TerminalStreamService/StreamTerminal',
} as const;
type Kind = keyof typeof paths;

function open(session: ClientHttp2Session, kind: Kind, authorization: string, seen: (bytes: Buffer) => void) {
  const stream = session.request({
    ':method': 'POST',
    ':path': paths[kind],
    te: 'trailers',
    'content-type': 'application/grpc',
    'grpc-encoding': 'gzip',
    authorization,
  });
  stream.on('error', () => undefined);
  stream.on('data', seen);
  return stream;
}

function connection(): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${start.port}`);
  session.on('error', () => undefined);
  return session;
}

/** An agent that exchanges a heartbeat now and then. */
function honest() {
  const session = connection();
  let answers = 0;
  let isTold = false;
  const stream = open(session, 'events', start.good, (bytes) => {
    answers++;
    isTold ||= bytes.includes(secret);
  });
  return {
    async exchange() {
      const before = answers;
      stream.write(frame(eventBytes(heartbeatEvent({ source: agentSource }))));
      await until(() => answers > before || failure !== undefined);
    },
    get isTold() {
      return isTold;
    },
    close: () => session.destroy(),
  };
}

const words = [
  ...Object.values(targets),
  ...Object.values(eventTypes),
  ...['app', 'good', 'evil-0', secret, expectedUuids.good, '', '__proto__', 'constructor', 'GET', 'metadata', 'spec'],
  ...['status', 'operation', 'annotations', 'finalizers', 'conditions', 'destinations', 'body', 'get', 'bytes'],
];

const object = {
  metadata: { name: 'app', namespace: 'good', uid: 'u', resourceVersion: '1', annotations: {}, finalizers: ['a'] },
  spec: { project: 'default', destinations: [{ name: 'good' }] },
  status: { health: { status: 'Healthy' }, conditions: [{ type: 't', message: 'm' }] },
};
const origin = { source: agentSource };
const copyReport = { kind: 'Application', name: 'app', namespace: 'good', uid: 'u', checksum: 'YQ==' };
const redisAnswer = { uuid: 'u', connectionUuid: 'c', body: { get: { bytes: 'YQ==', cacheHit: true, error: '' } } };
const messages: Readonly<Record<Kind, readonly Uint8Array[]>> = {
  events: [
    heartbeatEvent(origin),
    ...(['statusUpdate', 'delete', 'create', 'specUpdate'] as const).flatMap((type) => [
      objectEvent(targets.application, eventTypes[type], object, origin),
      objectEvent(targets.appProject, eventTypes[type], object, origin),
    ]),
    messageEvent(targets.resourceResync, eventTypes.requestUpdate, copyReport, origin),
    messageEvent(targets.resourceResync, eventTypes.requestSyncedResourceList, { checksum: null }, origin),
    messageEvent(targets.redis, eventTypes.redisResponse, redisAnswer, origin),
    messageEvent(targets.resource, eventTypes.response, { uuid: 'u', status: 200, resource: '{}' }, origin),
    messageEvent(targets.clusterCacheInfoUpdate, eventTypes.clusterCacheInfoUpdate, { applicationsCount: 1 }, origin),
  ].map(eventBytes),
  logs: Object.values(expectedUuids).flatMap((requestUuid) => [
    LogStreamData.encode(LogStreamData.fromPartial({ requestUuid, data: Buffer.from('a line\n') })).finish(),
    LogStreamData.encode(LogStreamData.fromPartial({ requestUuid, eof: true, error: 'none' })).finish(),
  ]),
  terminal: [
    TerminalStreamData.encode(
      TerminalStreamData.fromPartial({ requestUuid: expectedUuids.good, data: Buffer.from('ls'), rows: 2, cols: 3 }),
    ).finish(),
  ],
};

/** What grows when it is unpacked or parsed, and what has more fields, values or names than any message. */
const giants: readonly Uint8Array[] = [
  Buffer.alloc(1_000_000),
  Buffer.alloc(300_000, Buffer.from([0x78, 0x01])),
  ...['[],', '{},', '1,', '"\\n",'].map((unit) => {
    const data = Buffer.from(`{"metadata":{"name":"app"},"spec":{},"status":{"conditions":[${unit.repeat(50_000)}1]}}`);
    return eventBytes({ ...objectEvent(targets.application, eventTypes.statusUpdate, object, origin), data });
  }),
];

/** A framed message, spoilt in some way. */
function spoilt(kind: Kind, random: Random): Buffer {
  if (kind === 'events' ? random.chance(0.002) : random.chance(0.02)) {
    return frame(gzipSync(random.pick(giants)), 1);
  }
  const isEvent = kind === 'events' || random.chance(0.2);
  const bytes = isEvent ? mutated(messages.events, words, random) : flipped(random.pick(messages[kind]), random);
  const isPacked = random.chance(0.3);
  const payload = isPacked ? spoiltPack(gzipSync(bytes, { level: 1 }), random) : bytes;
  const flag = random.chance(0.0005) ? random.integer(0, 255) : Number(isPacked);
  return frame(payload, flag, random.chance(0.0005) ? random.integer(0, payload.length + 10) : payload.length);
}

function spoiltPack(packed: Buffer, random: Random): Buffer {
  return random.chance(0.005) ? flipped(packed, random) : packed;
}

function flipped(bytes: Uint8Array, random: Random): Buffer {
  const copy = Buffer.from(bytes);
  for (let flips = random.integer(0, 3); flips > 0 && copy.length > 0; flips--) {
    const at = random.integer(0, copy.length - 1);
    copy[at] = (copy[at] ?? 0) ^ (1 << random.integer(0, 7));
  }
  return copy;
}

/** Tokens of an agent, for both modes. */
type Tokens = ServerStart['evil'][number];

/** The streams of one hostile agent after the other, each on its own connection; one that has ended is opened again. */
class HostileStreams {
  readonly #agents: readonly Tokens[];
  readonly #random: Random;
  #session: ClientHttp2Session = connection();
  readonly #streams = new Map<number, ClientHttp2Stream>();
  readonly #kinds: readonly Kind[] = ['events', 'logs', 'events', 'logs', 'terminal'];
  /** The last bytes that came, so that a text is found that came in two pieces. */
  #tail = Buffer.alloc(0);
  /** The id of a heartbeat that is not acknowledged yet. */
  #awaited: string | undefined;
  #answers = 0;
  /** Streams so far. */
  #opened = 0;
  #settled: () => void = () => undefined;
  hasSeenSecret = false;

  constructor(agents: readonly Tokens[], random: Random) {
    this.#agents = agents;
    this.#random = random;
  }

  /** Sends messages over several streams, each in pieces. */
  async send(most: number): Promise<void> {
    const pieces = Array.from(this.#kinds, (): Buffer[] => []);
    for (let sent = 0; sent < most; sent++) {
      // Only one stream of events is open: a newer one ends it.
      const index = this.#random.chance(0.7) ? 0 : this.#random.integer(1, this.#kinds.length - 1);
      const bytes = spoilt(this.#kinds[index] ?? 'events', this.#random);
      const cut = this.#random.chance(0.5) ? this.#random.integer(0, bytes.length) : bytes.length;
      pieces[index]?.push(bytes.subarray(0, cut), bytes.subarray(cut));
    }
    for (let left = [...pieces.keys()]; left.length > 0; left = left.filter((index) => pieces[index]?.length)) {
      const index = this.#random.pick(left);
      const some = pieces[index]?.splice(0, this.#random.integer(1, 20)) ?? [];
      await this.#write(index, Buffer.concat(some));
    }
    await this.#settle();
    for (const stream of this.#streams.values()) {
      if (this.#random.chance(0.05)) {
        stream.close(constants.NGHTTP2_CANCEL);
      }
    }
  }

  close(): void {
    this.#session.destroy();
  }

  /** Waits until the events were read, or their stream has ended. */
  async #settle(): Promise<void> {
    const stream = this.#streams.get(0);
    if (stream === undefined) {
      return;
    }
    const before = this.#answers;
    // After a message that claims to be longer than it is, what follows is a part of it.
    for (let beats = 0; beats < patientBeats && !stream.closed; beats++) {
      const heartbeat = heartbeatEvent({ source: agentSource });
      this.#awaited = heartbeat.eventId;
      stream.write(frame(eventBytes(heartbeat)));
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#settled = resolve;
      stream.once('close', resolve);
      const timer = setTimeout(resolve, 250);
      await promise;
      clearTimeout(timer);
      stream.off('close', resolve);
      if (this.#answers > before) {
        return;
      }
    }
    stream.close(constants.NGHTTP2_CANCEL);
  }

  async #write(index: number, bytes: Buffer): Promise<void> {
    let stream = this.#streams.get(index);
    if (stream === undefined || stream.closed || stream.destroyed) {
      const agent = Math.floor(this.#opened / streamsPerAgent) % this.#agents.length;
      if (this.#opened++ % streamsPerAgent === 0) {
        this.#session.destroy();
        this.#session = connection();
      }
      const [managed = '', autonomous = ''] = this.#agents[agent] ?? [];
      const token = this.#random.chance(0.5) ? managed : autonomous;
      stream = open(this.#session, this.#kinds[index] ?? 'events', token, (chunk) => this.#look(chunk));
      this.#streams.set(index, stream);
    }
    if (stream.write(bytes)) {
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    stream.once('drain', resolve).once('close', resolve);
    await promise;
    stream.off('drain', resolve).off('close', resolve);
  }

  #look(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#tail, chunk]);
    this.hasSeenSecret ||= bytes.includes(`argocd/${secret}`);
    if (this.#awaited !== undefined && bytes.includes(this.#awaited)) {
      this.#awaited = undefined;
      this.#answers++;
      this.#settled();
    }
    this.#tail = bytes.subarray(-100);
  }
}

test(
  `${count} mutated messages over several streams harm nobody (SEED=${seed})`,
  async () => {
    const good = honest();
    const evil = Array.from({ length: attackers }, (_, place) => {
      const agents = start.evil.filter((_, index) => index % attackers === place);
      return new HostileStreams(agents, new Random(seed + place));
    });
    await good.exchange();
    const attack = async (one: HostileStreams) => {
      // What follows a broken frame on its stream is lost, on a busy machine all of these.
      for (let sent = 0; sent < count / attackers && failure === undefined; sent += atOnce) {
        await one.send(atOnce);
        await good.exchange();
      }
    };
    await Promise.all(evil.map(attack));
    expect(failure).toBeUndefined();
    await until(() => good.isTold);
    const { turnMs, bytes, read, misplaced } = await report();
    console.log(`${read} read: at most ${turnMs.toFixed(0)} ms in a turn, ${(bytes / 2 ** 20).toFixed(0)} MiB`);
    const hasSeenSecret = evil.some((one) => one.hasSeenSecret);
    expect({ hasSeenSecret, misplaced }).toEqual({ hasSeenSecret: false, misplaced: 0 });
    expect(read).toBeGreaterThan(count / 3);
    expect(turnMs).toBeLessThan(maxTurnMs);
    expect(bytes).toBeLessThan(maxBytes);
    for (const one of evil) {
      one.close();
    }
    good.close();
  },
  // Ten minutes of an idle machine; others may have most of it.
  effort(150_000, 14_400_000),
);
