import { readFile, rm, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

/**
 * Runs `work` while holding a lock file that other processes respect. The file names its holder; a holder that is gone
 * does not keep the lock. Two waiters that find the same dead holder at the same moment may both go on, so `work` must
 * bear being done twice.
 */
export async function withFileLock<T>(
  path: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  while (!(await acquire(path))) {
    signal?.throwIfAborted();
    if (await isAbandoned(path)) {
      await rm(path, { force: true });
    } else {
      await setTimeout(200, undefined, { signal });
    }
  }
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

async function acquire(path: string): Promise<boolean> {
  try {
    await writeFile(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      return false;
    }
    throw error;
  }
}

async function isAbandoned(path: string): Promise<boolean> {
  const holder = Number(await readFile(path, 'utf8').catch(() => ''));
  // Empty between its creation and the write of the holder: not abandoned yet.
  if (!Number.isInteger(holder) || holder <= 0) {
    return false;
  }
  try {
    process.kill(holder, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
