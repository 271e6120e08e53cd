import { expect, test } from 'vitest';
import { finalizerPatch, rfc3339, rfc3339Micro, setCondition } from './index.ts';

const first = new Date('2026-01-01T00:00:00.123Z');
const later = new Date('2026-01-02T00:00:00Z');
const ready = { type: 'Ready', status: 'True', reason: 'Ok', message: 'fine', observedGeneration: 1 } as const;

test('the transition time moves only with the status', () => {
  const one = setCondition(undefined, ready, first);
  expect(one).toEqual([{ ...ready, lastTransitionTime: '2026-01-01T00:00:00Z' }]);
  const two = setCondition(one, { ...ready, message: 'still', observedGeneration: 2 }, later);
  expect(two[0]?.lastTransitionTime).toBe('2026-01-01T00:00:00Z');
  expect(two[0]?.message).toBe('still');
  const three = setCondition(two, { ...ready, status: 'False' }, later);
  expect(three[0]?.lastTransitionTime).toBe('2026-01-02T00:00:00Z');
  expect(one[0]?.status).toBe('True');
});

test('setting an equal condition returns the same list, and other conditions keep their place', () => {
  const list = setCondition(setCondition([], { ...ready, type: 'A' }, first), ready, first);
  expect(setCondition(list, ready, later)).toBe(list);
  expect(setCondition(list, { ...ready, type: 'A', reason: 'New' }, later).map((c) => c.type)).toEqual(['A', 'Ready']);
});

test('finalizer patches carry the version and are left out when there is nothing to do', () => {
  const object = { metadata: { name: 'o', resourceVersion: '5', finalizers: ['x'] } };
  expect(finalizerPatch(object, { add: 'x' })).toBeUndefined();
  expect(finalizerPatch(object, { remove: 'y' })).toBeUndefined();
  expect(finalizerPatch(object, { add: 'y' })?.metadata).toEqual({ resourceVersion: '5', finalizers: ['x', 'y'] });
  expect(finalizerPatch(object, { remove: 'x' })?.metadata.finalizers).toEqual([]);
});

test('times have the forms of metav1.Time and metav1.MicroTime', () => {
  expect(rfc3339(first)).toBe('2026-01-01T00:00:00Z');
  expect(rfc3339Micro(first)).toBe('2026-01-01T00:00:00.123000Z');
});
