import { createHash, type KeyObject, randomBytes, sign, type X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { promisify } from 'node:util';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';
import { PkiError } from './errors.ts';
import type { CertificateUsage } from './inspect.ts';

const signBytes = promisify(sign) as (algorithm: string | null, data: Uint8Array, key: KeyObject) => Promise<Buffer>;

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
  readonly name: Name;
  /** As it names its key itself, else by RFC 5280's first method. */
  readonly keyId: Uint8Array<ArrayBuffer>;
  readonly key: KeyObject;
  /** Of its signatures. */
  readonly algorithm: AlgorithmIdentifier;
}

/**
 * Takes apart what signing needs of an authority.
 * @throws PkiError BAD_KEY when its key is neither RSA nor of an elliptic curve nor Ed25519
 */
export function issuerOf(certificate: X509Certificate, key: KeyObject): Issuer {
  const algorithm = signatureOf(key);
  const { subject, subjectPublicKeyInfo, extensions } = AsnConvert.parse(certificate.raw, Certificate).tbsCertificate;
  const own = extensions?.find(({ extnID }) => extnID === id_ce_subjectKeyIdentifier);
  const keyId =
    own === undefined
      ? keyIdOf(subjectPublicKeyInfo)
      : new Uint8Array(AsnConvert.parse(own.extnValue.buffer, SubjectKeyIdentifier).buffer);
  return { name: subject, keyId, key, algorithm };
}

function signatureOf(key: KeyObject): AlgorithmIdentifier {
  const algorithm = signatures[key.asymmetricKeyType ?? ''];
  if (algorithm === undefined) {
    const message = `must be RSA, of an elliptic curve or Ed25519 to sign, not ${key.asymmetricKeyType}`;
    throw new PkiError('BAD_KEY', 'key of the certificate authority', message);
  }
  return algorithm;
}

const signatures: Readonly<Record<string, AlgorithmIdentifier>> = {
  // sha256WithRSAEncryption, whose parameters must be there and empty, and ecdsa-with-SHA256, which must have none.
  rsa: new AlgorithmIdentifier({ algorithm: '1.2.840.113549.1.1.11', parameters: null }),
  ec: new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' }),
  ed25519: new AlgorithmIdentifier({ algorithm: '1.3.101.112' }),
};

const purposes: Readonly<Record<CertificateUsage, string>> = { server: id_kp_serverAuth, client: id_kp_clientAuth };

const attributes = { commonName: '2.5.4.3', organization: '2.5.4.10' };

/**
 * Signs a leaf certificate; the result is DER. OpenSSL signs and the plain ASN.1 classes encode: by way of WebCrypto and
 * the classes for whole certificates it takes six times as long, and a fleet needs hundreds at once.
 */
export async function signLeaf(leaf: Leaf, issuer: Issuer): Promise<Uint8Array> {
  const subjectPublicKeyInfo = AsnConvert.parse(leaf.publicKey, SubjectPublicKeyInfo);
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: new Uint8Array([1, ...randomBytes(15)]).buffer,
    signature: issuer.algorithm,
    issuer: issuer.name,
    validity: new Validity({ notBefore: leaf.notBefore, notAfter: leaf.notAfter }),
    subject: new Name([
      ...leaf.organizations.map((organization) => attribute(attributes.organization, organization)),
      attribute(attributes.commonName, leaf.commonName),
    ]),
    subjectPublicKeyInfo,
    extensions: new Extensions(extensionsOf(leaf, keyIdOf(subjectPublicKeyInfo), issuer)),
  });
  // Ed25519 hashes by itself.
  const hash = issuer.key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  const signature = await signBytes(hash, new Uint8Array(AsnConvert.serialize(tbsCertificate)), issuer.key);
  const { algorithm: signatureAlgorithm } = issuer;
  const signatureValue = new Uint8Array(signature).buffer;
  return new Uint8Array(AsnConvert.serialize(new Certificate({ tbsCertificate, signatureAlgorithm, signatureValue })));
}

function extensionsOf({ usages, hosts }: Leaf, ownKeyId: Uint8Array<ArrayBuffer>, { keyId }: Issuer): Extension[] {
  const names = hosts.map((host) => new GeneralName(isIP(host) ? { iPAddress: host } : { dNSName: host }));
  return [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: false }), { critical: true }),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment), {
      critical: true,
    }),
    extension(id_ce_extKeyUsage, new ExtendedKeyUsage(usages.map((usage) => purposes[usage]))),
    extension(id_ce_authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(keyId) })),
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(ownKeyId)),
    ...(names.length > 0 ? [extension(id_ce_subjectAltName, new SubjectAlternativeName(names))] : []),
  ];
}

function extension(extnID: string, value: object, { critical = false }: { critical?: boolean } = {}): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function attribute(type: string, text: string): RelativeDistinguishedName {
  const value = new AttributeValue(
    /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(text) ? { printableString: text } : { utf8String: text },
  );
  return new RelativeDistinguishedName([new AttributeTypeAndValue({ type, value })]);
}

/**
 * Signs a certificate for the signer's own key, whose subject and issuer are the leaf's common name; the result is DER.
 * @throws PkiError BAD_KEY when the key is neither RSA nor of an elliptic curve nor Ed25519
 */
export function signOwn(leaf: Leaf, key: KeyObject): Promise<Uint8Array> {
  const name = new Name([attribute(attributes.commonName, leaf.commonName)]);
  const keyId = keyIdOf(AsnConvert.parse(leaf.publicKey, SubjectPublicKeyInfo));
  return signLeaf({ ...leaf, organizations: [] }, { name, keyId, key, algorithm: signatureOf(key) });
}

/** SHA-1 of the key's bits. */
function keyIdOf({ subjectPublicKey }: SubjectPublicKeyInfo): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha1').update(new Uint8Array(subjectPublicKey)).digest());
}

/** A certificate in PEM. */
export function certificatePem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
