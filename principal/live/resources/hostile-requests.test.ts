import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Random } from '../../../e2e/random/index.ts';
import { maxGrownBytes, maxTurnMs, TurnMeter } from '../../../e2e/random/meters.ts';
import { effort, until } from '../../../lib/base/testing.ts';
import type { KeyCertificate } from '../../../lib/pki/index.ts';
import { eventTypes, LogStreamData, messageEvent, targets, type WireEvent } from '../../../lib/wire/index.ts';
import { Bodies } from '../agent-bodies.ts';
import { AgentRequests } from '../agent-requests.ts';
import { FakeStream } from '../testing/fake-stream.ts';
import { serveProxy } from '../testing/served-proxy.ts';
import type { ResourceProxy } from './resource-proxy.ts';

// Random requests, valid and not, from a caller that may act for the agent `edge`. The agents answer in every way that they can.
// RESOURCE_REQUESTS_SEED=<number> repeats a run.

let authority: KeyCertificate;
let client: KeyCertificate;
let proxy: ResourceProxy;
let random: Random;
/** Chooses the answers: requests and answers must not depend on each other's order. */
let choice: Random;
/** Agents that were asked. */
const asked = new Set<string>();

const bodies = new Bodies();
const exchange = new AgentRequests((agent, event) => {
  asked.add(agent);
  setImmediate(() => answer(agent, event));
  return agent !== 'away';
});

beforeAll(async () => {
  ({ proxy, authority, client } = await serveProxy({
    exchange,
    bodies,
    // A log and a terminal find no agent, so that they end.
    send: () => false,
    isConnected: () => false,
    connected: () => Promise.reject(new Error('away')),
  }));
});
afterAll(() => proxy?.close());

const answerOf = (agent: string) => JSON.stringify({ kind: 'Answer', agent, text: `of ${agent}` });

/** An agent answers, or does something else first. */
function answer(agent: string, { eventId: uuid }: WireEvent): void {
  const event = (payload: unknown) =>
    messageEvent(targets.resource, eventTypes.response, payload as object, { source: '' }, { eventId: uuid });
  const ok = { uuid, status: 200, resource: answerOf(agent), contentType: 'application/json' };
  // Another agent knows the UUID.
  const forged = { ...ok, resource: answerOf('other') };
  expect(exchange.answered('other', event(forged))).toBe(false);
  const stranger = new FakeStream('other');
  stranger
    .servedBy((opened) => bodies.serve(opened))
    .message(LogStreamData.fromPartial({ requestUuid: uuid, data: Buffer.from('of other') }));
  expect(stranger.code).toBeDefined();
  const ways: readonly (() => void)[] = [
    () => exchange.answered(agent, event(ok)),
    () => exchange.answered(agent, event({ ...ok, contentType: undefined })),
    () => exchange.answered(agent, event({ ...ok, contentType: 'text/html\r\nset-cookie: a=b' })),
    () => exchange.answered(agent, event({ ...ok, status: choice.pick([100, 101, 199, 600, 0, -1, 'x', null]) })),
    () =>
      exchange.answered(agent, event({ ...ok, status: choice.pick([201, 202, 204, 304, 400, 404, 409, 418, 500]) })),
    () => exchange.answered(agent, event({ ...ok, status: 403, resource: '' })),
    () => exchange.answered(agent, event({ ...ok, uuid: 'another' })),
    () => exchange.answered(agent, event({})),
    () => exchange.answered(agent, { ...event({}), data: Buffer.from('{"uuid":') }),
    () => exchange.disconnected(agent),
    () => {
      const stream = new FakeStream(agent);
      const handlers = stream.servedBy((opened) => bodies.serve(opened));
      const send = (message: Partial<LogStreamData>) =>
        handlers.message(LogStreamData.fromPartial({ requestUuid: uuid, ...message }));
      const steps = [
        () => exchange.answered(agent, event({ ...ok, resource: '', streamed: true })),
        () => send({ data: Buffer.from(answerOf(agent)) }),
      ];
      for (const step of choice.shuffle(steps)) {
        step();
      }
      choice.pick([() => send({ eof: true }), () => handlers.closed(), () => send({ error: 'broken', eof: true })])();
    },
  ];
  choice.pick(ways)();
}

const methods = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  'M-SEARCH',
  'FOO',
  'get',
];
const paths = [
  '/api',
  '/api/v1',
  '/api/v1/namespaces/shop/pods/web',
  '/api/v1/namespaces/shop/pods/web/log',
  '/api/v1/namespaces/shop/pods/web/exec?command=sh',
  '/api/v1/namespaces/shop/pods/web/portforward',
  '/api/v1/namespaces/shop/configmaps?watch=true',
  '/apis/apps/v1/namespaces/shop/deployments/web',
  '/apis/apps/v1/deployments?agentName=other',
  '/apis/apps/v1/deployments?agentName=edge',
  '/version',
  '/openapi/v3',
  '/metrics',
  '/',
  '*',
  'https://other/api/v1/pods',
  '//api/v1/pods',
  '/api/v1/../v1/pods',
  '/api/v1/namespaces/%2e%2e/pods',
  '/api/v1/namespaces/shop/pods/a%0d%0ab',
];
const headers = [
  'Host: proxy',
  'Accept: application/json;as=Table',
  'Accept: \u0000',
  'Content-Type: application/merge-patch+json',
  'Impersonate-User: admin',
  'impersonate-extra-x: y',
  'Authorization: Bearer nonsense',
  'Authorization: Basic b3RoZXI6',
  'Upgrade: websocket',
  'Upgrade: SPDY/3.1',
  'Connection: Upgrade',
  'Connection: keep-alive, Upgrade',
  'Expect: 100-continue',
  'Expect: something',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked, identity',
  'Content-Length: 5',
  'Content-Length: 7',
  'Content-Length: -1',
  'Content-Length: 999999999999999999999',
  'X: y',
  ' folded: header',
  'no colon',
  'X-Agent: other',
  `X-Long: ${'x'.repeat(20_000)}`,
];
const requestBodies = ['', 'hello', '{"kind":"ConfigMap"}', '5\r\nhello\r\n0\r\n\r\n', 'zz\r\n', '0\r\n\r\n', '\r\n'];

/** Headers that leave a request valid HTTP. */
const harmless = headers.filter((field) =>
  /^(Host|Accept: a|Content-Type|Imp|imp|Auth|Expect: s|X: y|X-Agent)/.test(field),
);

/** The bytes of one valid request. */
function request(): Buffer {
  const method = random.chance(0.6)
    ? 'GET'
    : random.pick(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']);
  const fields = random.chance(0.6) ? [] : [random.pick(harmless)];
  const body = method === 'GET' ? '' : random.pick(requestBodies);
  const length = body === '' ? [] : [`Content-Length: ${body.length}`];
  const url = random.pick(paths);
  return Buffer.from([`${method} ${url} HTTP/1.1`, 'Host: proxy', ...fields, ...length, '', body].join('\r\n'));
}

/** The bytes of one request that may be invalid in several ways. */
function hostileRequest(): Buffer {
  const url = random.pick(paths).replace(/[a-z]/, (letter) => random.pick([letter, '%', ' ', '\\', 'é', '/', ';']));
  const fields = Array.from({ length: random.integer(0, 4) }, () => random.pick(headers));
  const version = random.chance(0.1) ? random.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/9', '']) : 'HTTP/1.1';
  const lines = [`${random.pick(methods)} ${url} ${version}`, 'Host: proxy', ...fields, '', random.pick(requestBodies)];
  const bytes = Buffer.from(lines.join('\r\n'), 'latin1');
  if (random.chance(0.2)) {
    bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255);
  }
  return bytes;
}

/** The requests of one connection. A hostile one ends the connection, so that few of them come after others. */
function requestsOfConnection(): Buffer[] {
  const valid = () => Array.from({ length: random.integer(1, 20) }, request);
  return random.pick([valid, () => [hostileRequest()], () => [...valid(), hostileRequest(), ...valid()]])();
}

/** The last request of a connection. Repeated, so that one of them is read as a request after whatever stands before. */
const goodbye = Buffer.from('GET /api/v1/pods HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n');

interface Received {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Responses in the bytes of a connection. The last one may be cut: then it is left out. */
function responsesIn(bytes: string, what: string): Received[] {
  const responses: Received[] = [];
  let rest = bytes;
  while (rest !== '') {
    const head = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n/.exec(rest);
    if (head === null) {
      expect(rest, what).toMatch(/^HTTP\/1\.1 \d{3} [^\n]*(\r\n[^\n]+)*\r?\n?\r?$/);
      break;
    }
    const [all, code = '', fields = ''] = head;
    const status = Number(code);
    rest = rest.slice(all.length);
    if (status < 200) {
      expect(status, what).toBe(100);
      continue;
    }
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(fields)?.[1]?.trim();
    expect(field('set-cookie'), what).toBeUndefined();
    const contentType = field('content-type') ?? '';
    const length = field('content-length');
    let body = '';
    if (status !== 204 && status !== 304) {
      if (field('transfer-encoding') === 'chunked') {
        for (;;) {
          const [line = '', size = ''] = /^([0-9a-f]+)\r\n/.exec(rest) ?? [];
          const bytes = Number.parseInt(size, 16);
          if (line === '' || rest.length < line.length + bytes + 2) {
            // The agent's body broke off.
            return responses;
          }
          body += rest.slice(line.length, line.length + bytes);
          rest = rest.slice(line.length + bytes + 2);
          if (bytes === 0) {
            break;
          }
        }
      } else {
        expect(length, what).toBeDefined();
        if (rest.length < Number(length)) {
          return responses;
        }
        body = rest.slice(0, Number(length));
        rest = rest.slice(Number(length));
      }
    }
    responses.push({ status, contentType, body });
  }
  return responses;
}

/** Whether a response is a refusal of the principal in Kubernetes' form, or the answer of the agent. */
function isExpected({ status, contentType, body }: Received): boolean {
  if (body.includes('of edge') || status === 204 || status === 304) {
    return true;
  }
  // Kubernetes' clients show the text of errors about discovery. The version of an agent of the original is made up.
  if (contentType.startsWith('text/plain') || (status === 200 && body.includes('+argocd-agent'))) {
    return true;
  }
  return new RegExp(`^\\{"kind":"Status",.*"message":".+",.*"code":${status}\\}$`).test(body);
}

async function open(): Promise<{ socket: TLSSocket; text: () => string; isClosed: () => boolean }> {
  const socket = connect({
    host: '127.0.0.1',
    port: proxy.port,
    ca: authority.certificate,
    cert: client.certificate,
    key: client.key,
    ALPNProtocols: ['http/1.1'],
  });
  let text = '';
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]);
  return { socket, text: () => text, isClosed: () => isClosed };
}

test(
  'whatever is requested, every response is a Status or an answer of the own agent',
  async () => {
    expect(new X509Certificate(client.certificate).subject).toBe('CN=edge');
    const seed = Number(process.env.RESOURCE_REQUESTS_SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`RESOURCE_REQUESTS_SEED=${seed}`);
    const statuses = new Map<number, number>();
    const run = async (at: number) => {
      random = new Random(seed + at);
      choice = new Random(seed + at);
      const list = requestsOfConnection();
      const isCut = random.chance(0.1);
      const whole = Buffer.concat([...list, ...(isCut ? [] : Array.from({ length: 40 }, () => goodbye))]);
      const sent = isCut ? whole.subarray(0, random.integer(0, whole.length)) : whole;
      const what = `RESOURCE_REQUESTS_SEED=${seed + at}`;
      const { socket, text, isClosed } = await open();
      socket.write(sent);
      if (isCut) {
        socket.end();
      }
      await until(() => isClosed(), { details: () => `${what}\n${text()}\n${sent.toString('latin1')}` });
      expect(text(), what).not.toContain('of other');
      for (const response of responsesIn(text(), what)) {
        expect(isExpected(response), `${what}: ${JSON.stringify(response)}`).toBe(true);
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      }
      return list.length;
    };
    const meter = new TurnMeter();
    let requests = 0;
    for (let at = 0; requests < effort(1_000, 100_000); at++) {
      requests += await meter.measure(() => run(at));
    }
    meter.stop();
    console.log(`${requests} requests: ${meter}`);
    expect(meter.longestMs).toBeLessThan(maxTurnMs);
    expect(meter.grownBytes).toBeLessThan(maxGrownBytes);
    expect([...asked]).toEqual(['edge']);
    // Requests were served, and refused in different ways.
    for (const status of [200, 400, 401, 403, 404, 500, 502]) {
      expect(statuses.get(status) ?? 0, `responses with ${status}`).toBeGreaterThan(0);
    }
  },
  effort(300_000, 3_600_000),
);

test('a CONNECT is answered, and ends the connection', async () => {
  const { socket, text, isClosed } = await open();
  socket.write('CONNECT proxy:443 HTTP/1.1\r\nHost: proxy:443\r\n\r\n');
  await until(() => isClosed(), { details: text });
  expect(responsesIn(text(), 'CONNECT')).toEqual([expect.objectContaining({ status: 403 })]);
});

test('an offer of another protocol is answered, and ends the connection', async () => {
  choice = new Random(1);
  const { socket, text, isClosed } = await open();
  socket.write('GET / HTTP/1.1\r\nHost: proxy\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
  await until(() => isClosed(), { details: text });
  expect(text()).toMatch(/^HTTP\/1\.1 404 .*Connection: close.*is not served by the resource proxy/s);
});

test('a body that cannot be read after an offer of another protocol is answered in the end', async () => {
  const { socket, text, isClosed } = await open();
  const offer = 'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nTransfer-Encoding: chunked';
  socket.write(`POST /api/v1/namespaces/shop/configmaps HTTP/1.1\r\nHost: proxy\r\n${offer}\r\n\r\nno chunk`);
  await until(() => isClosed(), { details: text });
  expect(responsesIn(text(), 'cut').map(({ status }) => status)).toEqual([408]);
});
