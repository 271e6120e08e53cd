import { expect, test } from 'vitest';
import { simulate } from './simulate.ts';

test('a seed always gives the same history', async () => {
  const run = async () => {
    const lines: string[] = [];
    const outcome = await simulate(7, { trace: (line) => lines.push(line) });
    return { outcome, lines };
  };
  const first = await run();
  expect(first.lines.length).toBeGreaterThan(20);
  expect(await run()).toEqual(first);
});

test('a watch that has left something out never goes on', async () => {
  // A backup from before a restore comes to its end while watches are silent because of another one.
  expect(await simulate(712_309)).toMatchObject({ problems: [] });
});
