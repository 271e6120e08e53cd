import { spawn } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Build } from './build.ts';
import type { ToolName } from './catalogue.ts';
import { goMissing, howToGetGo, ToolError } from './error.ts';

/** Whatever the environment says, and what `go env -w` wrote: that is asked for an empty value, too. */
const settings = {
  CGO_ENABLED: '0',
  GO111MODULE: 'on',
  GOARCH: process.arch === 'x64' ? 'amd64' : process.arch,
  GOFLAGS: '-mod=readonly',
  GOOS: process.platform,
  GOWORK: 'off',
};

/** What a build says meanwhile, and what ends it. */
export interface GoBuildOptions {
  readonly signal?: AbortSignal | undefined;
  /** Gets a line every few seconds. */
  readonly log: (line: string) => void;
}

/**
 * Builds a program of the catalogue with Go.
 * @param output the path of the executable
 * @throws ToolError when Go is missing or too old, or the build fails
 */
export async function goBuild(
  name: ToolName,
  { recipe, folder }: Build,
  output: string,
  { signal, log }: GoBuildOptions,
): Promise<void> {
  const variables = Object.entries(recipe.variables ?? {}).map(([variable, value]) => ` -X ${variable}=${value}`);
  const args = [
    'build',
    '-v',
    '-buildvcs=false',
    '-trimpath',
    // What debuggers want: a sixth of the compiler's time, and the linker drops it again.
    '-gcflags',
    'all=-dwarf=false',
    '-ldflags',
    `-s -w${variables.join('')}`,
  ];
  // Go leaves it behind when a signal ends it.
  const temporary = `${output}.tmp`;
  await mkdir(temporary);
  const go = spawn('go', [...args, '-o', output, recipe.goPackage], {
    cwd: folder,
    env: { ...process.env, ...settings, GOTMPDIR: temporary },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(signal && { signal }),
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
      go.once('error', (error: NodeJS.ErrnoException) => {
        // When it was told to end, it does so after this.
        if (!signal?.aborted) {
          reject(error.code === 'ENOENT' ? goMissing(`build ${name}`) : error);
        }
      });
      go.once('close', resolve);
    });
    signal?.throwIfAborted();
    if (code !== 0) {
      throw buildFailed(name, complaints.join('\n'));
    }
  } finally {
    clearInterval(progress);
    // A compiler that Go has started may have to end.
    await rm(temporary, { recursive: true, force: true, maxRetries: 5 });
  }
}

function buildFailed(name: ToolName, complaints: string): ToolError {
  if (/requires go >= |unknown directive: tool|invalid go version/.test(complaints)) {
    return new ToolError('GoTooOld', `The installed Go is too old to build ${name}: ${complaints}\n${howToGetGo}`);
  }
  return new ToolError('BuildFailed', `go build of ${name} failed:\n${complaints}`);
}
