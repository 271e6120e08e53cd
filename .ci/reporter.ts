import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { type SkippedTest, skippedTests } from '../e2e/needs/index.ts';
import { visible } from './bare.ts';

const shown = 20;

/** What a run of tests came to. */
export interface CiResult {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly SkippedTest[];
  /** What the run could see of what a bare machine does not have. */
  readonly visible: readonly string[];
}

/** Prints the slowest test files and writes the {@link CiResult}, as JSON, to the file `CI_RESULT`. */
export default class CiReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const slowest = modules
      .map((module) => ({ module, seconds: secondsOf(module) }))
      .sort((one, other) => other.seconds - one.seconds)
      .slice(0, shown);
    const lines = slowest.map(
      ({ module, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${module.relativeModuleId}`,
    );
    process.stdout.write(`\nThe ${shown} slowest test files, with their imports and hooks:\n${lines.join('\n')}\n`);

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

function secondsOf(module: TestModule): number {
  const { duration, collectDuration, setupDuration, environmentSetupDuration } = module.diagnostic();
  return (duration + collectDuration + setupDuration + environmentSetupDuration) / 1000;
}
