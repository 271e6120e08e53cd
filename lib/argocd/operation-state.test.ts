import { expect, test } from 'vitest';
import { isSameOperation } from './operation-state.ts';

const added = { initiatedBy: {}, retry: {} };
const source = (valuesObject: object) => ({ repoURL: 'u', helm: { valuesObject } });

test.each<[string, object, object]>([
  ['as argocd-server asks for it', { ...added, sync: { revision: '1' } }, { ...added, sync: { revision: '1' } }],
  ['by a plain patch', { sync: { revision: '1' } }, { ...added, sync: { revision: '1' } }],
  ['with empty fields', { info: null, sync: { prune: false, syncOptions: [], revision: '' } }, { ...added, sync: {} }],
  [
    'with an empty value that Argo CD writes',
    { info: [{ name: 'a' }], sync: {} },
    { ...added, info: [{ name: 'a', value: '' }], sync: {} },
  ],
  ['before Argo CD has noted it', { sync: { prune: true } }, { sync: { prune: true } }],
  [
    'with nulls in values',
    { sync: { source: source({ a: null, b: [] }) } },
    { ...added, sync: { source: source({ a: null, b: [] }) } },
  ],
  [
    'a retry with a refresh',
    { retry: { limit: 2, refresh: true }, sync: { revision: '1', prune: true } },
    { initiatedBy: {}, retry: { limit: 2, refresh: true }, sync: { prune: true } },
  ],
])('the same operation: %s', (_, asked, noted) => {
  expect(isSameOperation(noted, { ...asked })).toBe(true);
});

test.each<[string, object, object]>([
  ['another revision', { sync: { revision: '1' } }, { ...added, sync: { revision: '2' } }],
  ['with a revision', { sync: {} }, { ...added, sync: { revision: '1' } }],
  ['of a part', { sync: {} }, { ...added, sync: { resources: [{ kind: 'Deployment', name: 'web' }] } }],
  ['by somebody', { sync: {} }, { initiatedBy: { automated: true }, retry: {}, sync: {} }],
  ['by other means', { sync: { syncStrategy: { apply: {} } } }, { ...added, sync: { syncStrategy: { hook: {} } } }],
  ['without a null in values', { sync: { source: source({ a: null }) } }, { ...added, sync: { source: source({}) } }],
  ['without a revision, but no retry', { sync: { revision: '1' } }, { ...added, sync: {} }],
  ['options in another order', { sync: { syncOptions: ['a', 'b'] } }, { ...added, sync: { syncOptions: ['b', 'a'] } }],
])('another operation: %s', (_, asked, noted) => {
  expect(isSameOperation(noted, { ...asked })).toBe(false);
});

test('what is not there is no operation', () => {
  expect(isSameOperation(undefined, { sync: {} })).toBe(false);
  expect(isSameOperation({ sync: {} }, undefined)).toBe(false);
  expect(isSameOperation(undefined, undefined)).toBe(false);
});
