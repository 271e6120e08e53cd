import { createHash, type KeyObject, randomBytes, sign, type X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { promisify } from 'node:util';
import { X509Certificate as ParsedCertificate, SubjectKeyIdentifierExtension } from '@peculiar/x509';
import {
  bitString,
  elementsOf,
  integer,
  nothing,
  numbered,
  octetString,
  oid,
  sequence,
  set,
  text,
  time,
  yes,
} from './der.ts';
import { PkiError } from './errors.ts';
import type { CertificateUsage } from './inspect.ts';

const signBytes = promisify(sign) as (algorithm: string, data: Uint8Array, key: KeyObject) => Promise<Buffer>;

/** What a leaf certificate says (RFC 5280). */
export interface Leaf {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** DNS names, and IP addresses in canonical form, mixed. */
  readonly hosts: readonly string[];
  readonly usages: readonly CertificateUsage[];
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** DER, as SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array;
}

/** An authority that is ready to sign. */
export interface Issuer {
  /** DER of its subject, byte for byte: that is how a chain is found. */
  readonly name: Buffer;
  /** As it names its key itself, else by RFC 5280's first method. */
  readonly keyId: Buffer;
  readonly key: KeyObject;
  /** DER of the AlgorithmIdentifier of its signatures. */
  readonly algorithm: Buffer;
}

/**
 * Takes apart what signing needs of an authority.
 * @throws PkiError BAD_KEY when its key is neither RSA nor of an elliptic curve
 */
export function issuerOf(certificate: X509Certificate, key: KeyObject): Issuer {
  const algorithm = signatures[key.asymmetricKeyType ?? ''];
  if (algorithm === undefined) {
    const message = `must be RSA or of an elliptic curve to sign, not ${key.asymmetricKeyType}`;
    throw new PkiError('BAD_KEY', 'key of the certificate authority', message);
  }
  const own = new ParsedCertificate(certificate.raw).getExtension(SubjectKeyIdentifierExtension)?.keyId;
  const publicKey = certificate.publicKey.export({ type: 'spki', format: 'der' });
  return {
    name: subjectOf(certificate),
    keyId: own === undefined ? keyIdOf(publicKey) : Buffer.from(own, 'hex'),
    key,
    algorithm,
  };
}

const signatures: Readonly<Record<string, Buffer>> = {
  rsa: sequence(oid('1.2.840.113549.1.1.11'), nothing), // sha256WithRSAEncryption
  ec: sequence(oid('1.2.840.10045.4.3.2')), // ecdsa-with-SHA256
};

const purposes: Readonly<Record<CertificateUsage, Buffer>> = {
  server: oid('1.3.6.1.5.5.7.3.1'),
  client: oid('1.3.6.1.5.5.7.3.2'),
};

const attributes = { commonName: oid('2.5.4.3'), organization: oid('2.5.4.10') };
const version3 = numbered(0, integer(Buffer.from([2])), { constructed: true });

/**
 * Signs a leaf certificate; the result is DER. It is put together here rather than by a library that knows everything
 * about certificates, because a fleet needs hundreds at once and that takes twenty times as long.
 */
export async function signLeaf(leaf: Leaf, issuer: Issuer): Promise<Buffer> {
  const content = sequence(
    version3,
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    issuer.algorithm,
    issuer.name,
    sequence(time(leaf.notBefore), time(leaf.notAfter)),
    sequence(
      ...leaf.organizations.map((organization) => attribute(attributes.organization, organization)),
      attribute(attributes.commonName, leaf.commonName),
    ),
    leaf.publicKey,
    numbered(3, sequence(...extensionsOf(leaf, issuer)), { constructed: true }),
  );
  const signature = await signBytes('sha256', content, issuer.key);
  return sequence(content, issuer.algorithm, bitString(signature));
}

function extensionsOf({ usages, hosts, publicKey }: Leaf, { keyId }: Issuer): Buffer[] {
  // digitalSignature and keyEncipherment: the bits 0 and 2.
  const keyUsage = bitString(Buffer.from([0b1010_0000]), 5);
  const names = hosts.map((host) => {
    const [place, content] = isIP(host) ? [7, addressBytes(host)] : [2, Buffer.from(host, 'latin1')];
    return numbered(place, content, { constructed: false });
  });
  return [
    extension('2.5.29.19', sequence(), { critical: true }), // basicConstraints: no authority
    extension('2.5.29.15', keyUsage, { critical: true }),
    extension('2.5.29.37', sequence(...usages.map((usage) => purposes[usage]))),
    extension('2.5.29.35', sequence(numbered(0, keyId, { constructed: false }))), // authorityKeyIdentifier
    extension('2.5.29.14', octetString(keyIdOf(publicKey))), // subjectKeyIdentifier
    ...(names.length > 0 ? [extension('2.5.29.17', sequence(...names))] : []),
  ];
}

function extension(type: string, value: Buffer, options: { critical?: boolean } = {}): Buffer {
  return sequence(oid(type), ...(options.critical ? [yes] : []), octetString(value));
}

function attribute(type: Buffer, value: string): Buffer {
  return set(sequence(type, text(value)));
}

/** SHA-1 of the key's bits. */
function keyIdOf(publicKey: Uint8Array): Buffer {
  const [info] = elementsOf(Buffer.from(publicKey));
  const [, bits] = elementsOf(info?.content ?? Buffer.alloc(0));
  return createHash('sha1')
    .update(bits?.content.subarray(1) ?? Buffer.alloc(0))
    .digest();
}

function subjectOf(certificate: X509Certificate): Buffer {
  const [whole] = elementsOf(certificate.raw);
  const [content] = elementsOf(whole?.content ?? Buffer.alloc(0));
  const fields = elementsOf(content?.content ?? Buffer.alloc(0));
  // The version comes first, if it is there: the other fields have their places after it.
  const [serialNumber, , , , subject] = fields.filter(({ tag }) => tag !== 0xa0);
  if (serialNumber === undefined || subject === undefined) throw new RangeError('the certificate has no subject');
  return subject.whole;
}

function addressBytes(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  const [before = '', after] = address.split('::').map((half) => half);
  const groups = (half: string | undefined) => (half ? half.split(':') : []);
  const [head, tail] = [groups(before), groups(after)];
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  return Buffer.from([...head, ...zeros, ...tail].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** A certificate in PEM. */
export function certificatePem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
