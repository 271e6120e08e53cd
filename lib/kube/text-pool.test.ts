import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { TextPool } from './text-pool.ts';

/** Bytes that live in the heap. */
function liveBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

/** Objects as the API server sends them: each text is a new one. */
const parsed = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => JSON.parse(JSON.stringify({ a: { b: [text(index)] }, c: text(index) })));

test('a value stays equal', () => {
  const text =
    '{"a":[1,null,true,"a text that is long enough",["x",{"b":"a text that is long enough"}]],"__proto__":{"c":"another long text"},"d":null,"e":-0.5}';
  const pool = new TextPool();
  for (let round = 0; round < 3; round++) {
    expect(JSON.stringify(pool.share(JSON.parse(text)))).toBe(text);
  }
  expect(pool.share('a text that is long enough')).toBe('a text that is long enough');
});

test('equal texts take the memory of one', () => {
  const long = 'x'.repeat(1_000);
  const pool = new TextPool();
  const before = liveBytes();
  const objects = parsed(10_000, () => long).map((object) => pool.share(object));
  const each = (liveBytes() - before) / objects.length;
  expect(each).toBeLessThan(600);
});

test('what is in the pool for others is bounded', () => {
  const pool = new TextPool(100);
  const before = liveBytes();
  for (let round = 0; round < 20; round++) {
    for (const object of parsed(1_000, (index) => `${round}/${index}/${'x'.repeat(1_000)}`)) {
      pool.share(object);
    }
  }
  expect(liveBytes() - before).toBeLessThan(5_000_000);
  expect(pool.share('still there')).toBe('still there');
});

test('a text that is seen again and again is not forgotten', () => {
  const pool = new TextPool(100);
  const before = liveBytes();
  const kept: unknown[] = [];
  for (let round = 0; round < 10_000; round++) {
    kept.push(pool.share(JSON.parse(JSON.stringify({ often: 'x'.repeat(1_000) }))));
    pool.share(`a text that comes once, ${round}`);
  }
  expect((liveBytes() - before) / kept.length).toBeLessThan(600);
});
