import { expect, test } from 'vitest';
import { linesOf, type RowObjects, type Shows, shownLine, shownList } from './items.ts';

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** What is named "mine" is shown. */
const shows: Shows = async (object, isLast) => object.metadata?.name?.startsWith(isLast ? '' : 'mine') ?? false;

/** A body in pieces of some length. */
async function* inPieces(bytes: Buffer, length: number) {
  for (let at = 0; at < bytes.length; at += length) {
    yield bytes.subarray(at, at + length);
  }
}

async function listed(text: string, options: { length?: number; rowObjects?: RowObjects; shows?: Shows } = {}) {
  const parts: Buffer[] = [];
  const body = inPieces(Buffer.from(text), options.length ?? 64 * 1024);
  for await (const part of shownList(body, options.shows ?? shows, options.rowObjects ?? 'Metadata')) {
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

const item = (name: string, more: object = {}) => ({ metadata: { name }, ...more });
const list = {
  kind: 'ConfigMapList',
  apiVersion: 'v1',
  metadata: { resourceVersion: '7', continue: 'abc', remainingItemCount: 5 },
  items: [
    item('mine-1', { data: { a: 'with "items":[ and \\" and ]}' } }),
    item('other', { items: [{ metadata: { name: 'mine' } }] }),
    item('mine-2', { nested: [[{ items: [] }], 'ü€😀'] }),
  ],
};
const { remainingItemCount: _, ...metadata } = list.metadata;

test.each([1, 2, 7, 64, 100_000])(
  'only visible items of a list are shown when it comes in pieces of %d bytes',
  async (length) => {
    const expected = { ...list, metadata, items: [list.items[0], list.items[2]] };
    expect(await listed(JSON.stringify(list), { length })).toBe(JSON.stringify(expected));
    expect(JSON.parse(await listed(JSON.stringify(list, null, 2), { length }))).toEqual(expected);
  },
);

test('a list whose kind comes after its items, and lists without any', async () => {
  const { kind, apiVersion, items } = list;
  expect(JSON.parse(await listed(JSON.stringify({ apiVersion, items, kind, metadata: list.metadata })))).toEqual({
    ...list,
    metadata,
    items: [items[0], items[2]],
  });
  for (const none of [{ kind, items: [] }, { kind, items: null }, { items: [] }, { kind: 'Status', metadata: {} }]) {
    expect(JSON.parse(await listed(JSON.stringify(none)))).toEqual(none);
  }
});

test('items get apiVersion and kind from their list', async () => {
  const seen: unknown[] = [];
  const all: Shows = async ({ kind, apiVersion }) => seen.push({ kind, apiVersion }) > 0;
  await listed(JSON.stringify({ ...list, items: [item('a'), item('b', { kind: 'Own', apiVersion: 'x/v1' })] }), {
    shows: all,
  });
  expect(seen).toEqual([
    { kind: 'ConfigMap', apiVersion: 'v1' },
    { kind: 'Own', apiVersion: 'x/v1' },
  ]);
});

test('a response that is not a list shows nothing', async () => {
  const everything: Shows = async () => true;
  for (const text of [
    '{"kind":"Secret","data":{"a":"b"},"items":{}}',
    '{"items":["text"]}',
    '{"items":[[{}]]}',
    '{"items":[1]}',
    '{"items":[{}',
    '{"items":[{}]',
    '{"items":[{}]}}',
    '[{"metadata":{"name":"mine"}}]',
    '"text"',
    '',
  ]) {
    const answer = listed(text, { shows: everything });
    await expect(answer, text).rejects.toThrow(/./);
  }
  // Beside the items only what belongs to a list.
  expect(await listed('{"data":"secret","items":[],"rows":[{"object":{}}],"kind":"L"}')).toBe(
    '{"items":[],"kind":"L"}',
  );
  expect(await listed('{"kind":"Secret","data":{"a":"b"}}')).toBe('{"kind":"Secret"}');
});

test('rows of a Table are shown, with the requested part of their objects', async () => {
  const row = (name: string) => ({
    cells: [name],
    object: { kind: 'Pod', apiVersion: 'v1', metadata: { name }, spec: {} },
  });
  const table = { kind: 'Table', columnDefinitions: [{ name: 'Name' }], rows: [row('mine'), row('other')] };
  const rows = async (rowObjects: RowObjects) =>
    JSON.parse(await listed(JSON.stringify(table), { rowObjects })) as typeof table;
  expect(await rows('Object')).toEqual({ ...table, rows: [row('mine')] });
  const partial = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'mine' } };
  expect((await rows('Metadata')).rows).toEqual([{ cells: ['mine'], object: partial }]);
  expect((await rows('None')).rows).toEqual([{ cells: ['mine'], object: null }]);
  const bare = { ...table, rows: [{ cells: ['mine'] }, { cells: ['mine'], object: null }] };
  expect(JSON.parse(await listed(JSON.stringify(bare))).rows).toEqual([]);
});

test.each([
  [{ type: 'ADDED', object: item('mine') }, true],
  [{ type: 'ADDED', object: item('other') }, false],
  [{ type: 'MODIFIED', object: item('mine') }, true],
  // It was seen before: its owners may be gone already.
  [{ type: 'DELETED', object: item('other') }, true],
  [{ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } }, true],
  [{ type: 'ERROR', object: { kind: 'Status', code: 410 } }, true],
  // An object in the place of an event.
  [{ kind: 'Secret', metadata: { name: 'other' }, data: { a: 'b' } }, false],
  [{ type: 'NEW', object: item('mine') }, false],
  [{ type: 'ADDED' }, false],
])('the line %j of a watch is shown: %s', async (event, isShown) => {
  const line = JSON.stringify(event);
  expect(await shownLine(line, shows, 'Metadata')).toBe(isShown ? line : undefined);
});

test('a watch of Tables shows the rows that may be', async () => {
  const object = {
    kind: 'Table',
    rows: [
      { cells: [], object: item('mine') },
      { cells: [], object: item('other') },
    ],
  };
  const shown = await shownLine(JSON.stringify({ type: 'ADDED', object }), shows, 'Object');
  expect(JSON.parse(shown ?? '').object.rows).toEqual([object.rows[0]]);
  const none = { type: 'ADDED', object: { ...object, rows: object.rows.slice(1) } };
  expect(await shownLine(JSON.stringify(none), shows, 'Object')).toBeUndefined();
});

test('lines are put together from pieces', async () => {
  const lines: string[] = [];
  for await (const line of linesOf(inPieces(Buffer.from('{"ü":1}\n\n{"b":2}\nrest'), 3))) {
    lines.push(line);
  }
  expect(lines).toEqual(['{"ü":1}', '', '{"b":2}', 'rest']);
});

test(`random lists are as if they had been read whole, seed ${seed}`, async () => {
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const texts = ['mine', 'other', '"', '\\', '\\"', '[{', '}]', '"items":[', 'ü😀', '\n', ''];
  const pick = () => texts[Math.floor(random() * texts.length)] as string;
  const value = (depth: number): unknown => {
    const kind = Math.floor(random() * (depth > 3 ? 3 : 5));
    if (kind === 0) {
      return pick();
    }
    if (kind === 1) {
      return random() * 100;
    }
    if (kind === 2) {
      return null;
    }
    const many = Array.from({ length: Math.floor(random() * 4) }, () => value(depth + 1));
    return kind === 3 ? many : Object.fromEntries(many.map((one, index) => [`k${index}[{`, one]));
  };
  for (let round = 0; round < 300; round++) {
    const items = Array.from({ length: Math.floor(random() * 6) }, () => ({ ...item(pick()), value: value(0) }));
    const text = JSON.stringify({ kind: 'XList', items }, null, random() < 0.3 ? 1 : undefined);
    const expected = { kind: 'XList', items: items.filter(({ metadata: { name } }) => name.startsWith('mine')) };
    const length = 1 + Math.floor(random() * 40);
    expect(JSON.parse(await listed(text, { length })), `round ${round}`).toEqual(expected);
  }
});

test('integers of 64 bits in rows are shown as the API server has them', async () => {
  const id = '1234567890123456789';
  const rows = `[{"cells":["mine",${id}],"object":{"metadata":{"name":"mine"},"data":{"id":${id}}}}]`;
  const table = `{"kind":"Table","rows":${rows}}`;
  expect(await shownLine(`{"type":"ADDED","object":${table}}`, shows, 'Object')).toContain(`"rows":${rows}`);
  expect(await listed(table, { rowObjects: 'None' })).toContain(`"cells":["mine",${id}]`);
});
