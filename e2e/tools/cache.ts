import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where what the tests download, build or install is kept, outside the checkout. */
export function cacheFolder(): string {
  const { TOOLS_CACHE, XDG_CACHE_HOME } = process.env;
  return TOOLS_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'argocd-fleet', 'tools');
}
