import { expect, test } from 'vitest';
import { simulate } from './simulate.ts';

test('a seed always tells the same history', async () => {
  const tell = async () => {
    const lines: string[] = [];
    const outcome = await simulate(7, (line) => lines.push(line));
    return { outcome, lines };
  };
  const told = await tell();
  expect(told.lines.length).toBeGreaterThan(20);
  expect(await tell()).toEqual(told);
});
