import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { type ProcessExit, type SupervisedProcess, spawnSupervised } from './process.ts';

/** How to run a server. */
export interface ComponentOptions {
  name: string;
  command: string;
  args: readonly string[];
  /** The whole environment. Default: this process's. */
  env?: NodeJS.ProcessEnv;
  logFile: string;
  /** Whether it does its work; asked again and again until it says yes. Throwing means no. */
  isReady: (signal: AbortSignal) => Promise<boolean>;
  /** How long it waits before it asks again. Default: 30. */
  pollMs?: number;
  /** Gets an error with the end of the log when it ends although nobody ended it. Default: nobody is told. */
  crashed?: (error: Error) => void;
}

/** A server as a process that cannot outlive this one, which can be killed and started again on the same data and ports. */
export class Component {
  readonly name: string;
  /** Standard output and error of all its runs. */
  readonly logFile: string;
  readonly #options: ComponentOptions;
  #process: SupervisedProcess | undefined;
  /** Runs that were ended on purpose. */
  readonly #ended = new WeakSet<SupervisedProcess>();

  constructor(options: ComponentOptions) {
    this.name = options.name;
    this.logFile = options.logFile;
    this.#options = options;
  }

  /** The process id of the present run, or of the last one. */
  get pid(): number {
    if (!this.#process) {
      throw new Error(`${this.name} was never started`);
    }
    return this.#process.pid;
  }

  get running(): boolean {
    return this.#process?.running ?? false;
  }

  /** Starts it if it does not run. Does not wait until it is ready. */
  async start(): Promise<void> {
    if (this.running) {
      return;
    }
    const { command, args, env, logFile, crashed } = this.#options;
    const started = await spawnSupervised(command, args, { logFile, ...(env && { env }) });
    this.#process = started;
    if (crashed) {
      void started.exited.then(async (exit) => {
        if (!this.#ended.has(started)) {
          crashed(await this.#failure(`ended (${told(exit)})`));
        }
      });
    }
  }

  /** Resolves when it does its work; fails when it ends instead, or after `timeoutMs` (300,000: a busy machine took 110 s). */
  async ready(signal?: AbortSignal, timeoutMs = 300_000): Promise<void> {
    const started = this.#process;
    if (!started) {
      throw new Error(`${this.name} was never started`);
    }
    const deadline = AbortSignal.timeout(timeoutMs);
    const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
    while (!(await this.#isReady(either))) {
      signal?.throwIfAborted();
      if (!started.running) {
        throw await this.#failure(`ended (${told(await started.exited)})`);
      }
      if (deadline.aborted) {
        throw await this.#failure(`was not ready after ${timeoutMs / 1000} s`);
      }
      await setTimeout(this.#options.pollMs ?? 30);
    }
  }

  /** SIGKILL; resolves when it is gone. It stays down until it is restarted. */
  async kill(): Promise<void> {
    await this.#toEnd()?.kill();
  }

  /** Ends it in good order; resolves when it is gone. */
  async stop(graceMs?: number): Promise<void> {
    if (this.running) {
      await this.#toEnd()?.stop(graceMs);
    }
  }

  /** Kills it if it runs, starts it again with the same data and ports, and resolves when it is ready. */
  async restart(signal?: AbortSignal): Promise<void> {
    if (this.running) {
      await this.kill();
    }
    await this.start();
    await this.ready(signal);
  }

  #toEnd(): SupervisedProcess | undefined {
    if (this.#process) {
      this.#ended.add(this.#process);
    }
    return this.#process;
  }

  async #isReady(signal: AbortSignal): Promise<boolean> {
    try {
      // An answer that never comes must not keep the next question from being asked.
      return await this.#options.isReady(AbortSignal.any([signal, AbortSignal.timeout(10_000)]));
    } catch {
      // Refused connections and half-made state are what "not yet" looks like; the deadline tells what is wrong.
      return false;
    }
  }

  async #failure(what: string): Promise<Error> {
    const log = await readFile(this.logFile, 'utf8').catch(() => '');
    const end = log.trimEnd().split('\n').slice(-15).join('\n');
    return new Error(`${this.name} ${what}. The end of ${this.logFile}:\n${end}`);
  }
}

const told = ({ code, signal }: ProcessExit) => (signal ? `signal ${signal}` : `exit code ${code}`);
