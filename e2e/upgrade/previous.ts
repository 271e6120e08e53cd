import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { type ImageRecipe, projectImage, sourceImage } from '../node/index.ts';
import { cacheFolder, withFileLock } from '../tools/index.ts';
import { checkOut, findVersionBefore, revisionHas } from './version-before.ts';

const run = promisify(execFile);
/** This working tree. */
export const projectFolder = resolve(import.meta.dirname, '../..');
const { revision, remedy } = findVersionBefore(projectFolder);

/** This version or the one before. */
export type TestedVersion = 'previous' | 'current';

/** The version before, as it was: its sources with the packages of its own lock file. */
export interface PreviousVersion {
  readonly revision: string;
  readonly commit: string;
  readonly folder: string;
}

/** The end of the title of tests that need the version before. */
export const sincePrevious = `since ${revision ?? 'the version before'}`;

/** Whether the version before has a file. False when there is none. */
export function previousHas(path: string): boolean {
  return revision !== undefined && revisionHas(projectFolder, revision, path);
}

let prepared: Promise<PreviousVersion> | undefined;

/**
 * The version before ({@link findVersionBefore}). The first use takes it out of Git and installs its packages, in the cache
 * folder of the tools; processes that ask at the same time do it once.
 * @throws Error when there is none, Git does not know it, or its packages cannot be installed
 */
export function previousVersion(): Promise<PreviousVersion> {
  prepared ??= prepare();
  return prepared;
}

async function prepare(): Promise<PreviousVersion> {
  if (revision === undefined) {
    throw new Error(`there is no version before; it needs ${remedy}`);
  }
  const commit = await commitOf(revision);
  const versions = join(cacheFolder(), 'versions');
  const folder = join(versions, commit.slice(0, 12));
  const previous = { revision, commit, folder };
  if (existsSync(folder)) {
    return previous;
  }
  await mkdir(versions, { recursive: true });
  await withFileLock(`${folder}.held`, undefined, async () => {
    if (existsSync(folder)) {
      return;
    }
    const unfinished = `${folder}-${randomUUID()}`;
    try {
      await checkOut(projectFolder, commit, unfinished);
      await install(unfinished);
      await rename(unfinished, folder);
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  });
  return previous;
}

async function commitOf(name: string): Promise<string> {
  try {
    const { stdout } = await run('git', ['rev-parse', '--verify', '--end-of-options', `${name}^{commit}`], {
      cwd: projectFolder,
    });
    return stdout.trim();
  } catch (cause) {
    throw new Error(`PREVIOUS=${name}: this repository has no such revision (a shallow clone has no history)`, {
      cause,
    });
  }
}

async function install(folder: string): Promise<void> {
  // Programs run from their sources: what only builds need is left out. The versions are those of the lock file. `npm ci`
  // refuses lock files of this project that name the optional packages of one platform only.
  const options = ['--no-save', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', ['install', ...options], { cwd: folder });
}

/**
 * Writes an executable that becomes a program of a source tree, so that signals reach the program.
 * @returns its path
 */
export async function executableOf(program: string, sources: string, file: string): Promise<string> {
  await writeFile(file, `#!/bin/sh\nexec '${process.execPath}' '${join(sources, 'bin', program)}.ts' "$@"\n`);
  await chmod(file, 0o755);
  return file;
}

/** The sources of both versions. */
export async function sourcesOf(): Promise<Record<TestedVersion, string>> {
  return { previous: (await previousVersion()).folder, current: projectFolder };
}

/** The image that stands for both versions. */
export const versionRepository = 'quay.io/open-cluster-management/argocd-fleet';

/**
 * The image of a version by its tag: `previous`, `current`, or two with a dash between them, of which the first one is for
 * the hub and the other one for the clusters.
 */
export function versionImage(place: 'hub' | 'cluster'): ImageRecipe {
  return async (use) => {
    const [first, other = first] = (use.name.tag ?? '').split('-');
    return await ((place === 'hub' ? first : other) === 'previous' ? previousImage : projectImage)(use);
  };
}

const previousImage: ImageRecipe = async (use) => {
  const { folder } = await previousVersion();
  return await sourceImage(folder, join(folder, 'node_modules'))(use);
};
