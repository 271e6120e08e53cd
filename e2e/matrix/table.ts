import { basename } from 'node:path';
import { z } from 'zod';

/** The outcome of the suites with one version of Argo CD. */
export interface Column {
  readonly version: string;
  readonly suites: readonly SuiteResult[];
}

/** The outcome of one test file. */
export interface SuiteResult {
  /** The file's name without its endings. */
  readonly name: string;
  readonly passed: number;
  /** A file that could not be run at all counts as one. */
  readonly failed: number;
  readonly seconds: number;
}

/** The part of vitest's JSON report that is read. Times are in ms. */
const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      startTime: z.number(),
      endTime: z.number(),
      assertionResults: z.array(z.object({ status: z.string() })),
    }),
  ),
});

/** The outcomes in a report of vitest's JSON reporter. @throws ZodError when it is none */
export function suiteResultsOf(json: string): SuiteResult[] {
  return report.parse(JSON.parse(json)).testResults.map((file) => {
    const count = (status: string) => file.assertionResults.filter((one) => one.status === status).length;
    const failed = count('failed');
    return {
      name: basename(file.name).replace(/\.e2e\.test\.ts$/, ''),
      passed: count('passed'),
      failed: failed === 0 && file.status === 'failed' ? 1 : failed,
      seconds: Math.round((file.endTime - file.startTime) / 1000),
    };
  });
}

/** A table in Markdown: a row for each suite, a column for each version. */
export function suiteTable(columns: readonly Column[]): string {
  const names = [...new Set(columns.flatMap(({ suites }) => suites.map(({ name }) => name)))].sort();
  const cell = ({ suites }: Column, name: string) => {
    const found = suites.find((one) => one.name === name);
    if (found === undefined) {
      return 'not run';
    }
    const { passed, failed, seconds } = found;
    return failed === 0 ? `${passed} passed, ${seconds} s` : `**${failed} failed**, ${passed} passed, ${seconds} s`;
  };
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(['Suite', ...columns.map(({ version }) => `Argo CD ${version}`)]),
    line(['---', ...columns.map(() => '---')]),
    ...names.map((name) => line([`\`${name}\``, ...columns.map((column) => cell(column, name))])),
  ].join('\n');
}
