import { expect, test } from 'vitest';
import { fieldsLookedAt } from '../managed/managed-objects.ts';
import { JsonScan } from './json-scan.ts';
import { ListSplitter } from './list-splitter.ts';
import { readObject, readRow } from './object-digest.ts';

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** The items of a list that arrives in pieces with these ends. */
function cut(text: Buffer, borders: readonly number[], blockBytes: number) {
  const splitter = new ListSplitter(
    (scan, block, start, name) => (name === 'items' ? readObject : readRow)(scan, block, start),
    blockBytes,
  );
  const items: { text: string; digest: string }[] = [];
  let together = '';
  const take = (found: ReturnType<ListSplitter['push']>) => {
    for (const { block, from, start, end, digest } of found) {
      together += block.toString('utf8', from, end);
      items.push({ text: block.toString('utf8', start, end), digest });
    }
  };
  let last = 0;
  for (const border of [...borders, text.length]) {
    take(splitter.push(text.subarray(last, border)));
    last = border;
  }
  take(splitter.end());
  return {
    items,
    together: `${splitter.head ?? ''}${splitter.head === undefined ? '' : '['}${together}${splitter.rest}`,
  };
}

const random = (() => {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
})();
const oneOf = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
const space = () => oneOf(['', '', '', '', ' ', '\n  ', '\t', '\r\n']);

/** Strings with all that could be taken for something else, written in one of the ways that JSON has. */
function string(): string {
  const text = oneOf([
    '',
    'mine',
    '"',
    '\\',
    '\\"',
    '\\\\',
    '{',
    '}]',
    '"items":[',
    'ü€😀',
    '\n',
    '\u0000',
    '</a>',
    '],"kind":"x"',
  ]);
  const json = JSON.stringify(text);
  return random() < 0.2 ? `"${[...text].map((c) => escaped(c)).join('')}"` : json;
}

const escaped = (text: string) =>
  Array.from(text, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');

function value(depth: number): string {
  const kind = Math.floor(random() * (depth > 4 ? 3 : 5));
  if (kind === 0) {
    return string();
  }
  if (kind === 1) {
    return oneOf(['0', '-1.5e+10', '7', '1E2']);
  }
  if (kind === 2) {
    return oneOf(['null', 'true', 'false']);
  }
  const many = Array.from({ length: Math.floor(random() * 4) }, () => value(depth + 1));
  if (kind === 3) {
    return `[${space()}${many.join(`${space()},${space()}`)}${space()}]`;
  }
  return objectOf(many.map((one) => [string(), one]));
}

function objectOf(members: readonly (readonly [key: string, value: string])[]): string {
  const text = members.map(([key, one]) => `${key}${space()}:${space()}${one}`).join(`${space()},${space()}`);
  return `{${space()}${text}${space()}}`;
}

const keys = [...fieldsLookedAt, 'data', 'spec', 'items', 'rows', 'status', 'object', 'kinds'];

/** An object whose fields come in any order, some twice, some with names that are written strangely. */
function object(): string {
  const metadata = () =>
    objectOf(
      Array.from({ length: Math.floor(random() * 5) }, () => [
        key(oneOf(['name', 'managedFields', 'managedFields', 'uid', 'annotations', 'm'])),
        value(2),
      ]),
    );
  return objectOf(
    Array.from({ length: Math.floor(random() * 6) }, () => {
      const name = oneOf(keys);
      return [key(name), name === 'metadata' && random() < 0.8 ? metadata() : value(1)];
    }),
  );
}

const key = (name: string) => (random() < 0.05 ? `"${escaped(name)}"` : JSON.stringify(name));

/** The digest of an object by means of a parser. */
function lookedAt(text: string): object {
  const { metadata, ...rest } = JSON.parse(text) as { metadata?: object };
  const fields = Object.fromEntries(Object.entries(rest).filter(([name]) => fieldsLookedAt.has(name)));
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) {
    return metadata === undefined ? fields : { ...fields, metadata };
  }
  const { managedFields: _, ...shown } = metadata as { managedFields?: unknown };
  return { ...fields, metadata: shown };
}

function list(items: readonly string[], name: string): Buffer {
  const before = random() < 0.7 ? [['"kind"', '"XList"'] as const, ['"metadata"', value(3)] as const] : [];
  const after = random() < 0.3 ? [['"apiVersion"', string()] as const] : [];
  const array = `[${space()}${items.join(`${space()},${space()}`)}${space()}]`;
  return Buffer.from(`${space()}${objectOf([...before, [`"${name}"`, array], ...after])}${space()}`);
}

test(`lists are cut as a parser would, wherever the pieces end, seed ${seed}`, () => {
  for (let round = 0; round < 400; round++) {
    const name = oneOf(['items', 'items', 'rows']);
    const row = () =>
      objectOf([
        ['"cells"', value(2)],
        ...(random() < 0.9 ? [[key('object'), random() < 0.1 ? 'null' : object()] as const] : []),
      ]);
    const items = Array.from({ length: Math.floor(random() * 5) }, () => (name === 'items' ? object() : row()));
    const text = list(items, name);
    JSON.parse(text.toString('utf8'));
    const borders = Array.from({ length: Math.floor(random() * 12) }, () => Math.floor(random() * text.length)).sort(
      (a, b) => a - b,
    );
    const found = cut(text, borders, oneOf([1, 10, 100, 64 * 1024]));
    const about = `round ${round}: ${text}`;
    expect(JSON.parse(found.together), about).toEqual(JSON.parse(text.toString('utf8')));
    expect(
      found.items.map((item) => item.text),
      about,
    ).toEqual(items);
    for (const { text: item, digest } of found.items) {
      const expected =
        name === 'items' ? item : JSON.stringify((JSON.parse(item) as { object?: object }).object ?? null);
      const known =
        name === 'items' ? digest : JSON.stringify((JSON.parse(digest) as { object?: object }).object ?? null);
      if (expected === 'null') {
        expect(known, about).toBe('null');
      } else {
        expect(lookedAt(known), about).toEqual(lookedAt(expected));
      }
    }
  }
});

test('a list is cut the same at every byte', () => {
  const items = [
    '{"metadata":{"name":"a\\"\\\\","managedFields":[{"f:x":{}}],"uid":"ü€😀"},"kind":"K"}',
    '{}',
    '{"a":[{"items":[]}]}',
  ];
  const text = Buffer.from(`{"kind":"XList","a":["[",{}],"items": [ ${items.join(' , ')} ],"apiVersion":"v1"}`);
  for (let border = 0; border <= text.length; border++) {
    for (const blockBytes of [1, 64 * 1024]) {
      const { items: found, together } = cut(text, [border], blockBytes);
      expect(
        found.map((item) => item.text),
        `border ${border}`,
      ).toEqual(items);
      expect(JSON.parse(together)).toEqual(JSON.parse(text.toString('utf8')));
    }
  }
  const every = Array.from({ length: text.length }, (_, at) => at);
  expect(cut(text, every, 1).items.map((item) => item.text)).toEqual(items);
});

test('the digest of an item has only the relevant fields', () => {
  const { items } = cut(
    Buffer.from('{"items":[{"kind":"K","data":{"a":"b"},"metadata":{"managedFields":[1],"name":"n","uid":"u"}}]}'),
    [],
    1,
  );
  expect(items[0]?.digest).toBe('{"kind":"K","metadata":{"name":"n","uid":"u"}}');
});

test.each([
  '{"items":[{"a":1},]}',
  '{"items":[,{"a":1}]}',
  '{"items":[{"a":1},,{"a":1}]}',
  '{"items":[{"a":1}{"a":1}]}',
  '{"items":[{"a":1] ,{"b":1}}]}',
  '{"items":[{"a":[}]}]}',
  '{"items":[{"a":}]}',
  '{"items":[{"a" 1}]}',
  '{"items":[{a:1}]}',
  '{"items":[{"a":1',
  `{"items":[{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}]}`,
  `{"items":[{"a":"${'x'.repeat(16 * 1024 * 1024)}"}]}`,
  `{"a":"${'x'.repeat(1024 * 1024)}","items":[]}`,
  `{"items":[],"a":"${'x'.repeat(1024 * 1024)}"}`,
])('a text that is not a list, or too long, is refused: %#', (text) => {
  const borders = Array.from({ length: Math.floor(text.length / 4096) }, (_, at) => (at + 1) * 4096);
  expect(() => cut(Buffer.from(text), borders, 1)).toThrow(RangeError);
});

test('scanning takes no longer for one long item in many pieces', () => {
  const scan = new JsonScan();
  let scanned = 0;
  const splitter = new ListSplitter((_scan, block, start) => {
    scanned += block.length - start;
    return readObject(scan, block, start);
  });
  const text = Buffer.from(`{"items":[{"a":"${'x'.repeat(8 * 1024 * 1024)}"}]}`);
  for (let at = 0; at < text.length; at += 4096) {
    splitter.push(text.subarray(at, at + 4096));
  }
  expect(splitter.end()).toHaveLength(1);
  expect(scanned).toBeLessThan(4 * text.length);
});
