import { beforeAll, expect, test, vi } from 'vitest';
import {
  createAuthority,
  fingerprintsOf,
  inspectCertificate,
  issueCertificate,
  joinCertificates,
  type KeyCertificate,
} from '../../lib/pki/index.ts';
import type { ClusterCertificates } from '../ownership/index.ts';
import { judgeServer } from './hub-certificates.ts';
import { latestSwitch, planTrust, type TrustInput } from './rotation.ts';

const day = 24 * 3600_000;
const now = new Date('2030-01-20T00:00:00Z');
const begin = new Date('2030-01-10T00:00:00Z');
let former: KeyCertificate;
let next: KeyCertificate;
let oldServer: KeyCertificate;
let newServer: KeyCertificate;
const request = { commonName: 'principal', hosts: ['principal.example.com'], usages: ['server'] as const };

beforeAll(async () => {
  [former, next] = await Promise.all([
    createAuthority({ commonName: 'old', now: begin }),
    createAuthority({ commonName: 'new', now }),
  ]);
  [oldServer, newServer] = await Promise.all([
    issueCertificate({ ...request, authority: former, algorithm: 'p256', now: begin }),
    issueCertificate({ ...request, authority: next, algorithm: 'p256', now }),
  ]);
});

const mark = (authority: KeyCertificate) => fingerprintsOf(authority.certificate)[0] ?? '';
const both = () => joinCertificates(next.certificate, former.certificate);
const trusting = (): ClusterCertificates => ({ trusts: [mark(next), mark(former)], authority: undefined });
const switched = (): ClusterCertificates => ({ trusts: [mark(next), mark(former)], authority: mark(next) });
const plan = (input: Partial<TrustInput> = {}) =>
  planTrust({
    authority: next.certificate,
    inSecret: next.certificate,
    known: { authorities: former.certificate, authority: mark(former), since: begin },
    servers: [oldServer.certificate],
    clusters: () => new Map([['c1', undefined]]),
    now,
    ...input,
  });

test('without a former authority the clusters are not read', () => {
  const clusters = vi.fn();
  const settled = { authorities: joinCertificates(next.certificate), authority: mark(next) };
  expect(plan({ known: undefined, clusters })).toEqual({ record: { ...settled, since: now }, rotation: undefined });
  const known = { ...settled, since: begin };
  expect(plan({ known, clusters })).toEqual({ record: known, rotation: undefined });
  expect(clusters).not.toHaveBeenCalled();
});

test('a new authority is trusted beside the former one at once', () => {
  expect(plan()).toEqual({
    record: { authorities: both(), authority: mark(next), since: now },
    rotation: { untrusting: ['c1'], unswitched: ['c1'], isServerLeft: true, until: new Date(now.getTime() + 30 * day) },
  });
});

test('the former authority is removed when no cluster and no server uses its certificates', () => {
  const known = { authorities: both(), authority: mark(next), since: now };
  const rest = (clusters: ClusterCertificates[], servers: KeyCertificate[]) =>
    plan({
      known,
      servers: servers.map(({ certificate }) => certificate),
      clusters: () => new Map(clusters.map((state, i) => [`c${i}`, state])),
    });
  expect(rest([switched(), trusting()], [newServer]).rotation).toMatchObject({ untrusting: [], unswitched: ['c1'] });
  expect(rest([switched(), switched()], [newServer, oldServer])).toMatchObject({
    record: { authorities: both() },
    rotation: { untrusting: [], unswitched: [] },
  });
  expect(rest([switched(), switched()], [newServer, newServer])).toEqual({
    record: { ...known, authorities: joinCertificates(next.certificate) },
    rotation: undefined,
  });
});

test('a cluster that does not respond keeps the former authority for the life of a certificate, no longer', () => {
  const known = { authorities: both(), authority: mark(next), since: now };
  expect(plan({ known, now: new Date(now.getTime() + 29 * day) }).rotation?.untrusting).toEqual(['c1']);
  expect(plan({ known, now: new Date(now.getTime() + 30 * day) })).toMatchObject({
    rotation: undefined,
    record: { authorities: joinCertificates(next.certificate) },
  });
});

test('an authority that has expired is not trusted any longer', () => {
  const known = { authorities: both(), authority: mark(next), since: now };
  const late = new Date(begin.getTime() + 366 * day);
  expect(plan({ known: { ...known, since: late }, now: late }).record.authorities).toBe(
    joinCertificates(next.certificate),
  );
});

test('a server keeps its certificate until all clusters trust the new authority', () => {
  const rotation = { untrusting: ['c1'], unswitched: ['c1'], isServerLeft: true, until: now };
  const trust = { authority: next.certificate, authorities: both(), rotation };
  const limit = latestSwitch(inspectCertificate(oldServer.certificate));
  expect(judgeServer(oldServer, request, trust, now)).toEqual({ waitUntil: limit });
  // On the 30th two thirds of its life are over.
  expect(judgeServer(oldServer, request, trust, new Date('2030-02-01T00:00:00Z'))).toEqual({ waitUntil: limit });
  expect(judgeServer(oldServer, request, trust, limit).reason).toMatch(/two thirds/);
  expect(judgeServer(oldServer, { ...request, hosts: ['other.example.com'] }, trust, now).reason).toMatch(/host names/);
  const all = { ...trust, rotation: { ...rotation, untrusting: [] } };
  expect(judgeServer(oldServer, request, all, now)).toEqual({ reason: 'there is another authority now' });
  expect(judgeServer(newServer, request, all, now)).toEqual({});
  expect(judgeServer({}, request, trust, now)).toEqual({ reason: 'there is none' });
  expect(judgeServer({ certificate: 'x', key: 'y' }, request, trust, now).reason).toMatch(/no certificate/);
});

test('a certificate of an authority that is not trusted is replaced at once', () => {
  const rotation = { untrusting: ['c1'], unswitched: ['c1'], isServerLeft: true, until: now };
  const trust = { authority: next.certificate, authorities: next.certificate, rotation };
  expect(judgeServer(oldServer, request, trust, now)).toEqual({ reason: 'another authority signed it' });
});

test('an authority stays trusted as long as a server shows a certificate of it, for any time', async () => {
  const lifetimeMs = 90 * day;
  const supplied = await issueCertificate({ ...request, authority: former, algorithm: 'p256', now: begin, lifetimeMs });
  const { notAfter } = inspectCertificate(supplied.certificate);
  const known = { authorities: both(), authority: mark(next), since: now };
  const at = (days: number) =>
    plan({ known, servers: [supplied.certificate], now: new Date(now.getTime() + days * day) });
  expect(at(31)).toMatchObject({
    rotation: { untrusting: [], unswitched: [], isServerLeft: true, until: notAfter },
    record: { authorities: both() },
  });
  expect(at(81)).toMatchObject({ rotation: undefined, record: { authorities: joinCertificates(next.certificate) } });
});

test('a server certificate whose life has not begun is made anew', async () => {
  const ahead = new Date(now.getTime() + 7 * day);
  const young = await issueCertificate({ ...request, authority: next, algorithm: 'p256', now: ahead });
  const trust = { authority: next.certificate, authorities: next.certificate, rotation: undefined };
  expect(judgeServer(young, request, trust, now).reason).toMatch('its life has not begun');
  expect(judgeServer(newServer, request, trust, now).reason).toBeUndefined();
});
