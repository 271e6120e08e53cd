import { spawnSync } from 'node:child_process';
import { globSync, lstatSync, readFileSync, statSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { CheckoutError } from './error.ts';

const maxFiles = 5_000;
const maxFileBytes = 8 * 1024 * 1024;
const maxBytes = 128 * 1024 * 1024;

/** The files of another project, in one version. */
export interface Checkout {
  /** What was read, in words: the folder, and the commit if one was asked for. */
  readonly place: string;
  /**
   * The texts of all files whose paths match one of the patterns and none of `except`, by path.
   * @throws CheckoutError for a file or a number of files that is too large, or one that cannot be read
   */
  read(patterns: readonly string[], except?: readonly string[]): ReadonlyMap<string, string>;
}

/**
 * Opens a folder with files, or a Git repository: its working tree unless a revision is named, and HEAD of one that has none.
 * @throws CheckoutError when there is no such folder or revision
 */
export function openCheckout(folder: string, ref?: string): Checkout {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new CheckoutError(`there is no folder ${folder}`);
  }
  if (ref !== undefined) {
    return revision(folder, ref);
  }
  const isBare = spawnSync('git', ['-C', folder, 'rev-parse', '--is-bare-repository'], { encoding: 'utf8' });
  return isBare.stdout?.trim() === 'true' ? revision(folder, 'HEAD') : { place: folder, read: readerOf(folder) };
}

function readerOf(folder: string): Checkout['read'] {
  return (patterns, except = []) => {
    const paths = globSync([...patterns], { cwd: folder, exclude: [...except] }).sort();
    checkCount(paths);
    let total = 0;
    const texts = new Map<string, string>();
    for (const path of paths) {
      const stats = lstatSync(join(folder, path));
      // A link may lead out of the folder; what is read has none.
      if (stats.isFile()) {
        total += checkSize(path, stats.size, total);
        texts.set(path, readFileSync(join(folder, path), 'utf8'));
      }
    }
    return texts;
  };
}

function revision(folder: string, ref: string): Checkout {
  const commit = git(folder, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`])
    ?.toString()
    .trim();
  if (commit === undefined) {
    throw new CheckoutError(`${folder} has no revision ${ref}`);
  }
  let listed: readonly (readonly [path: string, id: string])[] | undefined;
  const list = () =>
    (
      required(folder, ['ls-tree', '-r', '-z', '--full-tree', commit])
        .toString()
        .match(/[^\0]+/g) ?? []
    ).flatMap((line) => {
      // Neither links nor submodules.
      const [, id, path] = /^100\d+ blob (\w+)\t(.*)$/s.exec(line) ?? [];
      return id === undefined || path === undefined ? [] : [[path, id] as const];
    });
  return {
    place: `${folder} at ${ref} (${commit.slice(0, 12)})`,
    read: (patterns, except = []) => {
      listed ??= list();
      const matches = (path: string, globs: readonly string[]) => globs.some((glob) => matchesGlob(path, glob));
      const wanted = listed.filter(([path]) => matches(path, patterns) && !matches(path, except));
      checkCount(wanted);
      const ids = wanted.map(([, id]) => `${id}\n`).join('');
      const sizes = required(folder, ['cat-file', '--batch-check=%(objectsize)'], ids).toString().split('\n');
      let total = 0;
      for (const [index, [path]] of wanted.entries()) {
        total += checkSize(path, Number(sizes[index]), total);
      }
      const batch = required(folder, ['cat-file', '--batch'], ids);
      let start = 0;
      return new Map(
        wanted.map(([path], index) => {
          const begin = batch.indexOf('\n', start) + 1;
          start = begin + Number(sizes[index]) + 1;
          return [path, batch.toString('utf8', begin, start - 1)];
        }),
      );
    },
  };
}

function checkCount(paths: readonly unknown[]): void {
  if (paths.length > maxFiles) {
    throw new CheckoutError(`${paths.length} files are to be read, more than ${maxFiles}`);
  }
}

/** @param size NaN for an object that the repository lacks */
function checkSize(path: string, size: number, before: number): number {
  if (Number.isNaN(size)) {
    throw new CheckoutError(`the repository lacks the content of ${path}`);
  }
  if (size > maxFileBytes || before + size > maxBytes) {
    throw new CheckoutError(`${path} is too large: ${size} bytes, after ${before} bytes of other files`);
  }
  return size;
}

function required(folder: string, args: readonly string[], input = ''): Buffer {
  const output = git(folder, args, input);
  if (output === undefined) {
    throw new CheckoutError(`git ${args[0]} failed in ${folder}`);
  }
  return output;
}

/** @returns undefined when Git ends with an exit code, after its own message */
function git(folder: string, args: readonly string[], input = ''): Buffer | undefined {
  const { error, status, stdout } = spawnSync('git', ['-C', folder, ...args], {
    input,
    maxBuffer: 2 * maxBytes,
    stdio: ['pipe', 'pipe', 'inherit'],
    // What a partial clone lacks is said, and not downloaded.
    env: { ...process.env, GIT_NO_LAZY_FETCH: '1' },
  });
  if (error) {
    throw new CheckoutError(`git cannot be run: ${error.message}`);
  }
  return status === 0 ? stdout : undefined;
}
