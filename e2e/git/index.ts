import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Component, freePort } from '../testbed/index.ts';

export { type GitCredential, type PrivateGit, startPrivateGit } from './private.ts';

const run = promisify(execFile);

/** Who commits, whatever this machine's own settings are. */
const author = { 'user.name': 'fleet', 'user.email': 'fleet@example.com', 'commit.gpgsign': 'false' };

/** A Git server with repositories that the caller commits to. */
export interface GitServer {
  /** The URL under which Argo CD reads a repository. */
  url(repository: string): string;
  /** The working tree of a repository, of the branch `main`. Whoever commits there needs no identity of their own. */
  folder(repository: string): string;
  /**
   * Writes files (a path relative to the repository: its text, or null to remove it) and commits them to the branch
   * `main`; creates the repository when it is new. Returns the commit's hash.
   */
  commit(repository: string, files: Record<string, string | null>, message: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts `git daemon` over repositories in a folder, on loopback unless told otherwise. It needs git on the PATH. */
export async function startGitServer(folder: string, host = '127.0.0.1'): Promise<GitServer> {
  await mkdir(folder, { recursive: true });
  const port = await freePort();
  const address = [`--listen=${host}`, `--port=${port}`];
  const daemon = new Component({
    name: 'git daemon',
    command: 'git',
    args: ['daemon', '--reuseaddr', '--export-all', ...address, `--base-path=${folder}`, folder],
    logFile: join(folder, 'git-daemon.log'),
    isReady: () => isListening(host, port),
  });
  await daemon.start();
  await daemon.ready();
  const folderOf = (repository: string) => join(folder, repository);
  const git = async (repository: string, ...args: string[]) =>
    (await run('git', ['-C', folderOf(repository), ...args])).stdout.trim();
  const create = async (repository: string) => {
    await run('git', ['init', '--quiet', '--initial-branch=main', folderOf(repository)]);
    for (const [key, value] of Object.entries(author)) {
      await git(repository, 'config', key, value);
    }
  };
  return {
    url: (repository) => `git://${host}:${port}/${repository}`,
    folder: folderOf,
    async commit(repository, files, message) {
      if (!existsSync(join(folderOf(repository), '.git'))) {
        await create(repository);
      }
      for (const [path, text] of Object.entries(files)) {
        const file = join(folderOf(repository), path);
        await mkdir(dirname(file), { recursive: true });
        await (text === null ? rm(file, { force: true }) : writeFile(file, text));
      }
      await git(repository, 'add', '--all');
      await git(repository, 'commit', '--quiet', '--allow-empty', '--message', message);
      return await git(repository, 'rev-parse', 'HEAD');
    },
    async stop() {
      await daemon.stop();
    },
  };
}

function isListening(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, host);
  socket.once('connect', () => {
    socket.destroy();
    resolve(true);
  });
  socket.once('error', () => resolve(false));
  return promise;
}
