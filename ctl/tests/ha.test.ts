import { afterAll, beforeAll, expect, test } from 'vitest';
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

test.each(['text', 'json', 'yaml'])('a status of a principal does not steer the terminal in %s', (format) => {
  const status = { state: 'active', preferredRole: '', peerAddress: '', peerReachable: false, peerState: '' };
  const counts = { connectedReplicas: 0, connectedAgents: 0, lastEventTimestamp: 0, lastSequenceNum: 0 };
  const problems = ['a\u009b2J b\u2028c\u202e'];
  const shown = shownStatus({ ...status, ...counts, problems } as never, format, 0);
  expect(shown.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Cf}|\u2028/u);
});
