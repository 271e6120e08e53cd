import { connect, createSecureServer, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { KeyCertificate } from '../../lib/pki/index.ts';

/** A proxy of a service mesh in front of a server without TLS. */
export interface MeshProxy {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * Starts a proxy that ends mutual TLS and tells the server who the client is in `x-forwarded-client-cert`, as Envoy does with
 * `forward_client_cert_details: SANITIZE_SET`: what a client sends under this name is dropped.
 */
export async function startMeshProxy(options: {
  readonly server: KeyCertificate;
  readonly authority: KeyCertificate;
  /** Port of the server behind it, on loopback. */
  readonly to: number;
}): Promise<MeshProxy> {
  const { server: own, authority, to } = options;
  const upstream = connect(`http://127.0.0.1:${to}`);
  upstream.on('error', () => undefined);
  const server = createSecureServer({
    key: own.key,
    cert: own.certificate,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: true,
  });
  const sockets = new Set<TLSSocket>();
  server.on('secureConnection', (socket) => void sockets.add(socket));
  server.on('stream', (stream, headers) => {
    const socket = stream.session?.socket as TLSSocket | undefined;
    const [, uri = ''] = /URI:([^,]+)/.exec(socket?.getPeerX509Certificate()?.subjectAltName ?? '') ?? [];
    const forwarded = { ...headers, 'x-forwarded-client-cert': `By=spiffe://example.org/principal;URI=${uri}` };
    const request = upstream.request(forwarded);
    let trailers: IncomingHttpHeaders = {};
    request.on('response', (response, flags) => {
      if (stream.destroyed) {
        return;
      }
      const isWhole = (flags & 0x1) !== 0;
      stream.respond(response, isWhole ? { endStream: true } : { waitForTrailers: true });
      if (!isWhole) {
        request.pipe(stream);
      }
    });
    request.on('trailers', (found) => {
      trailers = found;
    });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    stream.pipe(request);
    stream.on('close', () => request.close());
    for (const one of [stream, request]) {
      one.on('error', () => undefined);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      upstream.destroy();
      for (const socket of sockets) {
        socket.destroy();
      }
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
