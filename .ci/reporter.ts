import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { type SkippedTest, skippedTests } from '../e2e/needs/index.ts';
import { visible } from './bare.ts';

/** What a run of tests came to. */
export interface CiResult {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly SkippedTest[];
  /** What the run could see of what a bare machine does not have. */
  readonly visible: readonly string[];
}

/** Writes the {@link CiResult}, as JSON, to the file `CI_RESULT`. */
export default class CiReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]).map((test) => test.result().state);
    const failed = tests.filter((state) => state === 'failed').length;
    // A file that cannot be loaded, a hook that throws and an error outside of tests have no test to count.
    const others = modules.filter((module) => !module.ok() && ![...module.children.allTests('failed')].length).length;
    const result: CiResult = {
      passed: tests.filter((state) => state === 'passed').length,
      failed: failed + others + unhandledErrors.length,
      skipped: skippedTests(modules),
      visible: visible(),
    };
    if (process.env.CI_RESULT) {
      writeFileSync(process.env.CI_RESULT, JSON.stringify(result));
    }
  }
}
