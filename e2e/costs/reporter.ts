import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import type { Wait } from '../../lib/base/testing.ts';

const shown = 20;

/** What a test file took. */
interface Cost {
  readonly file: string;
  /** From its first import to the end of its last hook. Seconds. */
  readonly wall: number;
  /** See `TaskMeta.cpuSeconds`. */
  readonly cpu: number;
  readonly tests: readonly string[];
  /** Waits that took seconds. */
  readonly waits: readonly Wait[];
}

/**
 * Prints the dearest test files and the longest waits at the end of a run; with `TEST_COSTS=<file>` it writes what all files took
 * there, as JSON.
 */
export default class CostsReporter implements Reporter {
  onInit(): void {
    try {
      write([]);
    } catch (error) {
      throw new Error(`TEST_COSTS cannot be written: ${(error as Error).message}`);
    }
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const costs = modules.map(costOf).sort((one, other) => other.wall - one.wall);
    write(costs);
    if (costs.length > shown) {
      const lines = costs.slice(0, shown).map(({ wall, cpu, file }) => `${inSeconds(wall)} ${inSeconds(cpu)}  ${file}`);
      process.stdout.write(
        `\n The ${shown} dearest of ${costs.length} test files: seconds, and of those the CPU's\n${lines.join('\n')}\n\n`,
      );
      const waits = costs
        .flatMap(({ file, waits }) => waits.map((wait) => ({ file, ...wait })))
        .sort((one, other) => other.ms - one.ms)
        .slice(0, shown)
        .map(({ ms, file, what }) => `${inSeconds(ms / 1000)}  ${file}: ${what.replace(/\s+/g, ' ').slice(0, 80)}`);
      if (waits.length > 0) {
        process.stdout.write(` The longest waits: seconds\n${waits.join('\n')}\n\n`);
      }
    }
  }
}

function write(costs: readonly Cost[]): void {
  if (process.env.TEST_COSTS) {
    writeFileSync(process.env.TEST_COSTS, JSON.stringify(costs, undefined, 1));
  }
}

const inSeconds = (seconds: number) => seconds.toFixed(1).padStart(8);

function costOf(module: TestModule): Cost {
  const { duration, collectDuration, setupDuration, environmentSetupDuration } = module.diagnostic();
  return {
    file: module.relativeModuleId,
    wall: (duration + collectDuration + setupDuration + environmentSetupDuration) / 1000,
    cpu: module.meta().cpuSeconds ?? 0,
    tests: [...module.children.allTests()].map((test) => `${test.fullName}: ${test.result().state}`),
    waits: module.meta().waits ?? [],
  };
}
