import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isProcessAlive } from './alive.ts';

/** All temporary folders of testbeds, each named after the process that made it. */
const root = () => join(tmpdir(), `argocd-fleet-${process.getuid?.() ?? 'all'}`);

/**
 * Makes a temporary folder that only this user can read. Sweeps away those of processes that ended without doing so.
 * Its path is short, because paths of Unix sockets must be.
 */
export async function workFolder(name: string): Promise<string> {
  await mkdir(root(), { recursive: true, mode: 0o700 });
  for (const entry of await readdir(root())) {
    const owner = Number(entry.split('-')[0]);
    if (owner > 0 && !isProcessAlive(owner)) {
      await removeFolder(join(root(), entry));
    }
  }
  return mkdtemp(join(root(), `${process.pid}-${name.slice(0, 12)}-`));
}

/**
 * Removes a folder and what is in it. Something that is still being written there does not stop it, nor do folders that
 * their owner made unreadable, as Argo CD's repo server does (root removes those anyway).
 */
export async function removeFolder(path: string): Promise<void> {
  // Each wait is longer than the one before: 20 s in all, in which what has been killed is gone on any machine.
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  try {
    await remove();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') {
      throw error;
    }
    await makeReadable(path);
    await remove();
  }
}

async function makeReadable(folder: string): Promise<void> {
  try {
    await chmod(folder, 0o700);
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) {
        await makeReadable(join(folder, entry.name));
      }
    }
  } catch (error) {
    // The removal that was refused something goes on with the rest meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw error;
    }
  }
}
