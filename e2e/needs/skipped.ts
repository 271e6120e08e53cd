import type { TestCase, TestModule } from 'vitest/node';
import { type NeedName, needs } from './needs.ts';

/** A test that was skipped for a reason. */
export interface SkippedTest {
  /** Relative to the root of the project. */
  readonly file: string;
  /** What it needs and is not there; empty when the test gave another reason. */
  readonly missing: readonly NeedName[];
  /** The reason in words, with what would run the test. */
  readonly reason: string;
}

/** The tests that were skipped for a reason; not those that the command line left out, or that follow a failed hook. */
export function skippedTests(modules: readonly TestModule[]): SkippedTest[] {
  return modules.flatMap((module) =>
    [...module.children.allTests('skipped')].filter(isNamed).flatMap((test) => {
      const missing = missingFor(test);
      const reason = missing.length > 0 ? `needs ${missing.map(inWords).join(', and ')}` : noteOf(test);
      return reason === undefined ? [] : [{ file: module.relativeModuleId, missing, reason }];
    }),
  );
}

/** How many tests were skipped for each reason, most first. */
export function reasonsOf(skipped: readonly SkippedTest[]): [reason: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { reason } of skipped) {
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].sort(([, one], [, other]) => other - one);
}

/** Whether its name is one of those that the command line asks for (`-t`). */
function isNamed(test: TestCase): boolean {
  const { testNamePattern } = test.project.globalConfig;
  // As Vitest does: with blanks between the names of groups and test.
  const names = [test.name];
  for (let parent = test.parent; parent.type === 'suite'; parent = parent.parent) {
    names.unshift(parent.name);
  }
  return testNamePattern === undefined || names.join(' ').match(testNamePattern) !== null;
}

function missingFor({ tags }: TestCase): NeedName[] {
  return (tags as NeedName[]).filter((tag) => needs.get(tag)?.isThere === false);
}

function noteOf(test: TestCase): string | undefined {
  const result = test.result();
  return result.state === 'skipped' ? result.note : undefined;
}

function inWords(name: NeedName): string {
  const { what, remedy } = needs.get(name) ?? { what: name, remedy: '' };
  return `${what} (${remedy})`;
}
