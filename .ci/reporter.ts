import { writeFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';
import { type SkippedTest, skippedTests } from '../e2e/needs/index.ts';
import { visible } from './bare.ts';

type Errors = readonly { readonly message?: string; readonly cause?: unknown }[];

/** What a run of tests came to. */
export interface CiResult {
  readonly passed: number;
  readonly failed: number;
  /** What failed, and the first lines of why; then what had not ended. */
  readonly failures: readonly string[];
  readonly skipped: readonly SkippedTest[];
  /** What the run could see of what a bare machine does not have. */
  readonly visible: readonly string[];
}

/** Writes the {@link CiResult}, as JSON, to the file `CI_RESULT`. */
export default class CiReporter implements Reporter {
  readonly #underWay = new Set<string>();
  /** The end of what the processes of tests wrote to stderr: Node.js says there why it ends. */
  #lastWords = '';

  onInit({ logger }: Vitest): void {
    logger.errorStream.on('pipe', (stderr: Readable) => {
      stderr.on('data', (chunk) => {
        this.#lastWords = `${this.#lastWords}${chunk}`.slice(-mostLastWords);
      });
    });
  }

  onTestModuleQueued(module: TestModule): void {
    this.#underWay.add(module.relativeModuleId);
  }

  onTestCaseReady(test: TestCase): void {
    this.#underWay.add(nameOf(test));
  }

  onTestCaseResult(test: TestCase): void {
    this.#underWay.delete(nameOf(test));
  }

  onTestModuleEnd(module: TestModule): void {
    this.#underWay.delete(module.relativeModuleId);
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const failed = tests.filter((test) => test.result().state === 'failed');
    // A file that cannot be loaded, a hook that throws and an error outside of tests have no test to count.
    const others = modules.filter((module) => !module.ok() && ![...module.children.allTests('failed')].length);
    const failures = [
      ...failed.map((test) => failure(nameOf(test), test.result().errors ?? [])),
      ...others.map((module) => failure(module.relativeModuleId, module.errors())),
      ...unhandledErrors.map((error) => failure('outside of tests', [error as Error])),
    ];
    // The error of a process that ended does not say what it ran.
    const ends = [...this.#underWay].map((one) => `${one}: did not come to its end`);
    if (ends.length > 0) {
      ends.push(failure('the last on stderr', [{ message: this.#lastWords }]));
    }
    const result: CiResult = {
      passed: tests.filter((test) => test.result().state === 'passed').length,
      failed: failures.length,
      failures: [...failures, ...ends],
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
const mostLastWords = 1_500;

function nameOf(test: TestCase): string {
  return `${test.module.relativeModuleId} > ${test.fullName}`;
}

function failure(name: string, errors: Errors): string {
  const [error] = errors;
  const text = [error?.message ?? 'no error', ...(error?.cause === undefined ? [] : [`because of ${error.cause}`])];
  const lines = text.flatMap((one) => one.split('\n')).slice(0, shownLines);
  return `${name}: ${lines.join('\n      ')}`;
}
