import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { glob, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const project = resolve(import.meta.dirname, '../..');
const builds = join(project, 'node_modules/.cache/argocd-fleet');
/** What a build is made of, as in .dockerignore. */
const sources = [
  ...['build.ts', 'package.json', 'package-lock.json', 'LICENSE'],
  '{bin,controller,principal,agent,ctl,lib,proto,templates}/**/*',
];

let built: Promise<string> | undefined;

/**
 * The folder with what the project's image contains, as `npm run build` makes it. The first use builds it, in 2 s; it is
 * kept for each state of the sources until `npm ci` empties node_modules.
 * @throws Error when the build fails
 */
export function builtProject(): Promise<string> {
  built ??= build();
  return built;
}

async function build(): Promise<string> {
  const folder = join(builds, await digest());
  if (existsSync(folder)) {
    return folder;
  }
  await mkdir(builds, { recursive: true });
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

async function digest(): Promise<string> {
  const hash = createHash('sha256').update(process.version);
  const files: string[] = [];
  for await (const entry of glob(sources, { cwd: project, withFileTypes: true })) {
    if (entry.isFile() && !entry.name.endsWith('.test.ts')) {
      files.push(join(entry.parentPath, entry.name));
    }
  }
  for (const file of files.sort()) {
    hash.update(`\0${file}\0`).update(await readFile(file));
  }
  return hash.digest('hex').slice(0, 16);
}
