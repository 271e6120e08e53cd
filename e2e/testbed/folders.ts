import { lstatSync, mkdirSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isProcessAlive } from './alive.ts';

/**
 * The folder for what testbeds of this user keep for a while, and nobody else can look into. Its name is known to everybody, and
 * so is `/tmp`: who makes it before could put other programs and other files in the place of ours.
 * @throws Error for one that others have made, or may write to
 */
export function userFolder(): string {
  const user = process.getuid?.();
  const path = join(tmpdir(), `argocd-fleet-${user ?? 'all'}`);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(path);
  // A link has all bits of the mode.
  if (user !== undefined && (uid !== user || (mode & 0o077) !== 0)) {
    throw new Error(`${path} is not a folder of this user alone: remove it, or choose another place with TMPDIR`);
  }
  return path;
}

/**
 * Makes a temporary folder that only this user can read, named after this process. Sweeps away those of processes that ended without doing so.
 * Its path is short, because paths of Unix sockets must be.
 */
export async function workFolder(name: string): Promise<string> {
  const root = userFolder();
  for (const entry of await readdir(root)) {
    const owner = Number(entry.split('-')[0]);
    if (owner > 0 && !isProcessAlive(owner)) {
      await removeFolder(join(root, entry));
    }
  }
  return mkdtemp(join(root, `${process.pid}-${name.slice(0, 12)}-`));
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
