import { type ChildProcess, spawn } from 'node:child_process';
import { programCommand } from '../programs/index.ts';

/** `argocd-agent` as a process of its own, with what it said. */
export class Program {
  readonly #command: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #waiting = new Set<() => void>();
  #process: ChildProcess | undefined;
  #exit: Promise<number> | undefined;
  #output = '';

  /** @param original another executable of that name; default: this project's program */
  constructor(args: readonly string[], environment: Readonly<Record<string, string>> = {}, original?: string) {
    this.#command = original === undefined ? [...programCommand('argocd-agent'), ...args] : [original, ...args];
    this.#environment = environment;
  }

  /** Everything written so far, by all runs. */
  get output(): string {
    return this.#output;
  }

  /** The running process; undefined when there is none. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starts it. Throws when it runs already. */
  start(): void {
    if (this.#process !== undefined) {
      throw new Error('the program runs already');
    }
    const [file = '', ...args] = this.#command;
    const child = spawn(file, args, {
      env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...this.#environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const take = (chunk: Buffer) => {
      this.#output += chunk.toString();
      if (process.env.SHOW_PROGRAMS) {
        process.stderr.write(chunk);
      }
      for (const look of this.#waiting) {
        look();
      }
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    this.#process = child;
    this.#exit = new Promise((resolve) => {
      child.on('close', (code) => {
        if (this.#process === child) {
          this.#process = undefined;
        }
        resolve(code ?? -1);
        for (const look of this.#waiting) {
          look();
        }
      });
    });
  }

  /** Ends it with a signal and waits for its end; the exit code, -1 when it died of the signal. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number> {
    this.#process?.kill(signal);
    return (await this.#exit) ?? 0;
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
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const fail = (why: string) => reject(new Error(`no ${pattern} ${why}:\n${this.#output.slice(-4_000)}`));
    const look = () => {
      const match = pattern.exec(this.#output.slice(after));
      if (match !== null) {
        resolve(match);
      } else if (this.#process === undefined) {
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
}
