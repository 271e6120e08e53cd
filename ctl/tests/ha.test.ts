import { status as grpcCodes, Server, ServerCredentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HAStatusResponse, PromoteRequest, PromoteResponse } from '../../proto/gen/haadminapi/haadmin.ts';
import { runCtl } from '../testing/run-ctl.ts';

const state = HAStatusResponse.fromPartial({
  state: 'active',
  preferredRole: 'primary',
  peerAddress: 'other:8404',
  connectedReplicas: 1,
  lastSequenceNum: 7n,
  connectedAgents: 3,
});
const forced: boolean[] = [];
let server: Server;
let address: string;
beforeAll(async () => {
  server = new Server();
  const method = <Q, A>(
    name: string,
    decode: (bytes: Buffer) => Q,
    encode: (message: A) => { finish(): Uint8Array },
  ) => ({
    path: `/haadminapi.HAAdmin/${name}`,
    requestStream: false,
    responseStream: false,
    requestDeserialize: decode,
    requestSerialize: () => Buffer.alloc(0),
    responseSerialize: (message: A) => Buffer.from(encode(message).finish()),
    responseDeserialize: () => undefined as never,
  });
  server.addService(
    {
      Status: method('Status', () => ({}), HAStatusResponse.encode),
      Promote: method('Promote', (bytes) => PromoteRequest.decode(bytes), PromoteResponse.encode),
      Demote: method('Demote', () => ({}), PromoteResponse.encode),
    },
    {
      Status: (_: unknown, done: (error: null, value: HAStatusResponse) => void) => done(null, state),
      Promote: (call: { request: PromoteRequest }, done: (error: object | null, value?: PromoteResponse) => void) => {
        forced.push(call.request.force);
        const refusal = { code: grpcCodes.FAILED_PRECONDITION, details: 'the peer is active' };
        return call.request.force ? done(null, { state: 'active' }) : done(refusal);
      },
      Demote: (_: unknown, done: (error: null, value: PromoteResponse) => void) => done(null, { state: 'replicating' }),
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  address = `127.0.0.1:${port}`;
});
afterAll(() => server?.forceShutdown());

test('status in three formats', async () => {
  expect((await runCtl(['ha', 'status', '-a', address])).out).toBe(
    [
      'HA Status',
      '---------',
      'State:             active',
      'Preferred Role:    primary',
      'Peer Address:      other:8404',
      'Connected Replicas: 1',
      'Connected Agents:  3',
      'Last Sequence:     7',
      '',
    ].join('\n'),
  );
  expect(JSON.parse((await runCtl(['ha', 'status', '-a', address, '-o', 'json'])).out)).toEqual({
    state: 'active',
    preferred_role: 'primary',
    peer_address: 'other:8404',
    connected_replicas: 1,
    last_sequence_num: 7,
    connected_agents: 3,
  });
  expect((await runCtl(['ha', 'status', '-a', address, '-o', 'yaml'])).out).toContain('peerreachable: false\n');
  expect(await runCtl(['ha', 'status', '-a', address, '-o', 'xml'])).toMatchObject({
    code: 1,
    err: '[FATAL]: unknown output format: xml\n',
  });
});

test('promote and demote ask first, unless forced', async () => {
  const refused = await runCtl(['ha', 'promote', '-a', address], { input: 'n\n' });
  expect(refused).toMatchObject({ code: 0, out: expect.stringContaining('Proceed? [y/N]: Operation cancelled.\n') });
  expect(forced).toEqual([]);
  expect(await runCtl(['ha', 'promote', '-a', address], { input: 'y\n' })).toMatchObject({
    code: 1,
    err: '[FATAL]: promote failed: the peer is active\n',
  });
  expect((await runCtl(['ha', 'promote', '-a', address, '-f'])).out).toBe('Promoted. State is now: active\n');
  expect(forced).toEqual([false, true]);
  expect((await runCtl(['ha', 'demote', '-a', address, '-f'])).out).toBe('Demoted. State is now: replicating\n');
});

test('a principal that is not there', async () => {
  const { code, err } = await runCtl(['ha', 'status', '-a', '127.0.0.1:1', '-t', '5s']);
  expect([code, err]).toEqual([1, expect.stringContaining('failed to get HA status: ')]);
});
