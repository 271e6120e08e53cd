import { afterEach, beforeAll, expect, test } from 'vitest';
import { playAgent, playPrincipal } from '../../../e2e/peer/index.ts';
import { until } from '../../base/testing.ts';
import {
  type GrpcError,
  grpcStatus,
  type LiveStreamService,
  LogStreamData,
  LogStreamResponse,
  TerminalStreamData,
} from '../index.ts';
import { createTestCa, type TestCa, type TestCertificate } from '../testing/certificates.ts';

const clean: (() => Promise<unknown>)[] = [];

let ca: TestCa;
let material: TestCertificate;
beforeAll(async () => {
  ca = await createTestCa();
  material = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
});
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

/** An agent connected to a principal that serves live streams so. */
async function connect(live: LiveStreamService | undefined, transport: 'grpc' | 'websocket' = 'grpc') {
  const principal = await playPrincipal({
    tls: material,
    webSocket: transport === 'websocket',
    ...(live === undefined ? {} : { live }),
  });
  const agent = playAgent(principal.port, { tls: () => ({ ca: ca.cert }), transport });
  clean.push(async () => {
    await agent.stop();
    await principal.close();
  });
  return agent.calls;
}

const noTerminal: LiveStreamService['terminal'] = (stream) => {
  stream.finish(grpcStatus.unimplemented, 'none');
  return { message: () => undefined, closed: () => undefined };
};
const noLogs: LiveStreamService['logs'] = noTerminal as unknown as LiveStreamService['logs'];

test.each(['grpc', 'websocket'] as const)(
  'logs go to the principal, and it answers at the end, over %s',
  async (via) => {
    const received: string[] = [];
    const calls = await connect(
      {
        terminal: noTerminal,
        logs: (stream) => ({
          message: ({ data, eof }) => {
            received.push(`${stream.agent}: ${data}`);
            if (!eof) {
              return;
            }
            stream.send(LogStreamResponse.fromPartial({ status: 200 }));
            stream.finish();
          },
          closed: () => received.push('closed'),
        }),
      },
      via,
    );
    const heard: unknown[] = [];
    const stream = await calls.logs({
      message: ({ status }) => heard.push(status),
      closed: (error) => heard.push(error),
    });
    stream.send(LogStreamData.fromPartial({ requestUuid: 'u', data: Buffer.from('a line\n') }));
    stream.send(LogStreamData.fromPartial({ requestUuid: 'u', eof: true }));
    stream.halfClose();
    await until(() => heard.length === 2 && received.length === 3);
    expect(heard).toEqual([200, undefined]);
    expect(received).toEqual(['one: a line\n', 'one: ', 'closed']);
  },
);

test('a terminal speaks both ways; the principal ends it with a status, the agent by giving it up', async () => {
  const ends: string[] = [];
  const calls = await connect({
    logs: noLogs,
    terminal: (stream) => ({
      message: ({ data }) => {
        if (String(data) === 'exit') {
          stream.finish(grpcStatus.canceled, 'the browser has left');
        } else {
          stream.send(TerminalStreamData.fromPartial({ data: Buffer.from(`you said ${data}`) }));
        }
      },
      closed: () => ends.push(stream.agent),
    }),
  });
  const said: string[] = [];
  let end: GrpcError | undefined;
  const handlers = {
    message: ({ data }: TerminalStreamData) => void said.push(String(data)),
    closed: (error?: GrpcError) => {
      end = error;
    },
  };
  const first = await calls.terminal(handlers);
  first.send(TerminalStreamData.fromPartial({ data: Buffer.from('ls') }));
  await until(() => said.length === 1);
  first.send(TerminalStreamData.fromPartial({ data: Buffer.from('exit') }));
  await until(() => end !== undefined);
  expect(said).toEqual(['you said ls']);
  expect([end?.code, end?.details]).toEqual([grpcStatus.canceled, 'the browser has left']);
  const second = await calls.terminal(handlers);
  second.send(TerminalStreamData.fromPartial({ data: Buffer.from('ls') }));
  await until(() => said.length === 2);
  second.cancel();
  await until(() => ends.length === 2);
});

test('a principal that does not read makes the agent wait, in bounded memory', async () => {
  let resume: (() => void) | undefined;
  let bytes = 0;
  const calls = await connect({
    terminal: noTerminal,
    logs: (stream) => {
      stream.pause();
      resume = () => stream.resume();
      return {
        message: ({ data }) => {
          bytes += data.length;
        },
        closed: () => undefined,
      };
    },
  });
  const stream = await calls.logs({ message: () => undefined, closed: () => undefined });
  const chunk = LogStreamData.fromPartial({ data: Buffer.alloc(64 * 1024) });
  let sent = 0;
  const fill = () => {
    do {
      sent++;
    } while (stream.send(chunk) && sent < 10_000);
  };
  stream.onDrain(fill);
  fill();
  // What fits into the windows of both sides, and no more.
  await until(() => resume !== undefined);
  expect(sent).toBeLessThan(1_000);
  expect(bytes).toBe(0);
  stream.onDrain(() => undefined);
  resume?.();
  await until(() => bytes === sent * chunk.data.length);
});

test('a principal without live data refuses the call', async () => {
  const calls = await connect(undefined);
  const { promise, resolve } = Promise.withResolvers<GrpcError | undefined>();
  await calls.logs({ message: () => undefined, closed: resolve });
  expect((await promise)?.code).toBe(grpcStatus.unimplemented);
});
