import { expect, test } from 'vitest';
import type { Store, StoredObject } from '../sync/index.ts';
import { loggedStore } from './index.ts';

function start(...categories: string[]) {
  const lines: object[] = [];
  const written: string[] = [];
  let change: (change: { old: StoredObject | undefined; now: StoredObject | undefined }) => void = () => undefined;
  const inner = {
    subscribe: (listener: typeof change) => {
      change = listener;
      return () => undefined;
    },
    create: async (object: StoredObject) => {
      written.push('create');
      return object;
    },
    delete: async () => void written.push('delete'),
  } as unknown as Store<StoredObject>;
  const store = loggedStore(inner, {
    kind: 'Secret',
    detail: new Set(categories),
    logger: { info: (fields) => void lines.push(fields) },
    shown: () => 'shown',
  });
  return { inner, store, lines, written, change: (next: Parameters<typeof change>[0]) => change(next) };
}
const object = { metadata: { name: 'a', namespace: 'n' } } as StoredObject;
const signal = new AbortController().signal;

test('without a category of its own the store is left as it is', () => {
  const { inner, store } = start('events');
  expect(store).toBe(inner);
});

test('writes are logged and made', async () => {
  const { store, lines, written } = start('actions');
  await store.create(object, signal);
  await store.delete({ name: 'a', namespace: 'n' }, { uid: 'u', propagation: 'Background' }, signal);
  expect(written).toEqual(['create', 'delete']);
  expect(lines).toEqual([
    { log_category: 'actions', action: 'create', kind: 'Secret', detail: 'shown' },
    expect.objectContaining({ action: 'delete', name: 'a', uid: 'u' }),
  ]);
});

test('changes are logged and passed on', () => {
  const { store, lines, change } = start('informers');
  const heard: unknown[] = [];
  store.subscribe((next) => heard.push(next));
  change({ old: undefined, now: object });
  change({ old: object, now: undefined });
  expect(heard).toHaveLength(2);
  expect(lines).toEqual([
    expect.objectContaining({ action: 'added', detail: 'shown' }),
    expect.objectContaining({ action: 'deleted', detail: 'shown' }),
  ]);
});
