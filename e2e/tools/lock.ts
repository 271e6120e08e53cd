import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

/** So old is a lock file without a holder if nobody will write one: the disk was full, or the machine went down. */
const tooOldMs = 10_000;

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
  try {
    const holder = Number(await readFile(path, 'utf8'));
    if (Number.isInteger(holder) && holder > 0) {
      return !isAlive(holder);
    }
    // Empty between its creation and the write of the holder.
    return Date.now() - (await stat(path)).mtimeMs > tooOldMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return false;
    }
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
