import 'reflect-metadata';
import { createHash, generateKeyPairSync, webcrypto, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { expect, test } from 'vitest';
import { inspectCertificate, isIssuedBy, issueCertificate, type KeyCertificate } from './index.ts';
import { signOwn } from './leaf.ts';

/** An authority as somebody else's tool may make it. */
async function foreignAuthority(
  kind: 'rsa' | 'P-256' | 'P-384',
  { name = 'CN=Ätna GmbH, O="A, B"', keyId }: { name?: string; keyId?: string } = {},
): Promise<KeyCertificate> {
  const pair =
    kind === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: kind });
  const algorithm =
    kind === 'rsa'
      ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
      : { name: 'ECDSA', namedCurve: kind, hash: 'SHA-256' };
  const key = new Uint8Array(pair.privateKey.export({ type: 'pkcs8', format: 'der' }));
  const certificate = await x509.X509CertificateGenerator.create(
    {
      subject: name,
      issuer: name,
      notBefore: new Date('2026-01-01T00:00:00Z'),
      notAfter: new Date('2060-01-01T00:00:00Z'),
      publicKey: new x509.PublicKey(new Uint8Array(pair.publicKey.export({ type: 'spki', format: 'der' }))),
      signingKey: await webcrypto.subtle.importKey('pkcs8', key, algorithm, false, ['sign']),
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        ...(keyId === undefined ? [] : [new x509.SubjectKeyIdentifierExtension(keyId)]),
      ],
    },
    webcrypto,
  );
  return {
    certificate: certificate.toString('pem'),
    key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

const hosts = ['b.example.com', 'a', '127.0.0.1', '::1', '2001:db8::1:0', '::ffff:10.1.2.3', 'fe80::'];
const organizations = ['system:one', 'with (all) + signs: * & @', 'Zürich'];
const request = { commonName: 'agent', organizations, hosts, usages: ['client', 'server'] } as const;

test.each(['rsa', 'P-256', 'P-384'] as const)(
  'every library reads the same of a leaf; its authority: %s',
  async (kind) => {
    const authority = await foreignAuthority(kind);
    const { certificate } = await issueCertificate({ ...request, authority, algorithm: 'p256' });
    const leaf = new X509Certificate(certificate);
    const issuer = new X509Certificate(authority.certificate);
    expect(leaf.checkIssued(issuer)).toBe(true);
    expect(leaf.verify(issuer.publicKey)).toBe(true);
    expect(isIssuedBy(certificate, authority.certificate)).toBe(true);
    const read = new x509.X509Certificate(certificate);
    expect(await read.verify({ publicKey: new x509.X509Certificate(authority.certificate), signatureOnly: true })).toBe(
      true,
    );
    expect(read.subjectName.getField('CN')).toEqual(['agent']);
    expect(read.subjectName.getField('O')).toEqual(organizations);
    expect(read.serialNumber).toMatch(/^01[0-9a-f]{30}$/);
    expect(read.extensions.map(({ type, critical }) => [type, critical])).toEqual([
      ['2.5.29.19', true],
      ['2.5.29.15', true],
      ['2.5.29.37', false],
      ['2.5.29.35', false],
      ['2.5.29.14', false],
      ['2.5.29.17', false],
    ]);
    expect(read.getExtension(x509.BasicConstraintsExtension)?.ca).toBe(false);
    expect(read.getExtension(x509.KeyUsagesExtension)?.usages).toBe(
      x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment,
    );
    expect(read.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([
      x509.ExtendedKeyUsage.clientAuth,
      x509.ExtendedKeyUsage.serverAuth,
    ]);
    const bits = new Uint8Array(await read.publicKey.getKeyIdentifier(webcrypto));
    expect(read.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId).toBe(Buffer.from(bits).toString('hex'));
    const names = read.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? [];
    expect(inspectCertificate(certificate)).toEqual({
      commonName: read.subjectName.getField('CN')[0],
      organizations: read.subjectName.getField('O'),
      dnsNames: ['a', 'b.example.com'],
      ipAddresses: ['127.0.0.1', '2001:db8::1:0', '::1', '::ffff:a01:203', 'fe80::'],
      uris: [],
      usages: ['client', 'server'],
      isAuthority: false,
      notBefore: read.notBefore,
      notAfter: read.notAfter,
      serialNumber: read.serialNumber.toUpperCase(),
      fingerprint: createHash('sha256').update(leaf.raw).digest('hex').toUpperCase(),
    });
    expect(names.map(({ type }) => type).sort()).toEqual(['dns', 'dns', 'ip', 'ip', 'ip', 'ip', 'ip']);
  },
);

test('a leaf names the key of its authority as the authority does', async () => {
  const keyIdOf = async (authority: KeyCertificate) => {
    const { certificate } = await issueCertificate({ ...request, authority, algorithm: 'p256' });
    return new x509.X509Certificate(certificate).getExtension(x509.AuthorityKeyIdentifierExtension)?.keyId;
  };
  expect(await keyIdOf(await foreignAuthority('P-256', { keyId: '0102030405' }))).toBe('0102030405');
  const nameless = await foreignAuthority('P-256');
  const bits = await new x509.X509Certificate(nameless.certificate).publicKey.getKeyIdentifier(webcrypto);
  expect(await keyIdOf(nameless)).toBe(Buffer.from(new Uint8Array(bits)).toString('hex'));
});

test.each([
  ['2049-12-31T23:59:59.999Z', '2049-12-31T23:59:59.000Z'],
  ['2050-01-01T00:00:00.000Z', '2050-01-01T00:00:00.000Z'],
])('a life that ends at %s ends at %s in whole seconds', async (end, wanted) => {
  const authority = await foreignAuthority('P-256');
  const now = new Date('2049-12-01T00:00:00Z');
  const lifetimeMs = Date.parse(end) - now.getTime();
  const { certificate } = await issueCertificate({ ...request, authority, now, lifetimeMs, algorithm: 'p256' });
  expect(new x509.X509Certificate(certificate).notAfter.toISOString()).toBe(wanted);
  expect(inspectCertificate(certificate).notAfter.toISOString()).toBe(wanted);
});

test('an authority with an Ed25519 key signs, and one whose key signs no certificates of TLS is named', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const key = new Uint8Array(privateKey.export({ type: 'pkcs8', format: 'der' }));
  const certificate = await x509.X509CertificateGenerator.create(
    {
      subject: 'CN=ed',
      issuer: 'CN=ed',
      publicKey: new x509.PublicKey(new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }))),
      signingKey: await webcrypto.subtle.importKey('pkcs8', key, { name: 'Ed25519' }, false, ['sign']),
      signingAlgorithm: { name: 'Ed25519' },
      extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
    },
    webcrypto,
  );
  const authority = {
    certificate: certificate.toString('pem'),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
  const { certificate: leaf } = await issueCertificate({ ...request, authority });
  expect(new X509Certificate(leaf).verify(publicKey)).toBe(true);
  const other = generateKeyPairSync('ed448');
  const own = {
    ...{ commonName: 'a', organizations: [], hosts: [], usages: ['client'] as const },
    ...{
      notBefore: new Date(),
      notAfter: new Date(),
      publicKey: other.publicKey.export({ type: 'spki', format: 'der' }),
    },
  };
  expect(() => signOwn(own, other.privateKey)).toThrow(
    'must be RSA, of an elliptic curve or Ed25519 to sign, not ed448',
  );
});
