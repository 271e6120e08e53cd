import { execFile, spawnSync } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Which version is the one before, as a revision of this repository; else what would give one. */
export type VersionBefore =
  | { readonly revision: string; readonly remedy?: undefined }
  | { readonly revision?: undefined; readonly remedy: string };

/**
 * The version that a user comes from: the revision that is asked for, or the last release before this commit (`vX.Y.Z`). As
 * long as there is no release, the last commit of the week before that of this commit: it stays the same from Monday to Sunday
 * (UTC), so that a failure can be looked into, and is taken from Git alone.
 * @param asked `PREVIOUS`; whether it exists is not looked at
 */
export function findVersionBefore(folder: string, asked = process.env.PREVIOUS): VersionBefore {
  if (asked) {
    return { revision: asked };
  }
  const git = (...args: string[]) => {
    const { status, stdout } = spawnSync('git', args, { cwd: folder, encoding: 'utf8' });
    return status === 0 ? stdout.trim() : undefined;
  };
  // Of a repository around this folder the history is another one.
  if (git('rev-parse', '--show-prefix') !== '') {
    return { remedy: 'a clone of the repository, with its history' };
  }
  if (git('rev-parse', '--is-shallow-repository') !== 'false') {
    return { remedy: 'git fetch --unshallow --tags' };
  }
  const tag = git('describe', '--tags', '--abbrev=0', '--match=v[0-9]*.[0-9]*.[0-9]*', '--exclude=*-*', 'HEAD^');
  if (tag) {
    return { revision: tag };
  }
  const monday = startOfWeek(Number(git('show', '--no-patch', '--format=%ct', 'HEAD')));
  const commit = git('rev-list', '--max-count=1', '--first-parent', `--before=${monday - 1}`, 'HEAD');
  return commit
    ? { revision: commit.slice(0, 12) }
    : { remedy: 'PREVIOUS=<git revision>, as no commit here is from a week before' };
}

/** The last Monday, 00:00 UTC, in seconds since 1970, which began on a Thursday. */
function startOfWeek(seconds: number): number {
  const [day, week] = [86_400, 7 * 86_400];
  return Math.floor((seconds + 3 * day) / week) * week - 3 * day;
}

/** Whether a revision of the repository at `project` has a file. */
export function revisionHas(project: string, revision: string, path: string): boolean {
  return spawnSync('git', ['cat-file', '-e', `${revision}:${path}`], { cwd: project }).status === 0;
}

/** Takes a commit of the repository around `project` out of Git, into a new folder: all of it, or some paths. */
export async function checkOut(
  project: string,
  commit: string,
  folder: string,
  paths: readonly string[] = [],
): Promise<void> {
  const archive = `${folder}.tar`;
  await mkdir(folder);
  try {
    await run('git', ['archive', '--output', archive, commit, ...paths], { cwd: project });
    await run('tar', ['-x', '-f', archive, '-C', folder]);
  } finally {
    await rm(archive, { force: true });
  }
}
