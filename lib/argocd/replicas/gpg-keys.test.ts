import { expect, test } from 'vitest';
import { processRuntime } from '../../sync/index.ts';
import { annotations, type GpgKeys, gpgKeysName, publishGpgKeys, replicateGpgKeys, skipSyncLabel } from '../index.ts';
import { apiRefusal, Memory, pair, summaries, testLog } from './testing.ts';

function start({ hub = new Memory<GpgKeys>(), managed = new Memory<GpgKeys>() } = {}) {
  const log = testLog();
  const common = { namespace: 'argocd', runtime: processRuntime(log) };
  const joined = pair({
    managed: [publishGpgKeys({ ...common, store: hub })],
    agent: { mode: 'managed', kinds: [replicateGpgKeys({ ...common, store: managed })] },
  });
  return { hub, managed, log, ...joined };
}

const keys = (data: Record<string, string>, name = gpgKeysName): GpgKeys => ({ metadata: { name }, data });

/** What Argo CD cannot do without: the ConfigMap without keys, which is no copy of anything. */
function expectEmpty(managed: Memory<GpgKeys>): void {
  const { metadata, data } = managed.objects.get(gpgKeysName) ?? {};
  expect(data).toEqual({});
  expect(metadata?.annotations ?? {}).toEqual({});
}

test('the keys reach the agent, follow the hub, and go with it', async () => {
  const { hub, managed, settled, sent } = start();
  hub.put(keys({ a: 'A' }));
  await settled();
  expect(managed.objects.get(gpgKeysName)).toMatchObject({
    metadata: { annotations: { [annotations.sourceUid]: `uid-${gpgKeysName}` } },
    data: { a: 'A' },
  });
  hub.put(keys({ b: 'B' }));
  await settled();
  expect(managed.objects.get(gpgKeysName)?.data).toEqual({ b: 'B' });
  hub.remove(gpgKeysName);
  await settled();
  expectEmpty(managed);
  expect(summaries(sent)).toEqual(['create', 'spec-update', 'delete'].map((type) => `gpgkey ${type} ${gpgKeysName}`));
});

test('the ConfigMap that every Argo CD has is taken over, and other ones are none of ours', async () => {
  const managed = new Memory<GpgKeys>();
  managed.put(keys({}));
  managed.put(keys({ x: 'y' }, 'argocd-cm'));
  const { hub, settled } = start({ managed });
  hub.put(keys({ x: 'evil' }, 'argocd-cm'));
  hub.put(keys({ a: 'A' }));
  await settled();
  expect(managed.objects.get(gpgKeysName)?.data).toEqual({ a: 'A' });
  expect(managed.objects.get('argocd-cm')?.data).toEqual({ x: 'y' });
});

test('a principal that wants another ConfigMap changed is refused', async () => {
  const managed = new Memory<GpgKeys>();
  managed.put(keys({ x: 'y' }, 'argocd-cm'));
  const { agent, settled, log } = start({ managed });
  const object = { ...keys({ x: 'evil' }, 'argocd-cm'), metadata: { name: 'argocd-cm', uid: 'u' } };
  agent.receive({ target: 'gpgkey', type: 'create', resourceId: 'r', eventId: 'e', object });
  await settled();
  expect(managed.writes).toEqual([]);
  expect(log.warnings).toEqual([`GPG keys cannot be had here: GnuPG keys are in ${gpgKeysName} and nowhere else`]);
});

test('keys that are kept out by their label stay on the hub, and leave when it is set', async () => {
  const { hub, managed, settled } = start();
  hub.put(keys({ a: 'A' }));
  await settled();
  hub.edit(gpgKeysName, { metadata: { labels: { [skipSyncLabel]: 'true' } } });
  await settled();
  expectEmpty(managed);
});

test('defect 47: local changes are put back, conflicts are no end', async () => {
  const { hub, managed, settled } = start();
  hub.put(keys({ a: 'A' }));
  await settled();
  managed.fail = 2;
  managed.status = 409;
  managed.edit(gpgKeysName, { data: { a: 'mine' } });
  await settled();
  expect(managed.objects.get(gpgKeysName)?.data).toEqual({ a: 'A' });
  expect(apiRefusal(409)).toHaveProperty('status', 409);
});

test('keys without data are keys', async () => {
  const { hub, managed, settled } = start();
  hub.put({ metadata: { name: gpgKeysName } });
  await settled();
  expect(managed.objects.get(gpgKeysName)?.data).toEqual({});
  hub.put(keys({ a: 'A' }));
  await settled();
  expect(managed.objects.get(gpgKeysName)?.data).toEqual({ a: 'A' });
});

test('defect 11: keys that were changed and removed on the hub while nobody was connected', async () => {
  const first = start();
  first.hub.put(keys({ a: 'A' }));
  await first.settled();
  first.stop();
  first.hub.put(keys({ b: 'B' }));
  const second = start(first);
  await second.settled();
  expect(first.managed.objects.get(gpgKeysName)?.data).toEqual({ b: 'B' });
  second.stop();
  first.hub.remove(gpgKeysName);
  await start(first).settled();
  expectEmpty(first.managed);
});
