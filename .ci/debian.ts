import { spawnSync } from 'node:child_process';
import { type NeedName, needs, type SkippedTest } from '../e2e/needs/index.ts';

/** Tests that run as soon as Debian's packages are installed. */
export interface DebianTests {
  readonly count: number;
  readonly files: readonly string[];
  /** Of these and of no other tests in the files that could not run before. */
  readonly tags: readonly NeedName[];
  readonly packages: readonly string[];
}

const packagesOf = (name: NeedName) => needs.get(name)?.packages ?? [];

/** Whether a test lacks something, and nothing but what Debian has. */
export function lacksPackagesAlone({ missing }: SkippedTest): boolean {
  return missing.length > 0 && missing.every((name) => packagesOf(name).length > 0);
}

/** What runs those of some skipped tests that lack nothing but what Debian has. */
export function whatDebianHas(skipped: readonly SkippedTest[]): DebianTests {
  const tests = skipped.filter(lacksPackagesAlone);
  const tags = [...new Set(tests.flatMap(({ missing }) => missing))];
  return {
    count: tests.length,
    files: [...new Set(tests.map(({ file }) => file))],
    tags,
    packages: [...new Set(tags.flatMap(packagesOf))],
  };
}

/** Installs packages of Debian. @returns what went wrong, the end of it; undefined when they are there */
export function installPackages(packages: readonly string[]): string | undefined {
  const root = process.getuid?.() === 0 ? [] : ['sudo', '--non-interactive'];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const command of [
    ['apt-get', 'update', '--quiet'],
    ['apt-get', 'install', '--quiet', '--yes', '--no-install-recommends', ...packages],
  ]) {
    const [program = '', ...args] = [...root, ...command];
    const { status, stderr, error } = spawnSync(program, args, {
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    if (status !== 0) {
      return `${command.slice(0, 2).join(' ')}: ${error?.message ?? stderr.trim().split('\n').slice(-3).join(' ')}`;
    }
  }
  return undefined;
}
