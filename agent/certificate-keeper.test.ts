import { createHash } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemorySecrets } from '../e2e/memory/index.ts';
import type { Logger } from '../lib/base/index.ts';
import { until } from '../lib/base/testing.ts';
import type { Secret } from '../lib/kube/index.ts';
import { createLogger } from '../lib/ops/index.ts';
import {
  certifyClient,
  createAuthority,
  isKeyOf,
  issueCertificate,
  type KeyCertificate,
  readSigningRequest,
  secretText,
  tlsSecretData,
} from '../lib/pki/index.ts';
import { WireError } from '../lib/wire/index.ts';
import { CertificateKeeper } from './certificate-keeper.ts';

const namespace = 'argocd';
const token = 'edge.secret';
const annotation = 'argocd-agent.argoproj-labs.io/enrolment-token';
let cluster: MemorySecrets;
let authority: KeyCertificate;
let stop: AbortController;
let asked: string[];
let warnings: string[];
/** What the principal answers, instead of a certificate. */
let answer: ((request: string) => Promise<{ certificate: string; authorities: string }>) | undefined;
beforeEach(async () => {
  authority ??= await createAuthority({ commonName: 'ca' });
  cluster = new MemorySecrets();
  stop = new AbortController();
  asked = [];
  warnings = [];
  answer = undefined;
});
afterEach(() => stop.abort());

async function certify(request: string) {
  const read = await readSigningRequest(request);
  asked.push(read.commonNames.join());
  if (answer !== undefined) {
    return answer(request);
  }
  const subject = { commonName: read.commonNames[0] ?? '', organizations: [] };
  const certificate = await certifyClient(read, subject, { authority });
  return { certificate, authorities: authority.certificate };
}

/** @param known what the cache has of a Secret; default: all */
function start(known: (secret: Secret | undefined) => Secret | undefined = (secret) => secret): CertificateKeeper {
  const keeper = new CertificateKeeper({
    client: cluster.api,
    secrets: { get: ({ name }) => known(cluster.named(name)), subscribe: cluster.api.subscribe },
    namespace,
    clientSecret: 'tls',
    trustSecret: 'ca',
    exchange: (_, request) => certify(request),
    logger: {
      ...createLogger({ level: 'fatal' }),
      warn: (_: object, message: string) => warnings.push(message),
    } as Logger,
  });
  void keeper.run(stop.signal);
  return keeper;
}

const put = (name: string, fields: Record<string, string>, annotations: Record<string, string> = {}) =>
  cluster.put({
    metadata: { namespace, name, annotations },
    data: Object.fromEntries(Object.entries(fields).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
  });
const textOf = (name: string, key: string) => secretText(cluster.named(name)?.data, key) ?? '';
const isEnrolled = () => textOf('tls', 'tls.crt') !== '' && textOf('argocd-agent-enrolment', 'tls.key') === '';

test('a token becomes a certificate, once', async () => {
  start();
  put('ca', { 'ca.crt': 'former' });
  put('argocd-agent-enrolment', { token });
  await until('there is a certificate', isEnrolled);
  expect(isKeyOf(textOf('tls', 'tls.crt'), textOf('tls', 'tls.key'))).toBe(true);
  expect(cluster.named('tls')?.type).toBe('kubernetes.io/tls');
  expect(textOf('ca', 'ca.crt')).toBe(authority.certificate);
  expect(asked).toEqual(['edge']);
  // The same manifest again.
  put('argocd-agent-enrolment', { token });
  const former = textOf('tls', 'tls.crt');
  put('argocd-agent-enrolment', { token: 'edge.another' });
  await until('there is another certificate', () => isEnrolled() && textOf('tls', 'tls.crt') !== former);
  expect(asked).toEqual(['edge', 'edge']);
});

test.each([false, true])(
  'the key is stored before it is used, and stays the same (a cache behind: %s)',
  async (isBehind) => {
    const keys: string[] = [];
    answer = async () => {
      keys.push(textOf('argocd-agent-enrolment', 'tls.key'));
      throw new WireError('unreachable', 'nobody is there');
    };
    const first = put('argocd-agent-enrolment', { token });
    start((secret) => (isBehind && secret?.metadata.name === first.metadata.name ? first : secret));
    await until('it has tried twice', () => keys.length > 1);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toContain('PRIVATE KEY');
    answer = undefined;
    await until('there is a certificate', isEnrolled);
    expect(textOf('tls', 'tls.key')).toBe(keys[0]);
  },
);

test('what cannot be used is not stored', async () => {
  const other = await issueCertificate({ authority, commonName: 'edge', usages: ['client'] });
  const bad = [
    { certificate: other.certificate, authorities: authority.certificate },
    { certificate: 'x'.repeat(300_000), authorities: '' },
  ];
  answer = async () => bad[Math.min(asked.length, bad.length) - 1] as (typeof bad)[0];
  put('argocd-agent-enrolment', { token });
  start();
  await until('it has tried all', () => asked.length > bad.length);
  expect(cluster.named('tls')).toBeUndefined();
});

test('a certificate that somebody else has made stays', async () => {
  put('tls', { 'tls.crt': 'mine', 'tls.key': 'mine' });
  put('argocd-agent-enrolment', { token });
  start().connected({ renewCertificate: certify });
  const isNamed = (message: string) => message.includes('somebody else has made the client certificate');
  await until('it says so', () => warnings.some(isNamed));
  expect([asked, textOf('tls', 'tls.crt')]).toEqual([[], 'mine']);
});

test('a certificate of its own is renewed over the connection when two thirds of its life are over', async () => {
  const usages = ['client'] as const;
  // It begins five minutes ago.
  const old = await issueCertificate({ authority, commonName: 'edge', usages, lifetimeMs: 60_000 });
  const used = { [annotation]: createHash('sha256').update(token).digest('hex') };
  const { 'tls.crt': certificate, 'tls.key': key } = tlsSecretData(old);
  cluster.put({
    metadata: { namespace, name: 'tls', annotations: used },
    data: { 'tls.crt': certificate, 'tls.key': key },
  });
  put('argocd-agent-enrolment', { token });
  const keeper = start();
  await new Promise(setImmediate);
  expect(asked).toEqual([]);
  keeper.connected({ renewCertificate: certify });
  await until('it is renewed', () => textOf('tls', 'tls.crt') !== old.certificate);
  expect(isKeyOf(textOf('tls', 'tls.crt'), textOf('tls', 'tls.key'))).toBe(true);
  expect(textOf('tls', 'tls.key')).not.toBe(old.key);
  expect(cluster.named('tls')?.metadata.annotations).toEqual(used);
  expect(asked).toEqual(['edge']);
});
