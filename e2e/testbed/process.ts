import { type ChildProcess, spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { constants as osConstants } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { toolPath } from '../tools/index.ts';

/** How to start a supervised process. */
export interface SpawnOptions {
  /** The whole environment. Default: this process's. */
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** Gets standard output and error, appended. Without it both are dropped. */
  logFile?: string;
  /** Gets standard output and error as streams instead, and must read both to their end. */
  onOutput?: (stdout: Readable, stderr: Readable) => void;
  /**
   * Gives the command an input, {@link SupervisedProcess.input}; with `terminal` it gets a terminal, whose output comes as standard
   * output. Default: an empty input.
   */
  input?: 'stream' | 'terminal';
  /** Called once when the process and everything that it started has ended. */
  onExit?: (exit: ProcessExit) => void;
}

/** How a process ended: by itself with a code, or by a signal. */
export interface ProcessExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process that cannot outlive this one. */
export interface SupervisedProcess {
  /** The command's own process id; also its process group. */
  readonly pid: number;
  readonly running: boolean;
  /** What the command reads, when it was given an input. */
  readonly input: Writable | undefined;
  /** Sets the size of the command's terminal. */
  resize(rows: number, columns: number): void;
  /** Resolves when the process and everything that it started has ended. */
  readonly exited: Promise<ProcessExit>;
  /** Sends a signal to the command alone, as a container runtime does to a container's first process. */
  signal(signal: NodeJS.Signals): void;
  /** SIGKILLs the command and everything that it started, and resolves when all of it is gone. */
  kill(): Promise<ProcessExit>;
  /** SIGTERM, then {@link SupervisedProcess.kill} after `graceMs` (5,000). */
  stop(graceMs?: number): Promise<ProcessExit>;
}

/** A command that could not be started at all: not found, not executable, no such folder. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError';
  readonly command: string;

  constructor(command: string, reason: string) {
    super(`cannot start ${command}: ${reason}`);
    this.command = command;
  }
}

/**
 * Starts a command in a process group of its own under a small supervisor (`e2e/tools/supervise`) that holds a pipe to
 * this process. When the pipe closes, which the kernel does however this process ends, SIGKILL included, the supervisor
 * kills the command and all its descendants; so it does with what is left behind when the command ends.
 * The command's standard input is empty unless asked for.
 * @throws SpawnError when the command cannot be started.
 */
export async function spawnSupervised(
  command: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<SupervisedProcess> {
  const supervisor = await toolPath('supervise');
  const log = options.logFile === undefined ? undefined : await open(options.logFile, 'a');
  try {
    const output = options.onOutput ? 'pipe' : (log?.fd ?? 'ignore');
    const { input } = options;
    const mode = input === undefined ? [] : [input === 'terminal' ? '-terminal' : '-input'];
    const child = spawn(supervisor, [...mode, command, ...args], {
      env: options.env ?? process.env,
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      stdio: ['pipe', output, output, 'pipe', ...(input === undefined ? [] : (['pipe'] as const))],
    });
    if (options.onOutput && child.stdout && child.stderr) {
      options.onOutput(child.stdout, child.stderr);
    }
    return await Supervised.started(command, child, options);
  } finally {
    await log?.close();
  }
}

class Supervised implements SupervisedProcess {
  readonly pid: number;
  readonly exited: Promise<ProcessExit>;
  readonly input: Writable | undefined;
  readonly #control: Writable;
  #running = true;

  private constructor(pid: number, control: Writable, input: Writable | undefined, exited: Promise<ProcessExit>) {
    this.pid = pid;
    this.input = input;
    this.#control = control;
    this.exited = exited.then((exit) => {
      this.#running = false;
      return exit;
    });
  }

  /** Resolves when the supervisor reports that the command runs. */
  static started(command: string, child: ChildProcess, options: SpawnOptions): Promise<Supervised> {
    const control = child.stdin as Writable;
    // Writing to a supervisor that has just ended is no error: what was asked for has happened.
    control.on('error', () => undefined);
    const input = (child.stdio[4] ?? undefined) as Writable | undefined;
    input?.on('error', () => undefined);
    return new Promise((resolve, reject) => {
      // Killed by name or by the kernel: the supervisor's death takes the command with it.
      let exit: ProcessExit = { code: null, signal: 'SIGKILL' };
      let ended: (exit: ProcessExit) => void = () => undefined;
      child.once('error', (error) => reject(new SpawnError(command, error.message)));
      child.once('close', () => {
        reject(new SpawnError(command, 'the supervisor ended'));
        ended(exit);
      });
      createInterface({ input: child.stdio[3] as Readable }).on('line', (line) => {
        const [verb = '', value = ''] = split(line);
        if (verb === 'failed') {
          reject(new SpawnError(command, value));
        } else if (verb === 'exited') {
          exit = { code: Number(value), signal: null };
        } else if (verb === 'signaled') {
          exit = { code: null, signal: signalName(Number(value)) };
        } else if (verb === 'started') {
          const exited = new Promise<ProcessExit>((resolve) => {
            ended = resolve;
          });
          const supervised = new Supervised(Number(value), control, input, exited);
          if (options.onExit) {
            void supervised.exited.then(options.onExit);
          }
          resolve(supervised);
        }
      });
    });
  }

  get running(): boolean {
    return this.#running;
  }

  signal(signal: NodeJS.Signals): void {
    this.#control.write(`signal ${osConstants.signals[signal]}\n`);
  }

  resize(rows: number, columns: number): void {
    this.#control.write(`resize ${rows} ${columns}\n`);
  }

  kill(): Promise<ProcessExit> {
    this.#control.write('kill\n');
    return this.exited;
  }

  async stop(graceMs = 5000): Promise<ProcessExit> {
    this.signal('SIGTERM');
    const timer = setTimeout(() => void this.kill(), graceMs);
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }
}

function split(line: string): [string, string] {
  const blank = line.indexOf(' ');
  return [line.slice(0, blank), line.slice(blank + 1)];
}

function signalName(number: number): NodeJS.Signals | null {
  const found = Object.entries(osConstants.signals).find(([, value]) => value === number);
  return found ? (found[0] as NodeJS.Signals) : null;
}
