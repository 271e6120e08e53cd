import 'reflect-metadata';
import { webcrypto as crypto, KeyObject } from 'node:crypto';
import * as x509 from '@peculiar/x509';

/** What a certificate signing request asks for. */
export interface RequestedSubject {
  commonName: string;
  organizations?: readonly string[];
  /** Further attributes of the subject, as `{ OU: ['x'] }`. */
  others?: x509.JsonName;
  dnsNames?: readonly string[];
  ipAddresses?: readonly string[];
}

/** Makes an EC P-256 key and a request for it, both PEM. */
export async function createSigningRequest(subject: RequestedSubject): Promise<{ request: string; key: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const { commonName, organizations = [], others = [], dnsNames = [], ipAddresses = [] } = subject;
  const names = [
    ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
    ...ipAddresses.map((value) => ({ type: 'ip' as const, value })),
  ];
  const request = await x509.Pkcs10CertificateRequestGenerator.create(
    {
      name: [...organizations.map((name) => ({ O: [name] })), ...others, { CN: [commonName] }],
      keys,
      signingAlgorithm: algorithm,
      extensions: names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : [],
    },
    crypto,
  );
  const key = KeyObject.from(keys.privateKey).export({ type: 'sec1', format: 'pem' }).toString();
  return { request: `${request.toString('pem').trimEnd()}\n`, key };
}
