import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Program } from '../pair/index.ts';

const restartMs = 1_000;
const sampleMs = 1_000;
/** Streams end first, so that agents lose a moment; a kubelet would kill it after 30 s. */
const mostSecondsToEnd = 10;

/** The last words of a program that does not reach its API server when it starts: it ends, to be started again (--informer-sync-timeout). */
const startGivenUp = /^\[FATAL\]: .* could not be listed within \S+:/;

/** How a {@link Part} is made. */
export interface PartOptions {
  readonly name: string;
  readonly program: Program;
  readonly healthPort: number;
  /** Resident memory that it may not exceed. */
  readonly boundBytes: number;
}

/** A program of the fleet under a supervisor, which starts it again as a kubelet does and writes down what it noticed. */
export class Part {
  readonly name: string;
  readonly program: Program;
  readonly healthPort: number;
  readonly boundBytes: number;
  /** The ends that nobody asked for, in words. */
  readonly exits: string[] = [];
  /** The greatest resident size that was seen. */
  mostBytes = 0;
  #isToRun = false;
  /** It is on a machine that is down. */
  #isHeld = false;
  #isFrozen = false;
  /** With what it was told to end, while it does. */
  #signalled: NodeJS.Signals | undefined;
  /** The length of its output when it started. */
  #saidBefore = 0;
  readonly #sampling: NodeJS.Timeout;

  constructor({ name, program, healthPort, boundBytes }: PartOptions) {
    this.name = name;
    this.program = program;
    this.healthPort = healthPort;
    this.boundBytes = boundBytes;
    this.#sampling = setInterval(() => void this.#sample(), sampleMs).unref();
  }

  /** Whether it runs and is not frozen. */
  get isUp(): boolean {
    return this.program.running && !this.#isFrozen;
  }

  /** Starts it, if it does not run, and starts it again whenever it ends, until it is ended. */
  start(): void {
    this.#isToRun = true;
    if (this.program.running || this.#isHeld) {
      return;
    }
    this.program.start();
    this.#saidBefore = this.program.output.length;
    void this.program.exited().then(async (code) => {
      if (!this.#isToRun) {
        return;
      }
      const said = lastLine(this.program.output);
      if (!(code === 1 && startGivenUp.test(said))) {
        this.exits.push(`${this.name} ended with code ${code}: ${said.slice(0, 500)}`);
      }
      await sleep(restartMs);
      if (this.#isToRun) {
        this.start();
      }
    });
  }

  /** Ends it; it stays down until it is started. */
  async end(signal: NodeJS.Signals): Promise<void> {
    this.#isToRun = false;
    this.thaw();
    if (!this.program.running) {
      return;
    }
    if (signal === 'SIGTERM' && this.#signalled !== undefined) {
      // A second SIGTERM would end it at once, with another code.
      await this.program.exited();
      return;
    }
    this.#signalled = signal;
    const began = performance.now();
    const code = await this.program.stop(signal);
    const seconds = (performance.now() - began) / 1_000;
    // Until it has loaded, and so can say something, the signal itself ends it.
    const isLoading = code === -1 && this.program.output.length === this.#saidBefore;
    const hasFailed = code !== 0 && !isLoading;
    if (this.#signalled === 'SIGTERM' && (hasFailed || seconds > mostSecondsToEnd)) {
      const end = `${this.name} ended with code ${code} after ${seconds.toFixed(1)} s when it was told to end`;
      this.exits.push(`${end}: ${lastLine(this.program.output).slice(0, 500)}`);
    }
    this.#signalled = undefined;
  }

  /** Kills it; whoever starts it before {@link release} gets it then. */
  async hold(): Promise<void> {
    this.#isHeld = true;
    await this.end('SIGKILL');
  }

  /** Starts it after {@link hold}. */
  release(): void {
    this.#isHeld = false;
    this.start();
  }

  /** Stops all its threads. */
  freeze(): void {
    this.#isFrozen = true;
    void this.program.signal('SIGSTOP');
  }

  thaw(): void {
    this.#isFrozen = false;
    void this.program.signal('SIGCONT');
  }

  /** What its health endpoint says that is not yes; undefined when it says yes. */
  async complaint(): Promise<string | undefined> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.healthPort}/healthz`, {
        signal: AbortSignal.timeout(5_000),
      });
      const text = await response.text();
      return response.ok ? undefined : `${this.name}: ${response.status} ${text.trim().slice(0, 300)}`;
    } catch (error) {
      return `${this.name}: ${(error as Error).message}`;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sampling);
    this.#isToRun = false;
    this.thaw();
    await this.program.stop('SIGKILL');
  }

  async #sample(): Promise<void> {
    const { pid } = this.program;
    const status = pid === undefined ? '' : await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    const kilobytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
    this.mostBytes = Math.max(this.mostBytes, kilobytes * 1024);
  }
}

const lastLine = (output: string) => output.trimEnd().split('\n').at(-1) ?? '';
