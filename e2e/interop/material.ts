import { createAuthority, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import type { GoTls } from './go-peer.ts';

/** The certificates of a principal at 127.0.0.1 and of agents, all of one authority. */
export interface PeerCertificates {
  readonly authority: KeyCertificate;
  /** For a server that asks for client certificates. */
  readonly server: GoTls;
  /** For a client; `commonName` is the agent's name. */
  client(commonName: string): Promise<GoTls>;
}

/** Makes certificates, of an authority that is there or of a new one. */
export async function makeMaterial(existing?: KeyCertificate): Promise<PeerCertificates> {
  const authority = existing ?? (await createAuthority({ commonName: 'interop' }));
  const issue = async (commonName: string, usage: 'client' | 'server'): Promise<GoTls> => {
    const hosts = usage === 'server' ? ['127.0.0.1', 'localhost'] : [];
    const { certificate, key } = await issueCertificate({ authority, commonName, hosts, usages: [usage] });
    return { cert: certificate, key, ca: authority.certificate, serverName: '127.0.0.1' };
  };
  return { authority, server: await issue('principal', 'server'), client: (name) => issue(name, 'client') };
}
