/*
 * Checks and tests everything, and prints `N passed, N failed` alone on its last line: on a fresh machine too. Arguments are
 * for Vitest, to run a part of the tests: `.ci/run e2e/monitoring`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reasonsOf, type SkippedTest } from '../e2e/needs/index.ts';
import { testReporters } from '../vitest.config.ts';
import { bareEnvironment } from './bare.ts';
import { installPackages, lacksPackagesAlone, whatDebianHas } from './debian.ts';
import type { CiResult } from './reporter.ts';

/** The exit code of a run that has counted its failures. */
const somethingFailed = 3;
const help = `Usage: .ci/run [ARGUMENTS OF VITEST ...]

Runs "npm run check", then "npm test" and "npm run test:slow" with nothing but what the README asks for, then the tests that
were skipped there and need no more than Debian's packages, which it installs. The last line is "N passed, N failed". It takes
about an hour.

  e2e/monitoring   runs only the tests of this folder
  --help           this text
`;

if (process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) {
  process.stdout.write(help);
  process.exit();
}

const folder = mkdtempSync(join(tmpdir(), 'ci-'));
const reporters = [...testReporters, './.ci/reporter.ts'].map((one) => `--reporter=${one}`);
const summary: string[] = [];
let passed = 0;
let failed = 0;

/** Runs a command to its end. @returns whether it succeeded, and how long it took, in words */
function run(command: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const begin = performance.now();
  const [program = '', ...args] = command;
  process.stdout.write(`\n> ${command.join(' ')}\n`);
  const { status } = spawnSync(program, args, { env, stdio: ['ignore', 'inherit', 'inherit'] });
  return { succeeded: status === 0, minutes: `${((performance.now() - begin) / 60_000).toFixed(1)} min` };
}

/** Runs tests, and counts them. @returns what they came to; undefined when the run ended before its end */
function test(what: string, command: readonly string[], env: NodeJS.ProcessEnv): CiResult | undefined {
  const file = join(folder, `${summary.length}.json`);
  const { succeeded, minutes } = run([...command, ...reporters], { ...env, CI_RESULT: file });
  const result = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as CiResult) : undefined;
  const failures = result?.failed || (succeeded ? 0 : 1);
  passed += result?.passed ?? 0;
  failed += failures;
  summary.push(`${what}: ${result?.passed ?? 0} passed, ${failures} failed, ${minutes}`);
  summary.push(...(result?.failures ?? []).map((one) => `  failed: ${one}`));
  return result;
}

/** All tests, with Node.js, npm, Git and Go alone: `npm test`, and what that leaves out. @returns the tests that were skipped */
async function testBare(): Promise<readonly SkippedTest[]> {
  const links = join(folder, 'links');
  mkdirSync(links);
  const env = await bareEnvironment(process.env, links);
  const args = process.argv.slice(2);
  // Whoever names files need not know which half they are in.
  const scripts = args.length > 0 ? ['test:all'] : ['test', 'test:slow'];
  return scripts.flatMap((script) => {
    const what = `npm run ${script}, with nothing but what the README asks for`;
    const result = test(what, ['npm', 'run', script, '--', ...args], env);
    if (result !== undefined && result.visible.length > 0) {
      failed += 1;
      summary.push(`failed: npm run ${script} could see more: ${result.visible.join(', ')}`);
    }
    return result?.skipped ?? [];
  });
}

/** Runs those of the skipped tests that lack nothing but what Debian has. @returns the tests that stay skipped */
function testWithDebian(skipped: readonly SkippedTest[]): readonly SkippedTest[] {
  const { count, files, tags, packages } = whatDebianHas(skipped);
  if (count === 0) {
    return skipped;
  }
  const problem = installPackages(packages);
  if (problem !== undefined) {
    summary.push(`${count} tests not run, as Debian's packages cannot be installed: ${problem}`);
    return skipped;
  }
  const vitest = ['node', 'setup.mjs', 'vitest', 'run', `--tags-filter=${tags.join(' or ')}`, ...files];
  const result = test(`tests that need Debian's packages, alone (${tags.join(', ')})`, vitest, process.env);
  const others = skipped.filter((one) => !lacksPackagesAlone(one));
  // What the filter leaves out is among the others.
  const again = result?.skipped.filter((one) => one.missing.length === 0 || lacksPackagesAlone(one)) ?? [];
  return [...others, ...again];
}

try {
  const check = run(['npm', 'run', 'check']);
  failed += check.succeeded ? 0 : 1;
  summary.push(`npm run check: ${check.succeeded ? 'passed' : 'failed'}, ${check.minutes}`);
  const left = testWithDebian(await testBare());
  summary.push(`skipped in the end: ${left.length} tests`);
  summary.push(...reasonsOf(left).map(([reason, count]) => `${count}`.padStart(6).concat(`  ${reason}`)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`\n${summary.join('\n')}\n${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : somethingFailed;
