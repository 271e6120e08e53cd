import { expect, test } from 'vitest';
import { tracesOf } from './traces.ts';

test('the last lines of each program about an object that a finding names', () => {
  const said = Array.from({ length: 20 }, (_, index) => `line ${index} of web`).join('\n');
  const lines = tracesOf(
    [{ what: 'cluster1/web is on the hub though nobody wants it' }, { what: 'the run itself has failed' }],
    [
      { name: 'agent', output: `${said}\nof web-2\n` },
      { name: 'principal', output: 'nothing' },
    ],
  );
  expect(lines).toHaveLength(8);
  expect(lines.at(-1)).toBe('web, agent: line 19 of web');
});
