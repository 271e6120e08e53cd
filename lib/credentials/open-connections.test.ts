import { X509Certificate } from 'node:crypto';
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createChain } from '../../e2e/certificate-chain/index.ts';
import { fingerprintOf } from '../auth/index.ts';
import { createAuthority, issueCertificate, type KeyCertificate } from '../pki/index.ts';
import { OpenConnections } from './index.ts';

const silent = () => undefined;
const logger = { debug: silent, info: silent, warn: silent, error: silent };
const day = 86_400_000;

let first: KeyCertificate;
let second: KeyCertificate;
let own: X509Certificate;
let other: X509Certificate;
let chain: Awaited<ReturnType<typeof createChain>>;
beforeAll(async () => {
  [first, second] = await Promise.all([
    createAuthority({ commonName: 'first' }),
    createAuthority({ commonName: 'second' }),
  ]);
  const issue = async (authority: KeyCertificate, commonName: string) =>
    new X509Certificate(
      (await issueCertificate({ authority, commonName, usages: ['client'], lifetimeMs: 60 * day })).certificate,
    );
  own = await issue(first, 'edge');
  other = await issue(second, 'other');
  chain = await createChain();
});

let blocked: Set<string>;
let connections: OpenConnections;
let ended: string[];
beforeEach(() => {
  blocked = new Set();
  connections = new OpenConnections({ isBlocked: (fingerprint) => blocked.has(fingerprint), logger });
  ended = [];
});

function open(
  port: ReturnType<OpenConnections['port']>,
  certificate: X509Certificate,
  options: { name?: string; since?: number } = {},
) {
  const { name = 'edge', since = performance.now() } = options;
  let close: () => void = silent;
  const judgement = port.opened({
    certificate,
    address: '127.0.0.1:1',
    since,
    end: (reason) => ended.push(`${name}: ${reason}`),
    onClose: (listener) => {
      close = listener;
    },
  });
  return { judgement, close };
}

const both = () => `${first.certificate}\n${second.certificate}`;

test('who is blocked is ended, and refused until that is taken back; others stay', () => {
  const port = connections.port('a');
  port.trust(both());
  const { judgement } = open(port, own);
  open(port, other, { name: 'other' });
  connections.blocklistChanged();
  expect([ended, judgement()]).toEqual([[], undefined]);
  blocked.add(fingerprintOf(own));
  connections.blocklistChanged();
  expect(ended).toEqual(['edge: the client certificate is on the blocklist']);
  expect(judgement()).toMatchObject({ code: 'revoked' });
  blocked.clear();
  expect(judgement()).toBeUndefined();
  blocked.add(fingerprintOf(own));
  connections.blocklistChanged();
  expect(ended, 'once').toHaveLength(1);
});

test('a connection that has closed is forgotten', () => {
  const port = connections.port('a');
  port.trust(both());
  open(port, own).close();
  blocked.add(fingerprintOf(own));
  connections.blocklistChanged();
  port.trust(second.certificate);
  expect(ended).toEqual([]);
});

test('with an authority go the connections that it alone vouches for, at the port that has lost it', () => {
  const [port, elsewhere] = [connections.port('a'), connections.port('b')];
  port.trust(first.certificate);
  elsewhere.trust(both());
  const { judgement } = open(port, own);
  open(elsewhere, own, { name: 'elsewhere' });
  port.trust(both());
  open(port, other, { name: 'other' });
  expect(ended, 'another authority is no harm').toEqual([]);
  port.trust(second.certificate);
  expect(ended).toEqual(['edge: the certificate of "CN=edge" was issued by "CN=first", which is not trusted any more']);
  expect(judgement()).toMatchObject({ code: 'certificate' });
  elsewhere.trust(undefined);
  expect(ended.at(-1)).toContain('elsewhere: ');
});

test('an authority that takes the place of another one with the same key goes on vouching', async () => {
  const port = connections.port('a');
  const again = chain.issuing;
  port.trust(`${chain.root}\n${again}`);
  open(port, new X509Certificate(chain.agent.leaf));
  port.trust(again);
  expect(ended).toEqual([]);
});

test('a certificate behind an authority that its client has shown counts while all authorities do that may vouch for it', () => {
  const port = connections.port('a');
  port.trust(`${chain.root}\n${second.certificate}`);
  const leaf = new X509Certificate(chain.agent.leaf);
  const { judgement } = open(port, leaf);
  expect(judgement(), 'TLS has verified it').toBeUndefined();
  port.trust(`${chain.root}\n${both()}`);
  expect(ended).toEqual([]);
  port.trust(`${second.certificate}\n${first.certificate}`);
  expect(ended).toHaveLength(1);
});

test('a handshake that began before an authority was lost does not count by it', () => {
  const port = connections.port('a');
  port.trust(both());
  const since = performance.now();
  port.trust(second.certificate);
  expect(open(port, own, { since }).judgement()).toMatchObject({ code: 'certificate' });
  expect(open(port, own, { since: performance.now() - 1_000_000 }).judgement()).toMatchObject({ code: 'certificate' });
  expect(open(port, other, { since }).judgement(), 'of an authority that is trusted').toBeUndefined();
});

test('a certificate ends connections when it expires, also after weeks, and when the clock is set', () => {
  vi.useFakeTimers({ toFake: ['performance', 'Date', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const port = connections.port('a');
  port.trust(both());
  const { judgement } = open(port, own);
  const ends = own.validToDate.getTime();
  vi.advanceTimersByTime(ends - Date.now() - 1);
  expect([ended, judgement()]).toEqual([[], undefined]);
  vi.advanceTimersByTime(2);
  expect(ended).toEqual([`edge: the certificate expired on ${own.validToDate.toISOString()}`]);
  vi.advanceTimersByTime(10 * day);
  expect(ended, 'once').toHaveLength(1);
  expect(judgement()).toMatchObject({ code: 'certificate' });

  vi.setSystemTime(ends - 50 * day);
  open(port, other, { name: 'later' });
  vi.setSystemTime(other.validToDate.getTime() + 1_000);
  vi.advanceTimersByTime(61_000);
  expect(ended.at(-1)).toContain('later: the certificate expired');
});

test('the one that expires first is waited for, and then the next one', () => {
  vi.useFakeTimers({ toFake: ['performance', 'Date', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const port = connections.port('a');
  port.trust(`${both()}\n${chain.root}\n${chain.issuing}`);
  const soon = new X509Certificate(chain.agent.leaf);
  open(port, own);
  open(port, soon, { name: 'soon' });
  vi.advanceTimersByTime(soon.validToDate.getTime() - Date.now() + 1);
  expect(ended).toEqual([expect.stringContaining('soon: ')]);
  vi.advanceTimersByTime(own.validToDate.getTime() - Date.now() + 1);
  expect(ended).toEqual([expect.stringContaining('soon: '), expect.stringContaining('edge: ')]);
});

test('what an agent has open ends with its cluster Secret, and nothing of others', () => {
  const over = connections.used('edge', () => ended.push('one'));
  connections.used('edge', () => ended.push('two'));
  connections.used('other', () => ended.push('other'));
  over();
  over();
  connections.agentGone('edge');
  connections.agentGone('nobody');
  expect(ended).toEqual(['two']);
});

test('what was opened with a token ends when the key does not count that has signed it', async () => {
  connections.used('edge', () => ended.push('old'), 'old token');
  connections.used('edge', () => ended.push('new'), 'new token');
  connections.used('edge', () => ended.push('certificate alone'));
  const over = connections.used('edge', () => ended.push('over meanwhile'), 'old token');
  await connections.keysChanged(async (token) => {
    over();
    return token === 'new token';
  });
  expect(ended).toEqual(['old']);
});
