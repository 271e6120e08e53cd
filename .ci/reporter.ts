import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { type SkippedTest, skippedTests } from '../e2e/needs/index.ts';
import { visible } from './bare.ts';

type Errors = readonly { readonly message?: string }[];

/** What a run of tests came to. */
export interface CiResult {
  readonly passed: number;
  readonly failed: number;
  /** What failed, and the first lines of why. */
  readonly failures: readonly string[];
  readonly skipped: readonly SkippedTest[];
  /** What the run could see of what a bare machine does not have. */
  readonly visible: readonly string[];
}

/** Writes the {@link CiResult}, as JSON, to the file `CI_RESULT`. */
export default class CiReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const failed = tests.filter((test) => test.result().state === 'failed');
    // A file that cannot be loaded, a hook that throws and an error outside of tests have no test to count.
    const others = modules.filter((module) => !module.ok() && ![...module.children.allTests('failed')].length);
    const failures = [
      ...failed.map((test) =>
        failure(`${test.module.relativeModuleId} > ${test.fullName}`, test.result().errors ?? []),
      ),
      ...others.map((module) => failure(module.relativeModuleId, module.errors())),
      ...unhandledErrors.map((error) => failure('outside of tests', [error as Error])),
    ];
    const result: CiResult = {
      passed: tests.filter((test) => test.result().state === 'passed').length,
      failed: failures.length,
      failures,
      skipped: skippedTests(modules),
      visible: visible(),
    };
    if (process.env.CI_RESULT) {
      writeFileSync(process.env.CI_RESULT, JSON.stringify(result));
    }
  }
}

/** So many lines, that a fault which does not come again can be understood from the end of a run alone. */
const shownLines = 20;

function failure(name: string, errors: Errors): string {
  const lines = errors[0]?.message?.split('\n').slice(0, shownLines) ?? ['no error'];
  return `${name}: ${lines.join('\n      ')}`;
}
