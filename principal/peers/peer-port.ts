import type { Registry } from 'prom-client';
import { hostPort, type Logger, splitHostPort } from '../../lib/base/index.ts';
import type { Tracer } from '../../lib/tracing/index.ts';
import type { ReplicaDirectory } from '../replicas/index.ts';
import { linkMetrics } from './metrics.ts';
import { createPeerIdentity } from './peer-identity.ts';
import { PeerLink } from './peer-link.ts';
import { type PeerService, servePeers } from './peer-server.ts';

/** This replica's end of the links between replicas. */
export interface PeerPort {
  /** Where peers reach this replica: `host:port`, with brackets around IPv6. */
  readonly address: string;
  /** SHA-256 of the certificate that it shows to peers, upper-case hex. */
  readonly fingerprint: string;
  /** Serves the peers of this directory from now on, and gives the way to them. Nobody is let in before. */
  join(directory: ReplicaDirectory, service: PeerService): PeerLink;
  /** Ends all links; resolves, every time, when nothing is listened on any more. */
  close(): Promise<void>;
}

/**
 * Makes this process's key and listens for the other replicas.
 * @param options.address what peers are told; port 0 stands for the one that is listened on
 * @throws FatalError when the port cannot be taken
 */
export async function openPeerPort(options: {
  readonly listen: { readonly host: string; readonly port: number };
  readonly address: string;
  readonly registry: Registry;
  readonly tracer?: Tracer | undefined;
  readonly logger: Logger;
}): Promise<PeerPort> {
  const { listen, registry, tracer, logger } = options;
  let link: PeerLink | undefined;
  let closed: Promise<void> | undefined;
  const metrics = linkMetrics(registry, () => link?.open ?? 0);
  const identity = await createPeerIdentity();
  const server = await servePeers({ ...listen, identity, metrics, logger });
  const { host, port } = splitHostPort(options.address) ?? { host: '127.0.0.1', port: 0 };
  return {
    address: hostPort(host, port === 0 ? server.port : port),
    fingerprint: identity.fingerprint,
    join: (directory, service) => {
      server.admit(directory, service);
      link = new PeerLink({ identity, directory, metrics, tracer, logger });
      return link;
    },
    close: () => {
      link?.close();
      closed ??= server.close();
      return closed;
    },
  };
}
