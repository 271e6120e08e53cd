import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { livingFor, playAgent } from '../peer/index.ts';
import { messageBytes } from '../recordings/index.ts';
import type { GoCall } from './go-calls.ts';
import { readEvent } from './go-event.ts';
import { GoPeer, type GoServer } from './go-peer.ts';
import { makeMaterial, type PeerCertificates } from './material.ts';
import { readMessage, writeMessage } from './protobuf.ts';
import { type HeaderLine, headerLines, recordedAnswer, recordedLogin } from './recorded-calls.ts';
import { recordedEvents } from './recordings.ts';
import * as schemas from './schemas.ts';

// Our client against a server of grpc-go with the recorded messages of the originals; the programs are not involved.

const { methods } = schemas;
let go: GoPeer;
let material: PeerCertificates;

beforeAll(async () => {
  [go, material] = await Promise.all([GoPeer.start(), makeMaterial()]);
});
afterAll(() => go?.stop());

let stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

describe('our client and a Go principal', () => {
  interface Behaviour {
    /** The only version that it takes. */
    readonly version?: string;
    /** How long the token of a login lives. */
    readonly tokenSeconds?: number;
    readonly address?: string;
  }

  async function startPrincipal(behaviour: Behaviour = {}) {
    const { version = '99.9.9-unreleased', tokenSeconds, address } = behaviour;
    const calls: GoCall[] = [];
    const requests: Buffer[] = [];
    const streams: { call: GoCall; messages: Buffer[] }[] = [];
    const server: GoServer = await go.listen({
      tls: material.server,
      ...(address === undefined ? {} : { address }),
      accept: (call) => {
        calls.push(call);
        const messages: Buffer[] = [];
        if (call.method === methods.subscribe) {
          streams.push({ call, messages });
        }
        return {
          message: (bytes) => {
            messages.push(bytes);
            if (call.method === methods.subscribe) {
              return;
            }
            requests.push(bytes);
            answer(call, bytes);
          },
          halfClose: () => call.method === methods.subscribe && call.finish(),
        };
      },
    });
    const answer = (call: GoCall, bytes: Buffer) => {
      const wanted =
        call.method !== methods.authenticate || readMessage(schemas.authRequest, bytes).version === version;
      if (!wanted) {
        call.finish('FailedPrecondition', 'version mismatch');
        return;
      }
      call.send(
        call.method === methods.version
          ? writeMessage(schemas.versionResponse, { version: `argocd-agent-${version}` })
          : writeMessage(schemas.authResponse, tokensFor(call)),
      );
      call.finish();
    };
    const tokensFor = ({ method }: GoCall) => {
      const tokens = recordedAnswer('agent-managed');
      return tokenSeconds === undefined || method === methods.refreshToken
        ? tokens
        : { ...tokens, accessToken: livingFor(String(tokens.accessToken), tokenSeconds) };
    };
    stops.push(() => server.stop());
    return { server, calls, requests, streams };
  }

  async function startAgent(address: string, options: { compression?: boolean; version?: string; name?: string } = {}) {
    const { cert, key, ca } = await material.client(options.name ?? 'agent-managed');
    const agent = playAgent(address, {
      tls: () => ({ ca, cert, key }),
      version: options.version ?? '99.9.9-unreleased',
      agentNamespace: 'argocd-managed',
      compression: options.compression ?? false,
    });
    stops.push(agent.stop);
    return agent;
  }

  test('logs in with the recorded request, and with the recorded metadata', async () => {
    for (const [transport, compression] of [
      ['default', false],
      ['compression', true],
    ] as const) {
      // Tokens that are about to end make it renew them, so that all three calls are seen.
      const principal = await startPrincipal({ tokenSeconds: 20 });
      const agent = await startAgent(principal.server.address, { compression });
      await until(() => expect(agent.streams).toHaveLength(1));
      expect(principal.requests[0]).toEqual(recordedLogin('managed', compression ? 'compression' : 'connect'));
      expect(principal.calls.map(({ method }) => method)).toEqual([
        methods.authenticate,
        methods.refreshToken,
        methods.subscribe,
      ]);
      for (const call of principal.calls) {
        const recorded = headerLines().find(
          (line) => line.rpc === call.method && line.dir === 'agent->principal' && line.transport === transport,
        );
        // No renewal was recorded with compression.
        if (recorded !== undefined) {
          expectSameHeaders(call, recorded);
        } else {
          expect([transport, call.method]).toEqual(['compression', methods.refreshToken]);
        }
        expect(call.subject).toBe('CN=agent-managed');
      }
    }
  });

  /** Metadata of a call of ours against the recorded one; what may differ is named here with the reason. */
  function expectSameHeaders(call: GoCall, recorded: HeaderLine): void {
    const ours = Object.fromEntries(Object.entries(call.metadata).map(([name, values]) => [name, values.join()]));
    expect(call.compression).toBe(recorded.compression ?? '');
    expect(ours).toEqual({
      ...recorded.headers,
      // Go names the host alone because its TLS credentials name one; servers do not look at it.
      ':authority': expect.stringMatching(/^127\.0\.0\.1(:\d+)?$/),
      // The stack names itself after the agent, and the originals' stack is not ours.
      'user-agent': expect.stringMatching(/^argocd-agent\/v0\.0\.1 /),
      // A list: what we can read besides is our matter.
      'grpc-accept-encoding': expect.stringMatching(/(^|,)gzip(,|$)/),
      ...(recorded.headers.authorization === undefined ? {} : { authorization: expect.stringMatching(/^ey[^ ]+$/) }),
    });
  }

  test('a principal that insists on its version is asked for it, and told that one from then on', async () => {
    const principal = await startPrincipal({ version: '1.2.3' });
    const agent = await startAgent(principal.server.address, { version: '0.1.0' });
    await until(() => expect(agent.streams).toHaveLength(1));
    principal.streams[0]?.call.finish('Unavailable', 'transport is closing');
    await until(() => expect(agent.streams).toHaveLength(2));
    const once = [methods.authenticate, methods.version, methods.authenticate, methods.subscribe];
    expect(principal.calls.map(({ method }) => method)).toEqual([...once, methods.authenticate, methods.subscribe]);
    expect(agent.failures.map(({ code }) => code)).toEqual(['not-accepting']);
  });

  test('takes every recorded event of a Go principal, and Go reads what we send', async () => {
    const principal = await startPrincipal();
    const agent = await startAgent(principal.server.address);
    await until(() => expect(principal.streams).toHaveLength(1));
    const { call, messages } = principal.streams[0] as { call: GoCall; messages: Buffer[] };
    const sent = recordedEvents('app-managed', 'agent-managed').filter(({ line }) => line.dir === 'principal->agent');
    for (const { line } of sent) {
      call.send(messageBytes(line));
    }
    await until(() => expect(agent.received).toHaveLength(sent.length));
    for (const event of agent.received) {
      agent.streams[0]?.send({ ...event, source: 'agent://agent-managed' });
    }
    await until(() => expect(messages).toHaveLength(sent.length));
    expect(messages.map((bytes) => readEvent(bytes))).toEqual(
      sent.map(({ event }) => ({ ...event, source: 'agent://agent-managed' })),
    );
  });

  test('comes back however the stream or the server ends', async () => {
    let principal = await startPrincipal();
    const agent = await startAgent(principal.server.address);
    const endings: ((call: GoCall) => unknown)[] = [
      (call) => call.finish('OK'),
      (call) => call.finish('Unavailable', 'transport is closing'),
      (call) => call.finish('Unauthenticated', 'invalid authentication data'),
      (call) => call.finish('Canceled', 'context canceled'),
      (call) => call.finish('Internal', 'stream terminated by RST_STREAM'),
      (call) => call.finish('Unknown', 'anything'),
    ];
    for (const [index, end] of endings.entries()) {
      await until(() => expect(agent.streams).toHaveLength(index + 1));
      await until(() => expect(principal.streams).toHaveLength(index + 1));
      end((principal.streams[index] as { call: GoCall }).call);
    }
    await until(() => expect(agent.streams).toHaveLength(endings.length + 1));
    const { address } = principal.server;
    for (const graceful of [false, true]) {
      const count = agent.streams.length;
      const stopped = principal.server.stop(graceful);
      // A server that waits for its streams says goodbye first; an agent that stayed would hold it up for ever.
      if (graceful) {
        principal.streams.at(-1)?.call.finish('Unavailable', 'shutting down');
      }
      await stopped;
      principal = await startPrincipal({ address });
      await until(() => expect(agent.streams.length).toBeGreaterThan(count));
    }
  });

  test('a Go principal that does not know the authority of our certificate is told apart from one that is away', async () => {
    const foreign = await makeMaterial();
    const principal = await go.listen({
      tls: { ...material.server, ca: foreign.authority.certificate },
      accept: () => ({ message: () => undefined }),
    });
    stops.push(() => principal.stop());
    const agent = await startAgent(principal.address);
    await until(() => expect(agent.failures.length).toBeGreaterThan(0));
    expect(agent.failures[0]?.code).toBe('certificate-rejected');
  });
});
