import { expect, test } from 'vitest';
import { isGone } from './errors.ts';
import { readLines, readWatch } from './watch.ts';

async function* inChunks(bytes: Uint8Array, size: number) {
  for (let i = 0; i < bytes.length; i += size) {
    yield bytes.subarray(i, i + size);
  }
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) {
    all.push(item);
  }
  return all;
}

test('lines survive any cut, also within a character', async () => {
  const lines = ['{"a":"ü€𝄞"}', 'second', 'x'.repeat(100)];
  const bytes = Buffer.from(`${lines[0]}\n\n${lines[1]}\r\n${lines[2]}\n`);
  for (let size = 1; size <= bytes.length; size++) {
    expect((await collect(readLines(inChunks(bytes, size)))).map((l) => l.trim())).toEqual(lines);
  }
});

test('a reused chunk buffer does not change lines that are incomplete', async () => {
  const shared = Buffer.alloc(8);
  async function* chunks() {
    shared.write('one\ntw  ');
    yield shared.subarray(0, 6);
    yield Buffer.from('o\n');
  }
  expect(await collect(readLines(chunks()))).toEqual(['one', 'two']);
});

test('an incomplete last line is not an event', async () => {
  expect(await collect(readLines(inChunks(Buffer.from('whole\n{"type":"ADD'), 5)))).toEqual(['whole']);
});

test('one huge object in small chunks takes time in proportion to its size', async () => {
  const note = 'ä'.repeat(4 << 20);
  const line = JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'big' }, note } });
  const events = await collect(
    readWatch<{ metadata: { name: string }; note: string }>('w', inChunks(Buffer.from(`${line}\n`), 4096)),
  );
  expect(events).toHaveLength(1);
  expect(events[0]?.type === 'ADDED' && events[0].object.note === note).toBe(true);
});

test('reads all types of events, skips unknown ones and throws on ERROR', async () => {
  const lines = [
    { type: 'ADDED', object: { metadata: { name: 'a', resourceVersion: '1' } } },
    { type: 'SOMETHING-NEW', object: {} },
    { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7' } } },
    {
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version: 1 (9)' },
    },
  ];
  const watch = readWatch('watch pods', inChunks(Buffer.from(lines.map((l) => `${JSON.stringify(l)}\n`).join('')), 9));
  expect((await watch.next()).value).toEqual(lines[0]);
  expect((await watch.next()).value).toEqual({ type: 'BOOKMARK', resourceVersion: '7' });
  const error = await watch.next().catch((e: unknown) => e);
  expect(isGone(error)).toBe(true);
  expect(String(error)).toContain('watch pods: too old resource version: 1 (9)');
});
