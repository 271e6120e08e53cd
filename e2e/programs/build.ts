import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { glob, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const project = resolve(import.meta.dirname, '../..');
const builds = join(project, 'node_modules/.cache/argocd-fleet');
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
