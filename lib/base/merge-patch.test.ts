import { expect, test } from 'vitest';
import { anyMap, edited, Random } from '../../e2e/random/index.ts';
import { canonicalJson } from './canonical-json.ts';
import { type JsonPatchOperation, jsonPatchOf, needsJsonPatch } from './json-patch.ts';
import { isEqual } from './json-value.ts';
import { applyMergePatch, mergePatchBetween } from './merge-patch.ts';
import { effort } from './testing.ts';

test.each([
  ['a null appears', { a: 1 }, { a: 1, n: null }],
  ['a value becomes null', { n: { path: '/' } }, { n: null }],
  ['a null goes', { a: 1, n: null }, { a: 1 }],
  ['a null gets a value', { n: null }, { n: { a: null } }],
  ['a map with a null appears', {}, { m: { n: null, a: [] } }],
  ['a list gets a null in a map', { l: [{ n: 1 }] }, { l: [{ n: null }] }],
  ['a map becomes a list and a list a map', { m: { n: null }, l: [null] }, { m: [null], l: { n: null } }],
  ['a map becomes empty', { m: { a: 1, n: null } }, { m: {} }],
  ['lists change their order', { l: [1, 2, null] }, { l: [2, 1, null] }],
])('%s', (_, from, to) => {
  const patch = mergePatchBetween(from, to);
  expect(applyMergePatch(from, patch)).toStrictEqual(to);
  expect(applied(from, jsonPatchOf(from, patch ?? {}))).toStrictEqual(to);
  expect(mergePatchBetween(to, to)).toBeUndefined();
});

test('what a merge patch can say is one, and a JSON Patch names no more than what changes', () => {
  const spec = { source: { helm: { values: { a: 1, n: null } }, path: 'p' } };
  const next = { source: { helm: { values: { a: 1 } }, path: 'q' } };
  expect(mergePatchBetween(spec, next)).toEqual({ source: { helm: { values: { n: null } }, path: 'q' } });
  expect(needsJsonPatch(mergePatchBetween(spec, next))).toBe(false);
  const back = mergePatchBetween(next, spec) ?? {};
  expect(needsJsonPatch(back)).toBe(true);
  expect(jsonPatchOf(next, back)).toEqual([
    { op: 'add', path: '/source/helm/values/n', value: null },
    { op: 'add', path: '/source/path', value: 'p' },
  ]);
  expect(
    jsonPatchOf({ labels: { 'a/b~c': 'x' } }, { labels: { 'a/b~c': null, gone: null }, marks: { x: '1' } }),
  ).toEqual([
    { op: 'remove', path: '/labels/a~1b~0c' },
    { op: 'add', path: '/marks', value: { x: '1' } },
  ]);
});

test.each(['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__'])(
  'the key %s is one like others',
  (key) => {
    const withKey = JSON.parse(`{"a":1,"${key}":{"b":{}}}`);
    expect(applyMergePatch(withKey, mergePatchBetween(withKey, { a: 1 }))).toEqual({ a: 1 });
    const got = applyMergePatch({ a: 1 }, mergePatchBetween({ a: 1 }, withKey));
    expect(JSON.stringify(got)).toBe(JSON.stringify(withKey));
    expect(isEqual(withKey, { a: 1, b: undefined, c: 1 })).toBe(false);
    expect(isEqual(JSON.parse(`{"${key}":{}}`), { c: 1 })).toBe(false);
  },
);

test('a patch between any two values makes the second of the first, also as JSON Patch', () => {
  for (let seed = 1; seed <= effort(2_000, 100_000); seed++) {
    const random = new Random(seed);
    const from = anyMap(random, 4);
    const to = random.chance(0.5) ? (edited(random, from) as object) : anyMap(random, 4);
    const wanted = { v: to };
    const patch = mergePatchBetween({ v: from }, wanted);
    expect(canonicalJson(applyMergePatch({ v: from }, patch ?? {})), `seed ${seed}`).toBe(canonicalJson(wanted));
    expect(canonicalJson(applied({ v: from }, jsonPatchOf({ v: from }, patch ?? {}))), `seed ${seed}`).toBe(
      canonicalJson(wanted),
    );
    expect(patch === undefined, `seed ${seed}`).toBe(canonicalJson(from) === canonicalJson(to));
    expect(patch === undefined, `seed ${seed}`).toBe(isEqual(from, to));
  }
});

/** The value with a JSON Patch applied, as RFC 6902 has it. */
function applied(value: unknown, patch: readonly JsonPatchOperation[]): unknown {
  return patch.reduce((before, operation) => {
    const path = operation.path.split('/').slice(1);
    return changed(
      before,
      path.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~')),
      operation,
    );
  }, value);
}

function changed(value: unknown, [key = '', ...rest]: readonly string[], operation: JsonPatchOperation): unknown {
  const fields = new Map(Object.entries(value as object));
  if (!fields.has(key) && (rest.length > 0 || operation.op === 'remove')) {
    throw new Error(`${operation.op} ${operation.path} does not apply`);
  }
  if (rest.length > 0) {
    fields.set(key, changed(fields.get(key), rest, operation));
  } else if (operation.op === 'remove') {
    fields.delete(key);
  } else {
    fields.set(key, operation.value);
  }
  return Object.fromEntries(fields);
}
