import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createServer, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import {
  JWTBundlesResponse,
  JWTSVIDRequest,
  JWTSVIDResponse,
  X509SVIDResponse,
} from '../../proto/gen/workloadapi/workload.ts';
import type { JwtSigner } from './testing/jwt.ts';

export { createJwtSigner, type JwtSigner } from './testing/jwt.ts';
export { issueSvid } from './testing/svid.ts';

/** An identity that an endpoint gives, PEM. */
export interface GivenSvid {
  readonly id: string;
  readonly certificate: string;
  readonly key: string;
  readonly bundle: readonly string[];
  /** The authorities of other trust domains, by their SPIFFE IDs. */
  readonly federated?: Readonly<Record<string, readonly string[]>>;
  /** What signs its JWT-SVIDs; none are given without it. */
  readonly signer?: JwtSigner;
  /** The keys of trust domains, by their SPIFFE IDs. Default: none. */
  readonly jwtBundles?: Readonly<Record<string, readonly JwtSigner[]>>;
}

/** A Workload API on a socket of this machine. */
export interface WorkloadEndpoint {
  /** As `--spire-agent-socket` takes it. */
  readonly address: string;
  /** How many streams were opened. */
  readonly streams: number;
  /** How many JWT-SVIDs were given. */
  readonly tokens: number;
  /** Gives all workloads this identity from now on; undefined: none. */
  give(svid: GivenSvid | undefined): void;
  /** Ends the streams, as an agent of SPIRE that is restarted. */
  drop(): void;
  stop(): Promise<void>;
}

/** The calls that go on, with what they answer. */
const followed: Readonly<Record<string, (given: GivenSvid) => Uint8Array>> = {
  FetchX509SVID: x509Answer,
  FetchJWTBundles: bundlesAnswer,
};

/**
 * Starts a Workload API as its specification has it: it refuses requests without the header `workload.spiffe.io`, answers
 * `PermissionDenied` to a workload without an identity, and sends every new identity on the streams that are open.
 */
export async function startWorkloadEndpoint(path: string): Promise<WorkloadEndpoint> {
  let given: GivenSvid | undefined;
  let [count, tokens] = [0, 0];
  const open = new Map<ServerHttp2Stream, (given: GivenSvid) => Uint8Array>();
  const sessions = new Set<Http2Session>();
  const refuse = (stream: ServerHttp2Stream, status: number) =>
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status }, { endStream: true });
  const begin = (stream: ServerHttp2Stream, endStatus: number) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': endStatus }));
  };
  const server = createServer();
  server.on('session', (session) => void sessions.add(session));
  server.on('stream', (stream, headers) => {
    count++;
    stream.on('error', () => undefined);
    const call = String(headers[':path']).replace('/SpiffeWorkloadAPI/', '');
    const answer = followed[call];
    if (headers['workload.spiffe.io'] !== 'true' || (answer === undefined && call !== 'FetchJWTSVID')) {
      return refuse(stream, 3);
    }
    if (given === undefined) {
      return refuse(stream, 7);
    }
    if (answer === undefined) {
      const { id, signer } = given;
      return stream.on('data', (request: Buffer) => {
        const { audience } = JWTSVIDRequest.decode(request.subarray(5));
        if (signer === undefined || audience.length === 0) {
          return refuse(stream, signer === undefined ? 7 : 3);
        }
        void signer.sign({ id, audience }).then((svid) => {
          tokens++;
          begin(stream, 0);
          stream.end(framed(JWTSVIDResponse.encode({ svids: [{ spiffeId: id, svid }] }).finish()));
        });
      });
    }
    begin(stream, 14);
    stream.on('close', () => open.delete(stream));
    open.set(stream, answer);
    stream.write(framed(answer(given)));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    address: `unix://${path}`,
    get streams() {
      return count;
    },
    get tokens() {
      return tokens;
    },
    give(svid) {
      given = svid;
      for (const [stream, answer] of open) {
        if (svid === undefined) {
          stream.end();
        } else {
          stream.write(framed(answer(svid)));
        }
      }
    },
    drop() {
      for (const stream of open.keys()) {
        stream.end();
      }
    },
    async stop() {
      for (const session of sessions) {
        session.destroy();
      }
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function x509Answer({ id, certificate, key, bundle, federated = {} }: GivenSvid): Uint8Array {
  const der = (pem: string) => new X509Certificate(pem).raw;
  return X509SVIDResponse.encode({
    svids: [
      {
        spiffeId: id,
        x509Svid: der(certificate),
        x509SvidKey: createPrivateKey(key).export({ type: 'pkcs8', format: 'der' }),
        bundle: Buffer.concat(bundle.map(der)),
      },
    ],
    federatedBundles: Object.fromEntries(
      Object.entries(federated).map(([domain, authorities]) => [domain, Buffer.concat(authorities.map(der))]),
    ),
  }).finish();
}

function bundlesAnswer({ jwtBundles = {} }: GivenSvid): Uint8Array {
  const sets = Object.entries(jwtBundles).map(([domain, signers]) => {
    const keys = signers.map(({ jwk }) => jwk);
    return [domain, Buffer.from(JSON.stringify({ keys }))];
  });
  return JWTBundlesResponse.encode({ bundles: Object.fromEntries(sets) }).finish();
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
