import type { Reporter, TestModule } from 'vitest/node';
import { reasonsOf, skippedTests } from './skipped.ts';

/** Prints at the end of a run how many tests were skipped, why, and what would run them. */
export default class SkippedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = skippedTests(modules);
    if (skipped.length > 0) {
      const lines = reasonsOf(skipped).map(([reason, count]) => `${`${count}`.padStart(6)}  ${reason}`);
      process.stdout.write(
        `\n Skipped tests: ${skipped.length} (CONTRIBUTING.md, "What tests need")\n${lines.join('\n')}\n\n`,
      );
    }
  }
}
