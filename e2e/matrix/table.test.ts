import { expect, test } from 'vitest';
import { suiteResultsOf, suiteTable } from './table.ts';

const file = (name: string, status: string, tests: readonly string[]) => ({
  name: `/suites/${name}.e2e.test.ts`,
  status,
  startTime: 1_000,
  endTime: 43_400,
  assertionResults: tests.map((each) => ({ status: each })),
});

test('versions stand beside each other, and what failed or did not run is seen', () => {
  const one = suiteResultsOf(
    JSON.stringify({
      testResults: [file('modes', 'passed', ['passed', 'passed', 'skipped']), file('live', 'failed', [])],
    }),
  );
  const other = suiteResultsOf(JSON.stringify({ testResults: [file('modes', 'failed', ['passed', 'failed'])] }));
  expect(
    suiteTable([
      { version: '3.2.6', suites: one },
      { version: '3.5.1', suites: other },
    ]),
  ).toBe(
    [
      '| Suite | Argo CD 3.2.6 | Argo CD 3.5.1 |',
      '| --- | --- | --- |',
      '| `live` | **1 failed**, 0 passed, 42 s | not run |',
      '| `modes` | 2 passed, 42 s | **1 failed**, 1 passed, 42 s |',
    ].join('\n'),
  );
});
