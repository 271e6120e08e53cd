import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { catalogue, type Recipe, type ToolName, type ToolVersion } from './catalogue.ts';
import { goMissing, howToGetGo, ToolError } from './error.ts';
import { withFileLock } from './lock.ts';
import { isExecutableFile, onPath } from './on-path.ts';

/** Where to say what is going on, and when to give up. */
export interface BuildOptions {
  signal?: AbortSignal;
  /** Gets a line every few seconds while something is built, none when it is in the cache. Default: standard error. */
  log?: (line: string) => void;
  /** False: the tool is built even where the machine has its own. Default: true. */
  installed?: boolean;
}

/** An executable that is ready to be run. */
export interface BuiltTool {
  path: string;
  /** How it came about; `installed` is the machine's own. */
  origin: 'cached' | 'built' | 'installed';
  /** The version of the module it comes from; empty for the project's own. */
  version: string;
  seconds: number;
}

/**
 * The path of a tool's executable. The first use builds it with Go into a cache folder outside the checkout
 * (`TOOLS_CACHE`, or `argocd-fleet/tools` in the user's cache folder); processes that ask at the same time build once.
 * `redis-server` is the installed one if there is one; `argocd` is the one of `ARGOCD_BIN` if that is set. `KUBE_VERSION` and
 * `HELM_VERSION` choose other versions of the catalogue.
 * @throws ToolError when Go is missing, the build fails, or the catalogue has no such version.
 */
export async function toolPath(name: ToolName, options: BuildOptions = {}): Promise<string> {
  return (await buildTool(name, options)).path;
}

/** As {@link toolPath}, and says how the tool came about. */
export async function buildTool(name: ToolName, options: BuildOptions = {}): Promise<BuiltTool> {
  const begin = performance.now();
  const seconds = () => (performance.now() - begin) / 1000;
  const installed = name === 'redis-server' ? onPath(name) : name === 'argocd' ? chosenArgoCd() : undefined;
  if (installed && options.installed !== false) {
    return { path: installed, origin: 'installed', version: '', seconds: seconds() };
  }

  const recipe = chosenVersion(name);
  const folder = join(import.meta.dirname, recipe.folder);
  const version = moduleVersion(folder, recipe);
  const cache = join(cacheFolder(), `${name}-${digest(folder, recipe)}`);
  const path = join(cache, name);
  if (existsSync(path)) {
    return { path, origin: 'cached', version, seconds: seconds() };
  }

  await mkdir(cache, { recursive: true });
  const origin = await withFileLock(join(cache, 'lock'), options.signal, async () => {
    if (existsSync(path)) {
      return 'cached';
    }
    const unfinished = join(cache, `${name}.${randomUUID()}`);
    try {
      await goBuild(name, recipe, folder, unfinished, options);
      await rename(unfinished, path);
    } finally {
      await rm(unfinished, { force: true });
    }
    return 'built';
  });
  return { path, origin, version, seconds: seconds() };
}

/** Where what the tests build or install is kept, outside the checkout. */
export function cacheFolder(): string {
  const { TOOLS_CACHE, XDG_CACHE_HOME } = process.env;
  return TOOLS_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'argocd-fleet', 'tools');
}

/** Names everything that decides what the build yields, so that a change of it is a build of its own. */
function digest(folder: string, recipe: ToolVersion): string {
  const hash = createHash('sha256').update(JSON.stringify([process.platform, process.arch, recipe.goPackage]));
  hash.update(JSON.stringify(recipe.variables ?? {}));
  // What the program's own package has, and what fixes the versions of all others.
  const own = recipe.goPackage.startsWith('.') ? readdirSync(join(folder, recipe.goPackage)) : [];
  const sources = own.filter((file) => file.endsWith('.go')).map((file) => join(recipe.goPackage, file));
  for (const file of ['go.mod', 'go.sum', ...sources.sort()]) {
    hash.update(`\0${file}\0`).update(readFileSync(join(folder, file)));
  }
  return hash.digest('hex').slice(0, 12);
}

function moduleVersion(folder: string, recipe: ToolVersion): string {
  const required = readFileSync(join(folder, 'go.mod'), 'utf8').matchAll(
    /^(?:require\s+|\t)(\S+) (v\S+)(?: \/\/ indirect)?$/gm,
  );
  for (const [, module = '', version = ''] of required) {
    if (recipe.goPackage === module || recipe.goPackage.startsWith(`${module}/`)) {
      return version;
    }
  }
  return '';
}

/** The version that the environment asks for. */
function chosenVersion(name: ToolName): ToolVersion {
  const recipe: Recipe = catalogue[name];
  const wanted = recipe.choice && process.env[recipe.choice.variable];
  if (
    !recipe.choice ||
    !wanted ||
    moduleVersion(join(import.meta.dirname, recipe.folder), recipe).startsWith(`v${wanted}.`)
  ) {
    return recipe;
  }
  const { variable, versions } = recipe.choice;
  const version = versions[wanted];
  if (!version) {
    const message = `${variable}=${wanted}: there is no recipe for this version; unset it, or set it to one of: ${Object.keys(versions).join(', ')}`;
    throw new ToolError('NoSuchVersion', message);
  }
  return version;
}

/** Another Argo CD: its multi-call executable. */
function chosenArgoCd(): string | undefined {
  const path = process.env.ARGOCD_BIN || undefined;
  if (path !== undefined && !isExecutableFile(path)) {
    const message = `ARGOCD_BIN=${path} is not an executable file; unset it to use the Argo CD that the testbed builds`;
    throw new ToolError('NotExecutable', message);
  }
  return path;
}

async function goBuild(name: ToolName, recipe: ToolVersion, folder: string, output: string, options: BuildOptions) {
  const log = options.log ?? ((line) => process.stderr.write(`${line}\n`));
  const variables = Object.entries(recipe.variables ?? {}).map(([variable, value]) => ` -X ${variable}=${value}`);
  const args = [
    'build',
    '-v',
    '-mod=readonly',
    '-buildvcs=false',
    '-trimpath',
    // What debuggers want: a sixth of the compiler's time, and the linker drops it again.
    '-gcflags',
    'all=-dwarf=false',
    '-ldflags',
    `-s -w${variables.join('')}`,
  ];
  const go = spawn('go', [...args, '-o', output, recipe.goPackage], {
    cwd: folder,
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '' },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(options.signal && { signal: options.signal }),
  });

  const begin = performance.now();
  let downloads = 0;
  let packages = 0;
  const complaints: string[] = [];
  createInterface({ input: go.stderr }).on('line', (line) => {
    if (line.startsWith('go: downloading ')) {
      downloads += 1;
    } else if (/^[\w.\-/~]+$/.test(line)) {
      packages += 1;
    } else if (complaints.push(line) > 40) {
      complaints.shift();
    }
  });
  const say = () => {
    const step = packages > 0 ? `compiling (${packages} packages)` : `downloading (${downloads} modules)`;
    const elapsed = Math.round((performance.now() - begin) / 1000);
    log(`${name}: ${step}, ${elapsed} s (about ${recipe.seconds} s on 2 idle cores)`);
  };
  say();
  const progress = setInterval(say, 5000);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      go.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ENOENT' ? goMissing(`build ${name}`) : error),
      );
      go.once('close', resolve);
    });
    if (code !== 0) {
      throw buildFailed(name, complaints.join('\n'));
    }
  } finally {
    clearInterval(progress);
  }
}

function buildFailed(name: ToolName, complaints: string): ToolError {
  if (/requires go >= |unknown directive: tool|invalid go version/.test(complaints)) {
    return new ToolError('GoTooOld', `The installed Go is too old to build ${name}: ${complaints}\n${howToGetGo}`);
  }
  return new ToolError('BuildFailed', `go build of ${name} failed:\n${complaints}`);
}
