import { expect, test } from 'vitest';
import { overlay } from './overlay.ts';

const whole = [
  ['spec', 'options'],
  ['spec', 'list'],
  ['annotations', 'ours'],
];
const live = {
  annotations: { theirs: 'yes', ours: 'old', kept: 'a' },
  spec: { options: { kind: 'A', more: { rules: [1], deep: { a: 1 } } }, list: [1, 2, { x: 1 }], theirs: { a: 1 } },
  status: 'fine',
};

test.each([
  ['nothing new', live, live],
  [
    'values change, what others added stays',
    { annotations: { kept: 'b', ours: 'new' }, spec: { options: live.spec.options, list: [3] } },
    { ...live, annotations: { theirs: 'yes', ours: 'new', kept: 'b' }, spec: { ...live.spec, list: [3] } },
  ],
  [
    'what is ours and no longer desired goes, with all that is in it',
    { annotations: { kept: 'a' }, spec: { options: { kind: 'B', more: { deep: {} } } } },
    {
      annotations: { theirs: 'yes', kept: 'a' },
      spec: { options: { kind: 'B', more: { deep: {} } }, theirs: { a: 1 } },
      status: 'fine',
    },
  ],
  [
    'even when the desired state does not mention where it was',
    { status: 'bad' },
    { annotations: { theirs: 'yes', kept: 'a' }, spec: { theirs: { a: 1 } }, status: 'bad' },
  ],
  [
    'another type takes the place',
    { annotations: { ours: 'old' }, spec: { options: 'none', list: { a: 1 }, theirs: { a: [1] } } },
    {
      annotations: { theirs: 'yes', ours: 'old', kept: 'a' },
      spec: { options: 'none', list: { a: 1 }, theirs: { a: [1] } },
      status: 'fine',
    },
  ],
])('%s', (_, desired, result) => {
  expect(overlay(live, desired, whole)).toEqual(result);
});

test('a path that does not exist is not removed', () => {
  expect(overlay({}, { spec: { list: [1] } }, whole)).toEqual({ spec: { list: [1] } });
  expect(overlay({ spec: {} }, {}, whole)).toEqual({ spec: {} });
});

test('the input object is not changed', () => {
  const before = structuredClone(live);
  overlay(live, { spec: { list: [3], theirs: { a: 2 } }, annotations: { kept: 'b' } }, whole);
  expect(live).toEqual(before);
});
