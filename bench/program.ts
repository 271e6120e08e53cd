import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnSupervised } from '../e2e/testbed/index.ts';
import { type Usage, usageOf } from './process-meter.ts';

/** A program that is ready, measured from outside. */
export interface MeasuredProgram {
  readonly pid: number;
  /** Seconds from its start until it was ready. */
  readonly startSeconds: number;
  /** What it had used by then. */
  readonly atStart: Usage;
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

/**
 * Starts a program as a pod does and resolves when it is ready.
 * @param options.nodeOptions what Node.js chooses by the memory limit of the pod
 * @param options.isReady receives the program's log
 * @throws Error with the end of its log when it ends instead
 */
export async function startMeasured(options: {
  command: readonly [program: string, ...args: string[]];
  logFile: string;
  nodeOptions: string;
  isReady: (log: string) => Promise<boolean>;
}): Promise<MeasuredProgram> {
  const { command, logFile, nodeOptions, isReady } = options;
  const [program, ...args] = command;
  const began = performance.now();
  const child = await spawnSupervised(program, args, {
    logFile,
    env: { PATH: process.env.PATH, HOME: '/nonexistent', NODE_OPTIONS: nodeOptions },
  });
  const log = () => readFile(logFile, 'utf8');
  while (!(await isReady(await log()))) {
    if (!child.running) {
      throw new Error(`${command.slice(0, 3).join(' ')} ended:\n${(await log()).slice(-4_000)}`);
    }
    await sleep(20);
  }
  return {
    pid: child.pid,
    startSeconds: (performance.now() - began) / 1000,
    atStart: await usageOf(child.pid),
    usage: () => usageOf(child.pid),
    async stop() {
      await child.stop(20_000);
    },
  };
}

/**
 * Node.js sizes its heap by the memory that it may use: these are its choices in the 2 GiB that the charts give the
 * principal. On a large machine without a limit it would collect garbage more rarely.
 */
export const inTwoGibibytes = '--max-old-space-size=1024 --max-semi-space-size=32';
/** Its choices in the memory that they give agent and controller. */
export const inHalfAGibibyte = '--max-old-space-size=256 --max-semi-space-size=8';

const checkout = new URL('..', import.meta.url).pathname;

/**
 * The command of a program of this project.
 * @param from folder with `bin`: a checkout, or what the image runs (`npm run build` writes `dist`); default: this checkout
 */
export function programIn(
  name: 'argocd-agent' | 'gitops-controller',
  from = checkout,
): readonly [program: string, entry: string] {
  const compiled = join(from, 'bin', `${name}.js`);
  return [process.execPath, existsSync(compiled) ? compiled : join(from, 'bin', `${name}.ts`)];
}

/** Whether a health endpoint answers 200. */
export async function isWell(port: number): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${port}/healthz`).then(
    (response) => response.ok,
    () => false,
  );
}
