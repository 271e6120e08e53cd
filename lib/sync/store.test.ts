import { expect, test } from 'vitest';
import { failureOf, isAnswer } from './store.ts';

const answer = (status: number, more: object = {}) => Object.assign(new Error(`${status}`), { status, ...more });

// What a real API server answers.
test.each([
  [404, {}, 'not-found'],
  [409, { reason: 'AlreadyExists' }, 'already-exists'],
  [409, { reason: 'Conflict' }, 'conflict'],
  [422, { details: { causes: [{ field: 'metadata.uid' }] } }, 'conflict'],
  [422, { details: { causes: [{ field: 'metadata.annotations' }] } }, 'rejected'],
  [422, {}, 'rejected'],
  [400, {}, 'rejected'],
  [403, {}, 'rejected'],
  [413, {}, 'rejected'],
  [500, { message: 'POST /apis/x: etcdserver: request is too large' }, 'rejected'],
  [500, { message: 'failed calling webhook "x": connection refused' }, 'transient'],
  [429, {}, 'transient'],
  [503, {}, 'transient'],
])('an answer of %i with %o is %s', (status, more, failure) => {
  expect(failureOf(answer(status, more))).toBe(failure);
  expect(isAnswer(answer(status, more))).toBe(true);
});

test('an error without an answer is transient', () => {
  expect(failureOf(new Error('connection refused'))).toBe('transient');
  expect(failureOf(undefined)).toBe('transient');
  expect(isAnswer(new Error('connection refused'))).toBe(false);
});
