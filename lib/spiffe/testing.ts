import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createServer, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import { X509SVIDResponse } from '../../proto/gen/workloadapi/workload.ts';

export { issueSvid } from './testing/svid.ts';

/** An identity that an endpoint gives, PEM. */
export interface GivenSvid {
  readonly id: string;
  readonly certificate: string;
  readonly key: string;
  readonly bundle: readonly string[];
  /** The authorities of other trust domains, by their SPIFFE IDs. */
  readonly federated?: Readonly<Record<string, readonly string[]>>;
}

/** A Workload API on a socket of this machine. */
export interface WorkloadEndpoint {
  /** As `--spire-agent-socket` takes it. */
  readonly address: string;
  /** How many streams were opened. */
  readonly streams: number;
  /** Gives all workloads this identity from now on; undefined: none. */
  give(svid: GivenSvid | undefined): void;
  /** Ends the streams, as an agent of SPIRE that is restarted. */
  drop(): void;
  stop(): Promise<void>;
}

/**
 * Starts a Workload API as its specification has it, as far as X.509-SVIDs go: it refuses requests without the header
 * `workload.spiffe.io`, answers `PermissionDenied` to a workload without an identity, and sends every new identity on the
 * streams that are open.
 */
export async function startWorkloadEndpoint(path: string): Promise<WorkloadEndpoint> {
  let given: GivenSvid | undefined;
  let count = 0;
  const open = new Set<ServerHttp2Stream>();
  const sessions = new Set<Http2Session>();
  const refuse = (stream: ServerHttp2Stream, status: number) =>
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status }, { endStream: true });
  const server = createServer();
  server.on('session', (session) => void sessions.add(session));
  server.on('stream', (stream, headers) => {
    count++;
    stream.on('error', () => undefined);
    if (headers[':path'] !== '/SpiffeWorkloadAPI/FetchX509SVID' || headers['workload.spiffe.io'] !== 'true') {
      return refuse(stream, 3);
    }
    if (given === undefined) {
      return refuse(stream, 7);
    }
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': 14 }));
    stream.on('close', () => open.delete(stream));
    open.add(stream);
    stream.write(framed(given));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    address: `unix://${path}`,
    get streams() {
      return count;
    },
    give(svid) {
      given = svid;
      for (const stream of open) {
        if (svid === undefined) {
          stream.end();
        } else {
          stream.write(framed(svid));
        }
      }
    },
    drop() {
      for (const stream of open) {
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

function framed({ id, certificate, key, bundle, federated = {} }: GivenSvid): Buffer {
  const der = (pem: string) => new X509Certificate(pem).raw;
  const message = X509SVIDResponse.encode({
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
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
