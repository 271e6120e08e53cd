import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ArgoObject, pairApplications } from '../../e2e/pair/index.ts';
import { Informer } from '../../lib/kube/index.ts';
import { latencies, latencyHeading, percentile } from '../figures.ts';
import { agentNames } from '../load/options.ts';
import { Generator } from '../scale/generator.ts';
import { type Hub, startScaleHub } from '../scale/hub.ts';
import { scaleOptions } from '../scale/options.ts';
import { type Principal, startPrincipal } from '../scale/principal.ts';
import { processesOf, usageHeading, usageRows } from '../scale/processes.ts';
import { ShownStatuses } from '../scale/shown-statuses.ts';
import { print, table } from '../scale/table.ts';

const help = `Usage: npm run bench -- hostile [--agents N] [--per-second N] [--quiet N] [--seconds N] [--attack TEXT]

One hostile agent with a valid certificate attacks the principal at full speed, beside honest agents that report statuses.
The figures of the honest agents are taken without it and with it: from the change on a cluster to a watch event on the hub.
The hostile agent runs with the lowest priority, so that it does not take the processors from the principal: it would run on
another machine.

  --agents N         honest agents (100)
  --applications N   of each agent (5)
  --per-second N     status changes of all honest agents together (20)
  --quiet N          seconds without the hostile agent (60)
  --seconds N        seconds with it (300)
  --attack TEXT      only the attacks whose names contain this
`;

const hostile = 'hostile-0000';
const script = new URL('agent.ts', import.meta.url).pathname;
const pollMs = 20;

/** Runs the benchmark and prints its tables. */
export async function benchHostile(args: string[]): Promise<void> {
  const defaults = { agents: 100, applications: 5, 'per-second': 20, quiet: 60, seconds: 300 };
  const options = scaleOptions(args, help, defaults, ['attack']);
  if (options === undefined) {
    return;
  }
  const { agents, applications, quiet, seconds } = options;
  const names = agentNames(agents);
  const hub = await startScaleHub();
  const ended = new AbortController();
  let principal: Principal | undefined;
  let generator: Generator | undefined;
  let attacker: HostileProcess | undefined;
  try {
    await hub.map([...names, hostile]);
    await hub.fill([...names, hostile], applications);
    const shown = new ShownStatuses();
    const view = new Informer<ArgoObject>({ client: hub.cluster.client, type: pairApplications });
    view.subscribe({ updated: (old, now) => shown.take(old, now) });
    const watching = view.run(ended.signal);
    await view.synced();
    principal = await startPrincipal(hub);
    generator = await Generator.start({ server: principal.server, pki: hub.pki, agents, applications });
    await generator.allInSync(generator.connect());
    await generator.change(options['per-second'], 5);
    attacker = new HostileProcess(principal, hub, options.attack?.[0] ?? '');
    await attacker.ready;
    const run = async (duration: number) => {
      shown.clear();
      const health = new HealthWatch(principal as Principal);
      await principal?.forgetPeak();
      const parts = { hub, principal, generator };
      const before = await processesOf(parts);
      await Promise.race([generator?.change(options['per-second'], duration), health.lost]);
      const after = await processesOf(parts);
      return { delays: [...shown.delays], silentMs: await health.stop(), before, after };
    };
    print(`${agents} honest agents, ${options['per-second']} status changes a second: ${quiet} s alone …`);
    const alone = await run(quiet);
    print(`… and ${seconds} s beside a hostile agent`);
    attacker.begin();
    const beside = await run(seconds);
    const counts = await generator.count();

    print(`\n${latencyHeading}`);
    print(latencies('alone', alone.delays));
    print(latencies('beside a hostile agent', beside.delays));
    const ratio = percentile(beside.delays, 99) / percentile(alone.delays, 99);
    print(` p99 is ${ratio.toFixed(2)} times what it is without the hostile agent`);
    print(` The health endpoint was silent for at most ${alone.silentMs} ms alone, ${beside.silentMs} ms beside it`);
    print(` Honest agents: ${counts.connected} connected at the end, ${counts.losses} connections lost`);
    print(`\n${table(usageHeading('Alone'), usageRows(alone.before, alone.after))}`);
    print(`\n${table(usageHeading('Beside a hostile agent'), usageRows(beside.before, beside.after))}`);
    const rows = Array.from(attacker.done, ([name, { rounds, bytes }]) => [name, `${rounds}`, `${bytes}`]);
    print(`\n${table(['Attack', 'rounds', 'bytes sent'], rows)}`);
    ended.abort();
    await watching;
  } finally {
    ended.abort();
    await attacker?.stop();
    await generator?.stop();
    await principal?.stop();
    await hub.stop();
  }
}

/** Measures for how long the principal's health endpoint does not answer. */
class HealthWatch {
  /** Never resolves. @throws Error when the principal does not answer any more */
  readonly lost: Promise<never>;
  readonly #stop = new AbortController();
  readonly #running: Promise<number>;

  constructor(principal: Principal) {
    this.#running = this.#watch(principal);
    this.lost = this.#running.then(
      () => new Promise<never>(() => undefined),
      (error: unknown) => {
        throw new Error('the principal does not answer any more', { cause: error });
      },
    );
    this.lost.catch(() => undefined);
  }

  /** The longest time between a question and its answer, in milliseconds. */
  async stop(): Promise<number> {
    this.#stop.abort();
    return Math.round(await this.#running);
  }

  async #watch(principal: Principal): Promise<number> {
    let longest = 0;
    while (!this.#stop.signal.aborted) {
      const asked = performance.now();
      await principal.healthy();
      longest = Math.max(longest, performance.now() - asked);
      await sleep(pollMs);
    }
    return longest;
  }
}

/** The hostile agent's process and what it has done. */
class HostileProcess {
  readonly done = new Map<string, { rounds: number; bytes: number }>();
  readonly #process: ChildProcess;
  readonly #ready = Promise.withResolvers<void>();

  constructor(principal: Principal, hub: Hub, only: string) {
    const port = principal.server.split(':')[1] ?? '';
    this.#process = spawn('nice', ['-n', '19', process.execPath, script, port, hub.pki, hostile, only], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#process.on('exit', (code) => this.#ready.reject(new Error(`the hostile agent ended with code ${code}`)));
    this.#ready.promise.catch(() => undefined);
    if (this.#process.stdout !== null) {
      createInterface({ input: this.#process.stdout }).on('line', (line) => this.#take(line));
    }
  }

  /** Resolves when its attacks are prepared. @throws Error when it ends instead */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Begins to attack. */
  begin(): void {
    this.#process.stdin?.write('begin\n');
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const exited = once(this.#process, 'exit');
      this.#process.kill('SIGKILL');
      await exited;
    }
  }

  #take(line: string): void {
    const { attack, sent = 0 } = JSON.parse(line) as { attack?: string; sent?: number };
    if (attack === undefined) {
      this.#ready.resolve();
      return;
    }
    const { rounds, bytes } = this.done.get(attack) ?? { rounds: 0, bytes: 0 };
    this.done.set(attack, { rounds: rounds + 1, bytes: bytes + sent });
  }
}
