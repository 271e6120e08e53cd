import { expect, test } from 'vitest';
import { liveMemory } from '../../base/testing.ts';
import { TextPool } from './text-pool.ts';

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
  const before = liveMemory().heap;
  const objects = parsed(10_000, () => long).map((object) => pool.share(object));
  const each = (liveMemory().heap - before) / objects.length;
  expect(each).toBeLessThan(600);
});

test('what is in the pool for others is bounded', () => {
  const pool = new TextPool(100);
  const before = liveMemory().heap;
  for (let round = 0; round < 20; round++) {
    for (const object of parsed(1_000, (index) => `${round}/${index}/${'x'.repeat(1_000)}`)) {
      pool.share(object);
    }
  }
  expect(liveMemory().heap - before).toBeLessThan(5_000_000);
  expect(pool.share('still there')).toBe('still there');
});

test('a text that is seen again and again is not forgotten', () => {
  const pool = new TextPool(100);
  const before = liveMemory().heap;
  const kept: unknown[] = [];
  for (let round = 0; round < 10_000; round++) {
    kept.push(pool.share(JSON.parse(JSON.stringify({ often: 'x'.repeat(1_000) }))));
    pool.share(`a text that comes once, ${round}`);
  }
  expect((liveMemory().heap - before) / kept.length).toBeLessThan(600);
});
