import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { glob, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const project = resolve(import.meta.dirname, '../..');
const builds = join(project, 'node_modules/.cache/argocd-fleet');
/** A build that was made so long ago is removed when another one is made. Milliseconds. */
const keptMs = 7 * 24 * 3_600_000;
let built: Promise<string> | undefined;

/**
 * As {@link buildProject}, for the state that the sources have when this process first asks.
 * @throws Error when the build fails
 */
export function builtProject(): Promise<string> {
  built ??= buildProject();
  return built;
}

/**
 * The folder with what the project's image contains, as `npm run build` makes it. A state of the sources is built once, in
 * 2 s, and kept for a week at least.
 * @throws Error when the build fails
 */
export async function buildProject(): Promise<string> {
  const folder = join(builds, await digest());
  if (existsSync(folder)) {
    return folder;
  }
  await mkdir(builds, { recursive: true });
  await removeOldBuilds(builds);
  const making = `${folder}-${randomUUID()}`;
  try {
    await promisify(execFile)(process.execPath, [join(project, 'build.ts'), making], { cwd: project });
    await rename(making, folder);
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(folder)) {
      throw error;
    }
  }
  return folder;
}

/** Removes the builds of a folder that were made more than a week ago. */
export async function removeOldBuilds(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const made = await stat(path).catch(() => undefined);
    if (made && made.mtimeMs < Date.now() - keptMs) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

async function digest(): Promise<string> {
  const hash = createHash('sha256').update(process.version);
  const files: string[] = [];
  // What .dockerignore lets into the real image is what a build is made of.
  const sources = [...(await readFile(join(project, '.dockerignore'), 'utf8')).matchAll(/^!(.+)$/gm)].map(
    ([, path]) => path,
  );
  const all = `{${sources.join(',')}}`;
  for await (const entry of glob([all, `${all}/**/*`], { cwd: project, withFileTypes: true })) {
    if (entry.isFile() && !entry.name.endsWith('.test.ts')) {
      files.push(join(entry.parentPath, entry.name));
    }
  }
  for (const file of files.sort()) {
    hash.update(`\0${file}\0`).update(await readFile(file));
  }
  return hash.digest('hex').slice(0, 16);
}
