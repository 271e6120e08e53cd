import { status as grpcCodes, Server, ServerCredentials } from '@grpc/grpc-js';
import { HAStatusResponse, PromoteRequest, PromoteResponse } from '../../proto/gen/haadminapi/haadmin.ts';

/** The administration of a pair's active principal, played. */
export interface HaAdminStub {
  readonly address: string;
  /** Of each request to promote: whether it was forced. One that is not is refused. */
  readonly forced: boolean[];
  /** Why a demotion is denied; undefined when it is not. */
  denied: string | undefined;
  stop(): void;
}

const state = HAStatusResponse.fromPartial({
  state: 'active',
  preferredRole: 'primary',
  peerAddress: 'other:8404',
  connectedReplicas: 1,
  lastSequenceNum: 7n,
  connectedAgents: 3,
});

/** What it is served with, and the authority that clients' certificates must come from; PEM. */
export interface HaAdminTls {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string;
}

/** Starts it at a loopback address, as in the original: without TLS, or with it, when a client without a certificate fails to connect. */
export async function startHaAdmin(tls?: HaAdminTls): Promise<HaAdminStub> {
  const stub: { readonly forced: boolean[]; denied: string | undefined } = { forced: [], denied: undefined };
  const server = new Server();
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
        stub.forced.push(call.request.force);
        const refusal = { code: grpcCodes.FAILED_PRECONDITION, details: 'the peer is active' };
        return call.request.force ? done(null, { state: 'active' }) : done(refusal);
      },
      Demote: (_: unknown, done: (error: object | null, value?: PromoteResponse) => void) =>
        stub.denied === undefined
          ? done(null, { state: 'replicating' })
          : done({ code: grpcCodes.PERMISSION_DENIED, details: stub.denied }),
    },
  );
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(
          Buffer.from(tls.clientCa),
          [{ cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) }],
          true,
        );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  return Object.assign(stub, { address: `127.0.0.1:${port}`, stop: () => server.forceShutdown() });
}
