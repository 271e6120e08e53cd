import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls, type DetailedPeerCertificate } from 'node:tls';
import { isIssuedBy } from '../../lib/pki/index.ts';
import type { Diagnosis } from './finding.ts';

/** Where agents reach the principal, and what a handshake needs. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  /** Whose certificate is shown; empty for none. */
  readonly certificate: string;
  readonly key: string;
  /** Authorities that must have signed the server's certificate, PEM; empty when they are not known. */
  readonly authorities: string;
  readonly cluster: string;
}

const patienceMs = 2_000;

/** Walks from the name to the handshake; ends with the first fault, since the others follow from it. */
export async function networkFaults(endpoint: Endpoint, signal: AbortSignal): Promise<Diagnosis[]> {
  const { host, port, cluster } = endpoint;
  const where = `${host}:${port}, from this machine`;
  const fault = (id: string, what: string, mend: string): Diagnosis[] => [{ id, cluster, what, where, mend }];
  let address = host;
  if (isIP(host) === 0) {
    try {
      address = (await limited(signal, () => lookup(host))).address;
    } catch (error) {
      return fault(
        'dns',
        `the principal's name cannot be resolved: ${reasonOf(error)}`,
        `nslookup ${host}; correct the record, or principal's address of the agent`,
      );
    }
  }
  try {
    await limited(signal, (limit) => tcp(address, port, limit));
  } catch (error) {
    const mend = `nc -vz ${host} ${port}; kubectl get service argocd-agent-principal; look at firewalls and load balancer`;
    return fault('port-closed', `nothing takes connections at the principal's address: ${reasonOf(error)}`, mend);
  }
  let peer: DetailedPeerCertificate;
  try {
    peer = await limited(signal, (limit) => handshake(endpoint, address, limit));
  } catch (error) {
    const mend = `openssl s_client -connect ${host}:${port} -alpn h2; a proxy on the way must pass TLS through`;
    return fault('tls-failed', `the TLS handshake with the principal fails: ${reasonOf(error)}`, mend);
  }
  return certificateOfServer(endpoint, peer, fault);
}

function certificateOfServer(
  { host, authorities }: Endpoint,
  peer: DetailedPeerCertificate,
  fault: (id: string, what: string, mend: string) => Diagnosis[],
): Diagnosis[] {
  if (authorities !== '' && !isIssuedBy(chainOf(peer), authorities)) {
    const what = `the server's certificate (${peer.issuer?.CN ?? 'unknown issuer'}) is not of the hub's authority: something else answers, or a device ends TLS on the way`;
    return fault(
      'server-certificate-wrong-authority',
      what,
      'argocd-agentctl pki issue principal --upsert, or pass TLS through',
    );
  }
  if (Date.parse(peer.valid_to) < Date.now()) {
    const mend = 'argocd-agentctl pki issue principal --upsert, then restart a principal that does not read it again';
    return fault('server-certificate-expired', `the server's certificate expired at ${peer.valid_to}`, mend);
  }
  const parsed = new X509Certificate(peer.raw);
  // As Go does: the subject's common name does not count.
  const named = isIP(host) === 0 ? parsed.checkHost(host, { subject: 'never' }) : parsed.checkIP(host);
  if (named === undefined) {
    const names = (parsed.subjectAltName ?? '').replaceAll(/DNS:|IP Address:/g, '');
    const mend = `argocd-agentctl pki issue principal --upsert ${isIP(host) ? '--ip' : '--dns'} ${host}`;
    return fault(
      'server-certificate-wrong-host',
      `the server's certificate is for ${names || 'no name'}, not for ${host}`,
      mend,
    );
  }
  return [];
}

/** What the server has sent, PEM. */
function chainOf(peer: DetailedPeerCertificate | undefined): string {
  const sent = new Set<string>();
  for (let next = peer; next?.raw !== undefined; next = next.issuerCertificate) {
    const pem = new X509Certificate(next.raw).toString();
    if (sent.has(pem)) {
      break; // the issuer of a root is the root
    }
    sent.add(pem);
  }
  return [...sent].join('');
}

function limited<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
  return new Promise<T>((resolve, reject) => {
    limit.addEventListener('abort', () => reject(new Error(`no answer within ${patienceMs / 1_000} s`)), {
      once: true,
    });
    work(limit).then(resolve, reject);
  });
}

function tcp(address: string, port: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host: address, port, signal }, () => {
      socket.destroy();
      resolve();
    });
    socket.on('error', reject);
  });
}

/** The server's certificate. It is verified afterwards, to tell which part of it is wrong. */
function handshake(
  { host, port, certificate, key }: Endpoint,
  address: string,
  signal: AbortSignal,
): Promise<DetailedPeerCertificate> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      host: address,
      port,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(certificate === '' ? {} : { cert: certificate, key }),
      ALPNProtocols: ['h2'],
      rejectUnauthorized: false,
    });
    signal.addEventListener('abort', () => socket.destroy(), { once: true });
    socket.on('secureConnect', () => {
      resolve(socket.getPeerCertificate(true));
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return message || code || 'unknown';
}
