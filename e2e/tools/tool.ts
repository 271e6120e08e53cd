import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Semaphore } from '../../lib/base/index.ts';
import { type Build, buildOf } from './build.ts';
import { cacheFolder } from './cache.ts';
import type { ToolName } from './catalogue.ts';
import { download } from './download.ts';
import { ToolError } from './error.ts';
import { extractMember } from './extract.ts';
import { goBuild } from './go-build.ts';
import { withFileLock } from './lock.ts';
import { isExecutableFile, onPath } from './on-path.ts';
import { unreachableHosts } from './reach.ts';
import { type ReleasedProgram, releasedProgram } from './releases.ts';

/** Where to say what is going on, and when to give up. */
export interface ToolOptions {
  readonly signal?: AbortSignal | undefined;
  /** Gets what is to be known: a line for tools that cannot be downloaded. Default: standard error. */
  readonly log?: (line: string) => void;
  /** Gets a line every few seconds while something is downloaded or built, none when it is in the cache. Default: `log`. */
  readonly progress?: (line: string) => void;
  /** False: not the machine's own, even where it has one. Default: true. */
  readonly installed?: boolean;
}

/** An executable that is ready to be run. */
export interface Tool {
  readonly path: string;
  /** How it came about; `installed` is the machine's own. */
  readonly origin: 'cached' | 'downloaded' | 'built' | 'installed';
  /** Of the release, or of the module it is built from; empty for the project's own. */
  readonly version: string;
  /** How long its download or build took, without waiting for others. */
  readonly seconds: number;
  /** How many bytes were downloaded for it. */
  readonly bytes: number;
}

/** The path of a tool's executable: as {@link getTools}, for one. */
export async function toolPath(name: ToolName, options?: ToolOptions): Promise<string> {
  return (await getTool(name, options)).path;
}

/** As {@link getTools}, for one. */
export async function getTool(name: ToolName, options?: ToolOptions): Promise<Tool> {
  return await (getTools([name], options).get(name) as Promise<Tool>);
}

/**
 * Begins to get tools that are not in the cache, a folder outside the checkout (`TOOLS_CACHE`, or `argocd-fleet/tools` in the
 * user's cache folder). What is pinned in releases.json is downloaded, at the same time as the rest is built with Go, both
 * in this order. What cannot be downloaded is built, too. Processes that ask at the same time do it once.
 * `redis-server` is the installed one if there is one; `argocd` is the one of `ARGOCD_BIN` if that is set. `KUBE_VERSION` and
 * `HELM_VERSION` choose other versions of the catalogue.
 * @returns a promise for each. When one rejects, with a ToolError when Go is missing or a build fails, all that are not ready do
 * @throws ToolError for a variable that is wrong
 */
export function getTools(names: readonly ToolName[], options: ToolOptions = {}): ReadonlyMap<ToolName, Promise<Tool>> {
  const { log = (line: string) => process.stderr.write(`${line}\n`), progress = log } = options;
  const failed = new AbortController();
  const signal = AbortSignal.any([failed.signal, ...(options.signal ? [options.signal] : [])]);
  const sources = names.map((name) => sourceOf(name, options.installed ?? true));
  const unreachable = lookOut(sources, { signal, log });
  unreachable.catch(() => undefined);
  const downloads = new Semaphore(2);
  const builds = new Semaphore(1);
  return new Map(
    sources.map((source) => {
      const tool = get(source, { signal, log, progress, unreachable, downloads, builds });
      // Whoever awaits it is told, too, however late.
      tool.catch((error) => failed.abort(error));
      return [source.name, tool];
    }),
  );
}

/** Where a tool may come from. */
interface Source {
  readonly name: ToolName;
  /** The path of the machine's own. */
  readonly installed?: string | undefined;
  readonly build: Build;
  readonly release?: (ReleasedProgram & { readonly path: string }) | undefined;
}

function sourceOf(name: ToolName, mayBeInstalled: boolean): Source {
  const own = name === 'redis-server' ? onPath(name) : name === 'argocd' ? chosenArgoCd() : undefined;
  const installed = mayBeInstalled ? own : undefined;
  const build = buildOf(name);
  const released = build.isDefault ? releasedProgram(name) : undefined;
  const release = released && {
    ...released,
    path: join(cacheFolder(), `${name}-${released.file.sha256.slice(0, 12)}`, name),
  };
  return { name, installed, build, release };
}

/** The tool, if it is there. */
function present({ installed, build, release }: Source): Tool | undefined {
  if (installed) {
    return { path: installed, origin: 'installed', version: '', seconds: 0, bytes: 0 };
  }
  const cached = [release, build].find((place) => place && existsSync(place.path));
  return cached && { path: cached.path, origin: 'cached', version: cached.version, seconds: 0, bytes: 0 };
}

interface Work {
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
  readonly progress: (line: string) => void;
  /** Hosts that give nothing, each with the reason. */
  readonly unreachable: Promise<ReadonlyMap<string, string>>;
  /** Takes two at a time: what comes first in the order is there first. */
  readonly downloads: Semaphore;
  /** Takes one build at a time: Go uses all cores. */
  readonly builds: Semaphore;
}

/** Which hosts give nothing, of those that missing tools come from. Says it in one line. */
async function lookOut(sources: readonly Source[], { signal, log }: Pick<Work, 'signal' | 'log'>) {
  const missing = sources.filter((source) => !present(source));
  const hosts = await unreachableHosts(
    missing.flatMap(({ release }) => release?.file.url ?? []),
    signal,
  );
  if (hosts.size > 0) {
    const names = missing.filter(({ release }) => release && hosts.has(hostOf(release))).map(({ name }) => name);
    const reasons = Map.groupBy(hosts, ([, reason]) => reason);
    const why = [...reasons].map(([reason, of]) => `${of.map(([host]) => host).join(', ')}: ${reason}`);
    log(
      `Go builds ${names.join(', ')}, since no download is possible. ${why.join('; ')}. TOOLS_MIRROR can name a mirror.`,
    );
  }
  return hosts;
}

const hostOf = ({ file }: ReleasedProgram) => new URL(file.url).host;

async function get(source: Source, work: Work): Promise<Tool> {
  const { name, release } = source;
  const { signal, log, unreachable, downloads, builds } = work;
  const found = present(source);
  if (found) {
    return found;
  }
  // Those that only a build brings wait, too: the places are taken in the order of the names.
  const hosts = await unreachable;
  if (release && !hosts.has(hostOf(release))) {
    try {
      return await downloads.run(() => once(source, signal, () => downloaded(name, release, work)), signal);
    } catch (error) {
      if (!(error instanceof ToolError) || error.code !== 'DownloadFailed') {
        throw error;
      }
      log(`${name}: Go builds it, since it could not be downloaded. ${error.message}`);
    }
  }
  return await builds.run(() => once(source, signal, () => built(source, work)), signal);
}

/** Has a tool made by one process, whoever asks at the same time. */
async function once(source: Source, signal: AbortSignal, make: () => Promise<Tool>): Promise<Tool> {
  await mkdir(cacheFolder(), { recursive: true });
  return await withFileLock(
    join(cacheFolder(), `${source.name}.held`),
    signal,
    async () => present(source) ?? (await make()),
  );
}

async function downloaded(
  name: ToolName,
  release: NonNullable<Source['release']>,
  { signal, progress }: Work,
): Promise<Tool> {
  const begin = performance.now();
  const bytes = await downloadRelease(name, release, { signal, log: progress });
  return { path: release.path, origin: 'downloaded', version: release.version, bytes, seconds: since(begin) };
}

async function built({ name, build, release }: Source, { signal, progress }: Work): Promise<Tool> {
  const begin = performance.now();
  await put(build.path, (unfinished) => goBuild(name, build, unfinished, { signal, log: progress }));
  if (release) {
    // What came of its download.
    await rm(dirname(release.path), { recursive: true, force: true });
  }
  return { path: build.path, origin: 'built', version: build.version, bytes: 0, seconds: since(begin) };
}

const since = (begin: number) => (performance.now() - begin) / 1000;

async function downloadRelease(
  name: ToolName,
  { path, file, member }: NonNullable<Source['release']>,
  { signal, log }: Pick<Work, 'signal' | 'log'>,
): Promise<number> {
  await mkdir(dirname(path), { recursive: true });
  const loaded = join(dirname(path), 'download');
  const bytes = await download(file, loaded, { name, signal, log });
  try {
    await put(path, async (unfinished) => {
      await (member === undefined ? rename(loaded, unfinished) : extractMember(loaded, member, unfinished, signal));
      await chmod(unfinished, 0o755);
    });
  } finally {
    await rm(loaded, { force: true });
  }
  return bytes;
}

/**
 * Has a file made under another name, and gives it its own when it is complete. Removes what processes have left that were
 * killed meanwhile.
 */
async function put(path: string, make: (unfinished: string) => Promise<void>): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  const left = (await readdir(folder)).filter((name) => name.startsWith(`${basename(path)}.`));
  await Promise.all(left.map((name) => rm(join(folder, name), { recursive: true, force: true })));
  const unfinished = `${path}.${randomUUID()}`;
  try {
    await make(unfinished);
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Another Argo CD: its multi-call executable. */
function chosenArgoCd(): string | undefined {
  const path = process.env.ARGOCD_BIN || undefined;
  if (path !== undefined && !isExecutableFile(path)) {
    const message = `ARGOCD_BIN=${path} is not an executable file; unset it to use the Argo CD of the testbed`;
    throw new ToolError('NotExecutable', message);
  }
  return path;
}
