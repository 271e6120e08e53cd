import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** Where what the tests download, build or install is kept, outside the checkout. */
export function cacheFolder(): string {
  const { TOOLS_CACHE, XDG_CACHE_HOME } = process.env;
  // Go runs in the folder of its module: another one than this process's.
  return resolve(TOOLS_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'argocd-fleet', 'tools'));
}
