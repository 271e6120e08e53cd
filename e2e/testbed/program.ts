import type { Readable } from 'node:stream';
import { programCommand } from '../programs/index.ts';
import { type SupervisedProcess, spawnSupervised } from './process.ts';

/** A program as a process that cannot outlive this one, with what it said. */
export class Program {
  readonly #command: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #waiting = new Set<() => void>();
  #isRunning = false;
  #process: SupervisedProcess | undefined;
  /** The last start, and the end of that run. */
  #started: Promise<SupervisedProcess | undefined> | undefined;
  #exit: Promise<number> | undefined;
  #output = '';

  /** @param executable Default: this project's `argocd-agent` */
  constructor(args: readonly string[], environment: Readonly<Record<string, string>> = {}, executable?: string) {
    this.#command = executable === undefined ? [...programCommand('argocd-agent'), ...args] : [executable, ...args];
    this.#environment = environment;
  }

  /** Everything written so far, by all runs. One that could not be started says why. */
  get output(): string {
    return this.#output;
  }

  /** Whether a start was begun and the program has not ended since. */
  get running(): boolean {
    return this.#isRunning;
  }

  /** The running process; undefined when there is none, and for the moment that its start takes. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Begins to start it. Throws when it runs already. */
  start(): void {
    if (this.#isRunning) {
      throw new Error('the program runs already');
    }
    this.#isRunning = true;
    const [file = '', ...args] = this.#command;
    const take = (chunk: Buffer) => {
      this.#output += chunk.toString();
      if (process.env.SHOW_PROGRAMS) {
        process.stderr.write(chunk);
      }
      this.#look();
    };
    const started = spawnSupervised(file, args, {
      env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...this.#environment },
      onOutput: (...streams: Readable[]) => {
        for (const stream of streams) {
          stream.on('data', take);
        }
      },
    }).catch((error: Error) => {
      this.#output += `${error.message}\n`;
      return undefined;
    });
    this.#started = started;
    this.#exit = this.#end(started);
  }

  /** Sends it a signal, as soon as it has started. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    (await this.#started)?.signal(signal);
  }

  /** Ends it with a signal and waits for its end; the exit code, -1 when it died of the signal. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number> {
    const exit = this.#exit;
    await this.signal(signal);
    return (await exit) ?? 0;
  }

  /** Waits for its end. */
  async exited(): Promise<number> {
    return (await this.#exit) ?? 0;
  }

  /**
   * Waits until it has written something that matches, from `after` (an earlier length of `output`) on.
   * @throws Error with the end of its output when that does not happen in time or it ends first
   */
  async says(pattern: RegExp, options: { after?: number; timeoutMs?: number } = {}): Promise<RegExpExecArray> {
    const { after = 0, timeoutMs = 120_000 } = options;
    // What it says may be here before the news that it runs: who has read it may ask for its process.
    await this.#started;
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const fail = (why: string) => reject(new Error(`no ${pattern} ${why}:\n${this.#output.slice(-4_000)}`));
    const look = () => {
      const match = pattern.exec(this.#output.slice(after));
      if (match !== null) {
        resolve(match);
      } else if (!this.#isRunning) {
        fail('before the program ended');
      }
    };
    const timer = setTimeout(() => fail(`within ${timeoutMs} ms`), timeoutMs);
    this.#waiting.add(look);
    look();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(look);
    }
  }

  async #end(started: Promise<SupervisedProcess | undefined>): Promise<number> {
    this.#process = await started;
    const exit = await this.#process?.exited;
    this.#process = undefined;
    this.#isRunning = false;
    this.#look();
    return exit?.code ?? -1;
  }

  #look(): void {
    for (const look of this.#waiting) {
      look();
    }
  }
}
