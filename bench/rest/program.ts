import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnSupervised } from '../../e2e/testbed/index.ts';
import { type Usage, usageOf } from '../scale/process-meter.ts';

/** A program that is ready, measured from outside. */
export interface MeasuredProgram {
  /** From its start until it was ready: user and system time of all threads, and time of the clock. */
  readonly start: { readonly cpuSeconds: number; readonly seconds: number };
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

/**
 * Starts a program as a pod does and resolves when it is ready.
 * @param options.from folder with `bin`: a checkout, or what the image runs (`npm run build` writes `dist`)
 * @param options.isReady receives the program's log
 * @throws Error with the end of its log when it ends instead
 */
export async function startMeasured(options: {
  from: string;
  name: 'argocd-agent' | 'gitops-controller';
  args: readonly string[];
  logFile: string;
  /** What Node.js chooses by the memory limit of the pod. */
  nodeOptions: string;
  isReady: (log: string) => Promise<boolean>;
}): Promise<MeasuredProgram> {
  const { from, name, args, logFile, isReady } = options;
  const compiled = join(from, 'bin', `${name}.js`);
  const entry = existsSync(compiled) ? compiled : join(from, 'bin', `${name}.ts`);
  const began = performance.now();
  const child = await spawnSupervised(process.execPath, [entry, ...args], {
    logFile,
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      NODE_OPTIONS: options.nodeOptions,
    },
  });
  const log = () => readFile(logFile, 'utf8');
  while (!(await isReady(await log()))) {
    if (!child.running) {
      throw new Error(`${name} ended:\n${(await log()).slice(-4_000)}`);
    }
    await sleep(5);
  }
  const { cpuSeconds } = await usageOf(child.pid);
  const start = { cpuSeconds, seconds: (performance.now() - began) / 1000 };
  return {
    start,
    usage: () => usageOf(child.pid),
    async stop() {
      await child.stop(20_000);
    },
  };
}

/** Whether a health endpoint answers 200. */
export async function isWell(port: number): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${port}/healthz`).then(
    (response) => response.ok,
    () => false,
  );
}
