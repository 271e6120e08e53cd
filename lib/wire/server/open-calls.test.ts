import { once } from 'node:events';
import { connect } from 'node:http2';
import { afterEach, expect, test } from 'vitest';
import { noLog, playPrincipal } from '../../../e2e/peer/index.ts';
import { until } from '../../base/testing.ts';
import type { ServerConnection } from '../grpc/server/server.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';
import { OpenCalls } from './open-calls.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

/** Something that ends. */
class Ending {
  readonly #listeners: (() => void)[] = [];
  readonly onOver = (listener: () => void) => void this.#listeners.push(listener);
  readonly onClose = this.onOver;
  end(): void {
    for (const listener of this.#listeners.splice(0)) {
      listener();
    }
  }
}

const callOf = (ending: Ending) => ending as unknown as ServerCall;
const connectionOf = (ending: Ending, encrypted = true) =>
  Object.assign(ending, { encrypted }) as unknown as ServerConnection;

test('an agent has 1,000 calls at most, on all its connections, and others have their own', () => {
  const open = new OpenCalls();
  const calls = Array.from({ length: 1_000 }, () => new Ending());
  const refusals = calls.map((call, index) =>
    open.admit('one', callOf(call), connectionOf(new Ending(), index % 2 === 0 && index < 500)),
  );
  expect(refusals.filter((refusal) => refusal !== undefined)).toEqual([]);
  const once = () => open.admit('one', callOf(new Ending()), connectionOf(new Ending()));
  expect(once()).toBe('it has 1000 calls open');
  expect(open.admit('two', callOf(new Ending()), connectionOf(new Ending()))).toBeUndefined();
  calls[0]?.end();
  expect(once()).toBeUndefined();
  expect(once()).toBe('it has 1000 calls open');
});

test('an agent has 256 connections at most, also without a call on them, but those of a proxy are not its own', () => {
  const open = new OpenCalls();
  const begin = (connection: Ending, encrypted = true) => {
    const call = new Ending();
    const refusal = open.admit('one', callOf(call), connectionOf(connection, encrypted));
    call.end();
    return refusal;
  };
  const connections = Array.from({ length: 256 }, () => new Ending());
  expect(connections.map((connection) => begin(connection)).every((refusal) => refusal === undefined)).toBe(true);
  expect(begin(new Ending())).toBe('it has 256 connections');
  expect(begin(connections[0] as Ending)).toBeUndefined();
  expect(begin(new Ending(), false)).toBeUndefined();
  connections[0]?.end();
  expect(begin(new Ending())).toBeUndefined();
  expect(begin(new Ending())).toBe('it has 256 connections');
});

test('a connection has 16 requests at most at the same time', () => {
  const open = new OpenCalls();
  const connection = connectionOf(new Ending());
  const requests = Array.from({ length: 16 }, () => new Ending());
  expect(requests.every((request) => open.admitRequest(callOf(request), connection))).toBe(true);
  expect(open.admitRequest(callOf(new Ending()), connection)).toBe(false);
  requests[3]?.end();
  expect(open.admitRequest(callOf(new Ending()), connection)).toBe(true);
  expect(open.admitRequest(callOf(new Ending()), connection)).toBe(false);
});

test('live streams that an agent opens and forgets are refused above the limit, and free their place', async () => {
  const said: string[] = [];
  const silent = () => undefined;
  const handlers = () => ({ message: silent, closed: silent });
  const { server, tokens } = await playPrincipal({
    live: { logs: handlers, terminal: handlers },
    logger: { ...noLog, warn: (_, text) => void said.push(text) },
  });
  stops.push(() => server.close());
  const connection = async () => {
    const session = connect(`http://127.0.0.1:${server.port}`);
    session.on('error', silent);
    stops.push(() => session.destroy());
    await once(session, 'connect');
    return session;
  };
  const results: Record<string, number> = {};
  const call = async (session: Awaited<ReturnType<typeof connection>>, agent: string) => {
    const authorization = (await tokens.issue({ agent, mode: 'managed' })).accessToken;
    const stream = session.request({
      ':method': 'POST',
      ':path': '/principal.apis.logstreamapi.LogStreamService/StreamLogs',
      'content-type': 'application/grpc',
      authorization,
    });
    stream.on('error', silent);
    const [headers] = (await once(stream, 'response')) as [Record<string, string>];
    const result = `${agent} ${headers['grpc-status'] ?? 'open'}`;
    results[result] = (results[result] ?? 0) + 1;
    return stream;
  };
  const sessions = await Promise.all(Array.from({ length: 3 }, connection));
  const first = await Promise.all(sessions.map((session) => call(session, 'one')));
  await until(() => expect(sessions.map(({ remoteSettings }) => remoteSettings.maxConcurrentStreams)).not.toContain(8));
  await Promise.all(sessions.flatMap((session) => Array.from({ length: 400 }, () => call(session, 'one'))));
  expect(results).toEqual({ 'one open': 1_000, 'one 14': 203 });
  expect(said).toContain('A call of an agent is refused: it has 1000 calls open');
  await call(sessions[0] as Awaited<ReturnType<typeof connection>>, 'two');
  first[0]?.close();
  await until(async () => {
    await call(sessions[1] as Awaited<ReturnType<typeof connection>>, 'one');
    expect(results['one open']).toBe(1_001);
  });
  expect(results['two open']).toBe(1);
});
