import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventLines, recordedLines, recordingNames } from './index.ts';

test('every recording is described, and what is described is here', () => {
  const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');
  const table = readme.split('## Recordings')[1]?.split('## ')[0] ?? '';
  const described = Array.from(table.matchAll(/^\| `([\w-]+)` \|/gm), ([, name]) => name);
  expect([...recordingNames(), 'headers', 'jwt-claims'].sort()).toEqual(described.sort());
});

test.each(recordingNames())('%s holds events in the order of the principal', (name) => {
  const numbers = recordedLines(name).map(({ seq }) => seq);
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(eventLines(name).length).toBeGreaterThan(5);
});
