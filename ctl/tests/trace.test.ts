import { expect, test } from 'vitest';
import { annotations } from '../../lib/argocd/index.ts';
import type { ConnectionRecord } from '../../lib/clusters/index.ts';
import { type ShownApplication, stationsOf } from '../../lib/way/index.ts';
import { copyOf, shownWay } from '../commands/trace.ts';

const at = (second: number) => `2026-06-01T12:00:${String(second).padStart(2, '0')}Z`;
const written = (part: string, time: string) => ({ manager: 'm', time, fieldsV1: { [part]: {} } });

function application(
  options: { looked?: number; sync?: string; health?: string; namespace?: string } = {},
): ShownApplication {
  const { looked = 5, sync = 'Synced', health = 'Healthy', namespace = 'argocd' } = options;
  return {
    metadata: {
      name: 'shop',
      namespace,
      uid: 'u',
      generation: 3,
      managedFields: [written('f:spec', at(1)), written('f:status', at(9))],
    },
    spec: { project: 'default', destination: { name: 'east' } },
    status: {
      reconciledAt: at(looked),
      sync: { status: sync, revision: 'abc' },
      operationState: { phase: 'Succeeded', finishedAt: at(7) },
      health: { status: health, lastTransitionTime: at(8) },
    },
  };
}
const record: ConnectionRecord = {
  agent: 'east',
  isConnected: true,
  mode: 'managed',
  version: '',
  holder: 'p',
  since: '2026-06-01T11:00:00.000000Z',
  lastSeen: undefined,
};
const way = { hub: application(), agent: 'east', record, copy: application() };
const waiting = (stations: ReturnType<typeof stationsOf>) => stations.find(({ isDone }) => !isDone)?.station;

test('of a cluster that the Application may not go to nothing is told', () => {
  const refusal = 'AppProject default does not allow destination east, so east gets nothing new of this Application';
  const stations = stationsOf({ ...way, refusal });
  expect(stations.map(({ station, isDone, at: time, text }) => [station, isDone, time, text])).toEqual([
    ['hub', true, '2026-06-01T12:00:01Z', 'argocd/shop, generation 3'],
    ['agent', false, '', refusal],
  ]);
});

test('a change that has arrived, with the times between', () => {
  const stations = stationsOf(way);
  expect(waiting(stations)).toBeUndefined();
  expect(shownWay(stations, 'text', new Date(at(10)))).toBe(
    [
      '   STATION   TIME                  AFTER',
      '✓  hub       2026-06-01T12:00:01Z  +0s    argocd/shop, generation 3',
      '✓  agent     2026-06-01T11:00:00Z  +0s    east is connected (managed)',
      '✓  copy      2026-06-01T12:00:01Z  +0s    argocd/shop, generation 3',
      '✓  compared  2026-06-01T12:00:05Z  +4s    at revision abc',
      '✓  synced    2026-06-01T12:00:07Z  +6s    Succeeded',
      '✓  healthy   2026-06-01T12:00:08Z  +7s    Healthy',
      '✓  reported  2026-06-01T12:00:09Z  +8s    the hub shows what the cluster has',
      '',
      'It has arrived.',
      '',
    ].join('\n'),
  );
});

test.each([
  ['agent', { ...way, agent: undefined }],
  ['agent', { ...way, record: undefined }],
  ['agent', { ...way, record: { ...record, isConnected: false } }],
  ['copy', { ...way, copy: 'missing' as const }],
  ['copy', { ...way, copy: { ...application(), spec: { source: 'other' } as object } }],
  [
    'copy',
    {
      ...way,
      copy: { ...application(), metadata: { name: 'shop', annotations: { 'argocd.argoproj.io/source-uid': 'v' } } },
    },
  ],
  ['compared', { ...way, hub: { ...application(), status: {} }, copy: undefined }],
  ['synced', { ...way, copy: application({ sync: 'OutOfSync' }) }],
  ['healthy', { ...way, copy: application({ health: 'Degraded' }) }],
  ['reported', { ...way, hub: application({ health: 'Progressing' }) }],
])('waits at %s', (station, state) => {
  expect(waiting(stationsOf(state))).toBe(station);
});

test('an error of Argo CD is waited for, but not that of a deletion which is over', () => {
  const withError = (type: string, metadata: object = {}) => {
    const copy = application();
    const conditions = [{ type, message: 'configmaps "greeting" not found' }];
    return { ...copy, metadata: { ...copy.metadata, ...metadata }, status: { ...copy.status, conditions } };
  };
  const waitsFor = (copy: ShownApplication) => waiting(stationsOf({ ...way, copy }));
  expect(waitsFor(withError('ComparisonError'))).toBe('compared');
  expect(waitsFor(withError('DeletionError', { deletionTimestamp: at(9) }))).toBe('compared');
  expect(waitsFor(withError('DeletionError'))).toBeUndefined();
});

test('beside the copy of another Application, the one that is made from this is the copy', async () => {
  const of = (namespace: string, source: string): ShownApplication => ({
    ...application({ namespace }),
    metadata: { name: 'shop', namespace, annotations: { [annotations.sourceUid]: source } },
  });
  const find = async (...there: ShownApplication[]) => {
    const get = async (_: unknown, key: { namespace: string }) =>
      there.find(({ metadata }) => metadata.namespace === key.namespace);
    const agent = () => ({ namespace: 'argocd', client: { get } });
    const ctl = { targets: { agent: { context: 'east' } }, agent, signal: new AbortController().signal };
    const copy = await copyOf(ctl as never, { namespace: 'team-a', name: 'shop' }, 'wanted');
    return typeof copy === 'object' ? copy.metadata.namespace : copy;
  };
  expect(await find(of('argocd', 'other'), of('team-a', 'wanted'))).toBe('team-a');
  expect(await find(of('argocd', 'wanted'), of('team-a', 'other'))).toBe('argocd');
  expect(await find(of('argocd', 'other'))).toBe('argocd');
  expect(await find()).toBe('missing');
});

test('a message of a cluster does not steer the terminal', () => {
  const station = { station: 'health', isDone: false, at: '', text: '\u001b]0;x\u0007 It has arrived.\nroot# \u202e' };
  for (const output of ['text', 'json', 'yaml']) {
    const shown = shownWay([station as never], output, new Date());
    expect(shown.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Cf}/u);
    expect(shown).not.toContain('\nroot#');
  }
});
