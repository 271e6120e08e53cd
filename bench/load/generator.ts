import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { versionForOther } from '../other.ts';
import type { Counts, LoadCommand, LoadReport, LoadSetting } from './protocol.ts';

const script = new URL('main.ts', import.meta.url).pathname;

const progressMs = 15_000;

/** The names of so many agents. */
export function agentNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `agent-${String(index).padStart(4, '0')}`);
}

/** The load generator, a process of its own, and what it told so far. */
export class Generator {
  /** Agent → when it was in sync last, in milliseconds since the epoch. */
  readonly inSync = new Map<string, number>();
  /** Why the last connection was lost. */
  #lastLoss = 'none';
  readonly #agents: readonly string[];
  readonly #process: ChildProcess;
  /** What was asked and is not answered, by its number. */
  readonly #questions = new Map<number, PromiseWithResolvers<Counts>>();
  #asked = 0;
  readonly #watchers = new Set<() => void>();
  readonly #ready = Promise.withResolvers<void>();
  #ended: string | undefined;

  private constructor(options: Omit<LoadSetting, 'version'>) {
    this.#agents = options.agents;
    const setting: LoadSetting = { ...options, version: versionForOther() ?? 'load-generator' };
    this.#process = fork(script, [JSON.stringify(setting)]);
    this.#process.on('message', (report: LoadReport) => this.#take(report));
    this.#process.on('exit', (code) => {
      this.#ended = `the load generator ended with code ${code}`;
      for (const { reject } of [this.#ready, ...this.#questions.values()]) {
        reject(new Error(this.#ended));
      }
      for (const look of this.#watchers) {
        look();
      }
    });
  }

  /** Starts it; it has all certificates when this resolves. */
  static async start(options: Omit<LoadSetting, 'version'>): Promise<Generator> {
    const generator = new Generator(options);
    await generator.#ready.promise;
    return generator;
  }

  get pid(): number {
    if (this.#process.pid === undefined) {
      throw new Error('the load generator does not run');
    }
    return this.#process.pid;
  }

  /** Connects all agents at once; returns the moment, in milliseconds since the epoch. */
  connect(): number {
    this.#tell({ do: 'connect' });
    return performance.timeOrigin + performance.now();
  }

  /** Resolves when all agents have been in sync after a moment. @throws Error when that takes longer than `timeoutMs` */
  async allInSync(since: number, timeoutMs = 300_000): Promise<void> {
    const left = await this.inSyncWithin(since, timeoutMs);
    if (left > 0) {
      throw new Error(`${left} agents are not in sync after ${timeoutMs / 1000} s: ${await this.described()}`);
    }
  }

  /**
   * Waits until all agents have been in sync after a moment, or for so long; resolves with the number of those that have
   * not. `progress` is called every 15 s.
   */
  async inSyncWithin(
    since: number,
    timeoutMs: number,
    progress: () => Promise<void> = async () => undefined,
  ): Promise<number> {
    const began = performance.now();
    const left = () => this.#agents.length - [...this.inSync.values()].filter((at) => at >= since).length;
    for (let told = 0; left() > 0; ) {
      if (this.#ended !== undefined) {
        throw new Error(this.#ended);
      }
      const elapsed = performance.now() - began;
      if (elapsed > timeoutMs) {
        break;
      }
      if (elapsed > (told + 1) * progressMs) {
        told = Math.floor(elapsed / progressMs);
        await progress();
      }
      await this.#news(1_000);
    }
    return left();
  }

  /** How things stand, in words. */
  async described(): Promise<string> {
    const { connected, inSync, applications, losses } = await this.count();
    const lost = losses === 0 ? '' : `, ${losses} connections were lost (last: ${this.#lastLoss})`;
    return `${connected} agents are connected, ${inSync} in sync, they have ${applications} Applications${lost}`;
  }

  /** How things stand now. */
  async count(): Promise<Counts> {
    if (this.#ended !== undefined) {
      throw new Error(this.#ended);
    }
    const id = this.#asked++;
    const question = Promise.withResolvers<Counts>();
    this.#questions.set(id, question);
    this.#tell({ do: 'count', id });
    return question.promise;
  }

  /** Ends it, and with it all connections. */
  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) {
      return;
    }
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    await exited;
  }

  #tell(command: LoadCommand): void {
    this.#process.send(command);
  }

  #take(report: LoadReport): void {
    switch (report.is) {
      case 'ready':
        this.#ready.resolve();
        break;
      case 'in-sync':
        this.inSync.set(report.agent, report.at);
        break;
      case 'counted':
        this.#questions.get(report.id)?.resolve(report);
        this.#questions.delete(report.id);
        break;
      case 'lost':
        this.#lastLoss = report.why;
        break;
    }
    for (const look of this.#watchers) {
      look();
    }
  }

  /** Resolves at the next report, or when the time is over. */
  async #news(withinMs: number): Promise<void> {
    const stop = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#watchers.add(resolve);
    await Promise.race([promise, sleep(withinMs, undefined, { signal: stop.signal }).catch(() => undefined)]);
    stop.abort();
    this.#watchers.delete(resolve);
  }
}
