import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';

const shown = 20;

/** Prints the slowest test files and writes how many tests passed and failed, as JSON, to the file `CI_RESULT`. */
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
    const result = {
      passed: tests.filter((state) => state === 'passed').length,
      failed: failed + others + unhandledErrors.length,
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
