import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { isProcessAlive } from '../testbed/index.ts';

/** A program of Node, and the lines that it has printed, errors among them. */
export interface NodeRun {
  readonly child: ChildProcess;
  readonly seen: readonly string[];
  /** Calls back after each line. */
  onLine(listener: () => void): void;
}

/** Runs Node in a process that ends with the test at the latest, and gives what it prints, line by line. */
export function runNode(args: readonly string[], env: NodeJS.ProcessEnv = process.env): NodeRun {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const readers = [child.stdout, child.stderr].map((input) => createInterface({ input }));
  const seen: string[] = [];
  for (const reader of readers) {
    reader.on('line', (line) => seen.push(line));
  }
  onTestFinished(() => void child.kill('SIGKILL'));
  return {
    child,
    seen,
    onLine(listener) {
      for (const reader of readers) {
        reader.on('line', listener);
      }
    },
  };
}

/** Waits for a line; the first group of the expression, or all of it. */
export function waitForLine({ child, seen, onLine }: NodeRun, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const match = pattern.exec(seen.join('\n'));
      if (match) {
        resolve(match[1] ?? match[0]);
      }
    };
    onLine(look);
    child.once('exit', (code) => reject(new Error(`ended with ${code} before ${pattern}:\n${seen.join('\n')}`)));
    look();
  });
}

/** The temporary folder of a testbed, from the arguments of the processes that a runner has started. */
export async function testbedFolderOf({ pid }: ChildProcess): Promise<string> {
  for (const { command } of await processes()) {
    const folder = new RegExp(`[= ](/\\S*/${pid}-testbed-\\w+)/`).exec(command)?.[1];
    if (folder) {
      return folder;
    }
  }
  throw new Error(`process ${pid} has no testbed`);
}

/** A process of this machine, with its command line, its folder and its environment in one text. */
export interface SeenProcess {
  readonly pid: number;
  readonly command: string;
}

/** Every process, with its command line, its folder and its environment. */
async function processes(): Promise<SeenProcess[]> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry)).map(Number);
  const read = (pid: number, file: string) => readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '');
  return Promise.all(
    pids.map(async (pid) => ({
      pid,
      command: `${await read(pid, 'cmdline')} ${await read(pid, 'environ')}`.replaceAll('\0', ' '),
    })),
  );
}

/** The processes that hold a fleet's folder in their arguments or their environment. */
export const processesNaming = async (folder: string) =>
  (await processes()).filter(({ command }) => command.includes(folder));

/** Those that are left, of the ones seen before and of any that came since. */
export async function stillAlive(before: readonly SeenProcess[], folder: string): Promise<string[]> {
  const left = [...before.filter(({ pid }) => isProcessAlive(pid)), ...(await processesNaming(folder))];
  return left.map(({ pid, command }) => `${pid} ${command.slice(0, 200)}`);
}
