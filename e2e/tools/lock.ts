import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { processStat } from '../../lib/base/testing.ts';

/**
 * Runs `work` while holding a lock that other processes respect. A holder that is gone does not keep the lock.
 *
 * The lock is a folder with a file in it that names its holder, and free without. It is taken by renaming a folder that has its
 * file already: the system does that if the lock is empty, and for one process alone. No two holders have the same name, so
 * whoever removes the file of one that is gone removes nothing else.
 */
export async function withFileLock<T>(
  path: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const holder = `${process.pid}-${startOf(process.pid)}-${randomUUID()}`;
  while (!((await isFree(path)) && (await take(path, holder)))) {
    signal?.throwIfAborted();
    await setTimeout(200, undefined, { signal });
  }
  try {
    return await work();
  } finally {
    await rm(join(path, holder), { force: true });
    // Another one may have it already.
    await unless(['ENOENT', ...isHeld], rmdir(path));
  }
}

/** What the system says of a folder that is not empty. */
const isHeld = ['ENOTEMPTY', 'EEXIST'];

/** Whether nobody has the lock. Removes the names of holders that are gone. */
async function isFree(path: string): Promise<boolean> {
  for (const holder of (await unless(['ENOENT'], readdir(path))) ?? []) {
    if (isRunning(holder)) {
      return false;
    }
    await rm(join(path, holder), { force: true });
  }
  return true;
}

async function take(path: string, holder: string): Promise<boolean> {
  const claim = `${path}.${holder}`;
  try {
    await mkdir(claim);
    await writeFile(join(claim, holder), '');
    return (
      (await unless(
        isHeld,
        rename(claim, path).then(() => true),
      )) ?? false
    );
  } finally {
    await rm(claim, { recursive: true, force: true });
  }
}

function isRunning(holder: string): boolean {
  const [pid, start] = holder.split('-');
  return start !== undefined && startOf(Number(pid)) === start;
}

/**
 * What tells a running process from an earlier one with its id: on Linux when it started, elsewhere nothing. Undefined for one
 * that has ended, even if nobody has waited for it.
 */
function startOf(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') {
      return undefined;
    }
  }
  if (process.platform !== 'linux') {
    return '';
  }
  const stat = processStat(pid);
  return stat?.[0] === 'Z' ? undefined : stat?.[19];
}

/** What comes of it; undefined if it fails with one of these codes. */
async function unless<T>(codes: readonly string[], result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (codes.includes((error as NodeJS.ErrnoException).code ?? '')) {
      return undefined;
    }
    throw error;
  }
}
