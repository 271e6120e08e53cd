import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { toolPath } from '../tools/index.ts';
import type { ArgoCdApi } from './api.ts';

/** How a run of the command ended. */
export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command `argocd`, for the user of an API. */
export class ArgoCdCli {
  readonly #api: ArgoCdApi;
  readonly #folder: string;

  /** @param folder for what it keeps */
  constructor(api: ArgoCdApi, folder: string) {
    this.#api = api;
    this.#folder = folder;
  }

  /** Starts it. */
  async start(...args: string[]): Promise<ChildProcess> {
    const { address, token } = this.#api;
    const server = ['--server', `${address.host}:${address.port}`, '--insecure', '--auth-token', token];
    const config = ['--config', join(this.#folder, 'argocd-cli')];
    return spawn(await toolPath('argocd'), [...args, ...server, ...config], {
      env: { PATH: process.env.PATH ?? '', HOME: this.#folder, ARGOCD_BINARY_NAME: 'argocd' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  /** Runs it to its end, whatever that is. */
  async run(...args: string[]): Promise<CliResult> {
    const child = await this.start(...args);
    let stdout = '';
    let stderr = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, stdout, stderr };
  }

  /** Runs it and returns what it prints. @throws Error with what it says when it fails */
  async print(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    if (code !== 0) {
      throw new Error(`argocd ${args.join(' ')}: exit code ${code}\n${stdout}${stderr}`);
    }
    return stdout;
  }

  /** Runs it until it has printed what is wanted, and ends it. @throws Error when it ends before */
  async until(accept: (printed: string) => boolean, ...args: string[]): Promise<string> {
    const child = await this.start(...args);
    let printed = '';
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        printed += chunk;
        if (accept(printed)) {
          resolve();
        }
      });
    }
    child.once('close', (code) => reject(new Error(`argocd ${args.join(' ')} ended with ${code}: ${printed}`)));
    const timer = setTimeout(() => reject(new Error(`argocd ${args.join(' ')} printed: ${printed}`)), 240_000);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      child.kill();
    }
    return printed;
  }
}
