import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { fingerprintOf } from '../../lib/auth/index.ts';
import { type KeyCertificate, selfSignedCertificate } from '../../lib/pki/index.ts';

/** The key and certificate that a replica has for as long as its process lives, and by which its peers know it. */
export interface PeerIdentity extends KeyCertificate {
  /** SHA-256 of the certificate, upper-case hex. */
  readonly fingerprint: string;
}

/** Makes a key and a certificate that only its fingerprint vouches for. */
export async function createPeerIdentity(): Promise<PeerIdentity> {
  const pair = await selfSignedCertificate('argocd-agent-principal');
  return { ...pair, fingerprint: fingerprintOf(new X509Certificate(pair.certificate)) };
}

/** The fingerprint of the certificate at the other end, which has proved to have its key; undefined when it showed none. */
export function peerFingerprint(socket: TLSSocket): string | undefined {
  const certificate = socket.getPeerX509Certificate();
  return certificate && fingerprintOf(certificate);
}
