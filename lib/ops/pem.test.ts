import { generateKeyPairSync } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { createAuthority, issueCertificate, type KeyCertificate } from '../pki/index.ts';
import { parseFormerKeys, parseKeyPair, parseSigningKey, parseTrust } from './index.ts';

let authority: KeyCertificate;
let leaf: KeyCertificate;
beforeAll(async () => {
  authority = await createAuthority({ commonName: 'ca' });
  leaf = await issueCertificate({ authority, commonName: 'leaf', usages: ['client'] });
});

test('a certificate and its key', () => {
  const fields = { 'tls.crt': leaf.certificate, 'tls.key': leaf.key };
  expect(parseKeyPair(fields)).toEqual({ cert: leaf.certificate, key: leaf.key });
  expect(() => parseKeyPair({ ...fields, 'tls.key': authority.key })).toThrow(/not the key of the certificate/);
  expect(() => parseKeyPair({ ...fields, 'tls.key': 'nonsense' })).toThrow(/tls.key is not a private key in PEM/);
  expect(() => parseKeyPair({ 'tls.key': leaf.key })).toThrow('has no field tls.crt');
  expect(() => parseKeyPair({ ...fields, 'tls.crt': 'nonsense' })).toThrow('tls.crt holds no certificate in PEM');
});

test('an expired certificate is named with its end', async () => {
  const day = 24 * 3_600_000;
  const now = new Date(Date.now() - 2 * day);
  const old = await issueCertificate({ authority, commonName: 'old', usages: ['client'], lifetimeMs: day / 2, now });
  expect(() => parseKeyPair({ 'tls.crt': old.certificate, 'tls.key': old.key })).toThrow(/expired at \d{4}-/);
});

test('trust comes from all named fields that exist', () => {
  const other = leaf.certificate;
  expect(parseTrust({ 'ca.crt': authority.certificate, 'tls.crt': other }, ['ca.crt', 'tls.crt'])).toBe(
    `${authority.certificate.trim()}\n${other.trim()}`,
  );
  expect(parseTrust({ anything: other })).toBe(other.trim());
  expect(() => parseTrust({ 'tls.key': 'x' }, ['ca.crt', 'tls.crt'])).toThrow('has none of the fields ca.crt, tls.crt');
  expect(() => parseTrust({ 'ca.crt': 'x' })).toThrow('ca.crt holds no certificate in PEM');
});

test('tokens are signed with an RSA key in PKCS#8', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const pem = rsa.export({ type: 'pkcs8', format: 'pem' }).toString();
  expect(parseSigningKey({ 'jwt.key': pem })).toBe(pem);
  const pkcs1 = rsa.export({ type: 'pkcs1', format: 'pem' }).toString();
  expect(() => parseSigningKey({ 'jwt.key': pkcs1 })).toThrow(/not a private key in PKCS#8 PEM/);
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  expect(() => parseSigningKey({ 'jwt.key': ec.export({ type: 'pkcs8', format: 'pem' }).toString() })).toThrow(
    'jwt.key is a key of type ec, tokens are signed with RSA',
  );
});

test('the former signing key, by its public half', () => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  expect(parseFormerKeys({ 'jwt.previous.pub': pem })).toEqual([pem]);
  expect(parseFormerKeys({})).toEqual([]);
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' });
  for (const wrong of ['x', ec.toString()]) {
    expect(() => parseFormerKeys({ 'jwt.previous.pub': wrong })).toThrow(
      'jwt.previous.pub is no public RSA key in PEM',
    );
  }
});
