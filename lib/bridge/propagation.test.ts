import { expect, test } from 'vitest';
import { propagationOf, statusTime } from './propagation.ts';

const now = Date.parse('2026-01-01T12:00:00Z');
const at = (secondsAgo: number) => new Date(now - secondsAgo * 1_000).toISOString().replace(/\.\d+Z$/, 'Z');
const key = { kind: 'Application', namespace: 'a', name: 'b' };
const delay = (lagMs: number, metadata: object | undefined) =>
  propagationOf({ key, lagMs, object: metadata && { metadata } }, 'us', now)?.seconds;

test("counts from the object's own time, which is before anybody noticed the change", () => {
  expect(delay(2_000, { managedFields: [{ manager: 'kubectl', time: at(40) }] })).toBe(39);
  expect(delay(2_000, { creationTimestamp: at(40), managedFields: [{ manager: 'kubectl', time: at(10) }] })).toBe(9);
  expect(delay(2_000, { deletionTimestamp: at(5) })).toBe(4);
});

test('counts from when the change was noticed when the object has no time of it', () => {
  expect(delay(2_000, undefined)).toBe(2);
  expect(delay(2_000, { managedFields: [{ manager: 'us', time: at(40) }] })).toBe(2);
  // Within the resolution of the times of objects.
  expect(delay(300, { managedFields: [{ manager: 'kubectl', time: at(1) }] })).toBe(0.3);
  // The clock of the API server is ahead.
  expect(delay(300, { managedFields: [{ manager: 'kubectl', time: at(-9) }] })).toBe(0.3);
  // The agent is new, the object is not.
  expect(delay(2_000, { creationTimestamp: at(3_600) })).toBe(2);
  expect(delay(2_000, { managedFields: 'x', creationTimestamp: 7 })).toBe(2);
});

test('only objects count', () => {
  expect(propagationOf({ key: { ...key, kind: 'ReliableMessage' }, lagMs: 1, object: {} }, 'us', now)).toBeUndefined();
});

test('the newest time of a status', () => {
  const operationState = { startedAt: at(9), finishedAt: at(3) };
  expect(statusTime({ reconciledAt: at(5), health: { lastTransitionTime: at(7) }, operationState })).toBe(now - 3_000);
  expect(statusTime({ reconciledAt: 'soon', health: null })).toBeUndefined();
  expect(statusTime(undefined)).toBeUndefined();
});
