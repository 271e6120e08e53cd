import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What can build an image, in the order of preference. */
export const engineNames = ['docker', 'podman', 'buildah'] as const;

/** One of {@link engineNames}. */
export type EngineName = (typeof engineNames)[number];

/** No engine can be used; the message says of each what is the matter, and what to do. */
export class NoEngineError extends Error {
  override readonly name = 'NoEngineError';
  /** What is the matter, a line for each engine. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const lines = problems.map((line) => `  ${line}`).join('\n');
    super(`No container engine can be used:\n${lines}\nInstall one of them (Debian, Ubuntu: apt-get install buildah).`);
    this.problems = problems;
  }
}

/** Runs a command and returns what it prints; for tests, something else that does. */
export type Runner = (command: string, args: readonly string[]) => Promise<string>;

/** Runs commands of this machine. */
export const runCommand: Runner = async (command, args) =>
  (await run(command, [...args], { maxBuffer: 64 * 1024 * 1024 })).stdout;

/**
 * The first of some engines that works: a docker command without a daemon behind it does not.
 * @throws NoEngineError
 */
export async function findEngine<Name extends EngineName>(
  candidates: readonly Name[],
  runner: Runner = runCommand,
): Promise<Name> {
  const problems: string[] = [];
  for (const name of candidates) {
    try {
      // Of docker, `info` succeeds without a daemon, but not when it is asked for something that the daemon knows.
      await runner(name, name === 'docker' ? ['info', '--format', '{{.ServerVersion}}'] : ['info']);
      return name;
    } catch (error) {
      const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
      const [said = ''] = (stderr || message).trim().split('\n').slice(-1);
      problems.push(`${name}: ${code === 'ENOENT' ? 'not installed' : said}`);
    }
  }
  throw new NoEngineError(problems);
}

/** What an image is built with. */
export interface BuildRequest {
  engine: EngineName;
  tag: string;
  /** Commit, for `argocd-agent version`. */
  revision: string;
  /** When the commit was made, RFC 3339: what the image and its files say of their age, so that two builds are equal. */
  date: string;
  /** Architectures, such as `linux/arm64`: the tag is that of their list. This machine's unless set. Not with docker. */
  platforms?: readonly string[] | undefined;
  /** An image with Node.js and npm, instead of the Dockerfile's. */
  base?: string | undefined;
  /** An npm configuration, for packages from another registry; it does not get into the image. */
  npmrc?: string | undefined;
  /** More for the engine, before the folder. */
  flags?: readonly string[];
  /** Where the Dockerfile is; the current folder unless set. */
  folder?: string;
}

/** The command line that builds the image from the Dockerfile. */
export function buildCommand(request: BuildRequest): { command: EngineName; args: string[] } {
  const { engine, tag, base, npmrc, platforms, flags = [], folder = '.' } = request;
  const seconds = Math.floor(Date.parse(request.date) / 1_000);
  const values = [
    `GIT_REVISION=${request.revision}`,
    `BUILD_DATE=${request.date}`,
    ...(base === undefined ? [] : [`NODE_IMAGE=${base}`]),
    ...(engine === 'docker' ? [`SOURCE_DATE_EPOCH=${seconds}`] : []),
  ];
  const args = [
    'build',
    ...values.flatMap((value) => ['--build-arg', value]),
    // One layer, which does not say what has built it.
    ...(engine === 'docker' ? [] : ['--timestamp', `${seconds}`, '--identity-label=false', '--layers=false']),
    ...(npmrc === undefined ? [] : ['--secret', `id=npmrc,src=${npmrc}`]),
    ...(platforms === undefined ? ['--tag', tag] : ['--platform', platforms.join(','), '--manifest', tag]),
    ...flags,
    folder,
  ];
  return { command: engine, args };
}
