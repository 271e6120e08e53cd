import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { shownStatus } from '../commands/ha.ts';
import { type HaAdminStub, startHaAdmin } from '../testing/ha-admin.ts';
import { runCtl } from '../testing/run-ctl.ts';

let server: HaAdminStub;
let address: string;
beforeAll(async () => {
  server = await startHaAdmin();
  address = server.address;
});
afterAll(() => server?.stop());

test('status in three formats', async () => {
  expect((await runCtl(['ha', 'status', '-a', address])).out).toBe(
    [
      'HA Status',
      '---------',
      'State:             active',
      'Preferred Role:    primary',
      'Peer Address:      other:8404',
      'Connected Replicas: 1',
      'Connected Agents:  3',
      'Last Sequence:     7',
      '',
    ].join('\n'),
  );
  expect(JSON.parse((await runCtl(['ha', 'status', '-a', address, '-o', 'json'])).out)).toEqual({
    state: 'active',
    preferred_role: 'primary',
    peer_address: 'other:8404',
    connected_replicas: 1,
    last_sequence_num: 7,
    connected_agents: 3,
  });
  expect((await runCtl(['ha', 'status', '-a', address, '-o', 'yaml'])).out).toContain('peerreachable: false\n');
  expect(await runCtl(['ha', 'status', '-a', address, '-o', 'xml'])).toMatchObject({
    code: 1,
    err: '[FATAL]: unknown output format: xml\n',
  });
});

test('promote and demote ask first, unless forced', async () => {
  const refused = await runCtl(['ha', 'promote', '-a', address], { input: 'n\n' });
  expect(refused).toMatchObject({ code: 0, out: expect.stringContaining('Proceed? [y/N]: Operation cancelled.\n') });
  expect(server.forced).toEqual([]);
  expect(await runCtl(['ha', 'promote', '-a', address], { input: 'y\n' })).toMatchObject({
    code: 1,
    err: '[FATAL]: promote failed: the peer is active\n',
  });
  expect((await runCtl(['ha', 'promote', '-a', address, '-f'])).out).toBe('Promoted. State is now: active\n');
  expect(server.forced).toEqual([false, true]);
  expect((await runCtl(['ha', 'demote', '-a', address, '-f'])).out).toBe('Demoted. State is now: replicating\n');
});

test('a principal that is not there', async () => {
  const { code, err } = await runCtl(['ha', 'status', '-a', '127.0.0.1:1', '-t', '5s']);
  expect([code, err]).toEqual([1, expect.stringContaining('failed to get HA status: ')]);
});

describe('with TLS', () => {
  let secured: HaAdminStub;
  let folder: string;
  const file = (name: string) => join(folder, name);
  const tls = (cert: string, ca = 'ca.crt') => [
    ...['--tls-cert', file(`${cert}.crt`), '--tls-key', file(`${cert}.key`)],
    ...['--tls-ca', file(ca)],
  ];
  const status = (...flags: string[]) => runCtl(['ha', 'status', '-a', secured.address, '-t', '5s', ...flags]);
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ha-admin-'));
    const [authority, other] = await Promise.all([
      createAuthority({ commonName: 'ca' }),
      createAuthority({ commonName: 'other' }),
    ]);
    const [server, admin, stranger] = await Promise.all([
      issueCertificate({ authority, commonName: 'principal', hosts: ['127.0.0.1'], usages: ['server'] }),
      issueCertificate({ authority, commonName: 'ha-admin', usages: ['client'] }),
      issueCertificate({ authority: other, commonName: 'ha-admin', usages: ['client'] }),
    ]);
    await Promise.all([
      writeFile(file('ca.crt'), authority.certificate),
      writeFile(file('other.crt'), other.certificate),
      writeFile(file('admin.crt'), admin.certificate),
      writeFile(file('admin.key'), admin.key),
      writeFile(file('stranger.crt'), stranger.certificate),
      writeFile(file('stranger.key'), stranger.key),
    ]);
    secured = await startHaAdmin({ cert: server.certificate, key: server.key, clientCa: authority.certificate });
  });
  afterAll(async () => {
    secured?.stop();
    await rm(folder, { recursive: true });
  });

  test('a certificate and its authority are shown', async () => {
    expect(await status(...tls('admin'))).toMatchObject({ code: 0, out: expect.stringContaining('State:') });
    const done = await runCtl(['ha', 'promote', '-a', secured.address, '-f', ...tls('admin')]);
    expect(done.out).toBe('Promoted. State is now: active\n');
    const demoted = await runCtl(['ha', 'demote', '-a', secured.address, '-f', ...tls('admin')]);
    expect(demoted.out).toBe('Demoted. State is now: replicating\n');
  });

  test('without flags there is a hint, but not when nothing listens', async () => {
    const hint = '\n\nHint: the admin endpoint may require mTLS. Provide --tls-cert, --tls-key, and --tls-ca flags\n';
    const { code, err } = await status();
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(new RegExp(`^.FATAL.: failed to get HA status: .*${hint}$`)),
    ]);
    expect((await runCtl(['ha', 'status', '-a', '127.0.0.1:1'])).err).not.toContain('Hint');
  });

  test('a certificate of another authority is refused, and so is another principal', async () => {
    expect((await status(...tls('stranger'))).err).toContain('; does the principal trust the CA of --tls-cert?');
    expect((await status(...tls('admin', 'other.crt'))).err).toContain('is not issued by a CA that we trust');
  });

  test('who may not is told what to look at', async () => {
    const denied = async (details: string) => {
      secured.denied = details;
      return (await runCtl(['ha', 'demote', '-a', secured.address, '-f', ...tls('admin')])).err;
    };
    expect(await denied('ha-admin-auth not configured; all admin calls are denied')).toContain(
      '\n\nHint: set --ha-admin-auth (ARGOCD_PRINCIPAL_HA_ADMIN_AUTH) of the principal\n',
    );
    expect(await denied('client identity "CN=x" does not match ha-admin-auth pattern')).toContain(
      '\n\nHint: client certificate identity does not match --ha-admin-auth',
    );
    expect(await denied('access denied')).toBe('[FATAL]: demote failed: access denied\n');
  });

  test('all three files are needed, and must fit', async () => {
    const failed = async (...flags: string[]) => {
      const { code, err } = await status(...flags);
      expect(code).toBe(1);
      return err;
    };
    expect(await failed('--tls-cert', 'x')).toBe(
      '[FATAL]: failed to load TLS credentials: all three flags --tls-cert, --tls-key, and --tls-ca are required for mTLS\n',
    );
    expect(await failed(...tls('missing'))).toMatch(/loading client cert \(--tls-cert .*missing.crt, .*ENOENT/);
    expect(await failed(...tls('admin', 'admin.key'))).toMatch(/loading CA \(--tls-ca .*admin.key\): /);
  });
});

test.each(['text', 'json', 'yaml'])('a status of a principal does not steer the terminal in %s', (format) => {
  const status = { state: 'active', preferredRole: '', peerAddress: '', peerReachable: false, peerState: '' };
  const counts = { connectedReplicas: 0, connectedAgents: 0, lastEventTimestamp: 0, lastSequenceNum: 0 };
  const problems = ['a\u009b2J b\u2028c\u202e'];
  const shown = shownStatus({ ...status, ...counts, problems } as never, format, 0);
  expect(shown.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Cf}|\u2028/u);
});
