import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../random/index.ts';
import { refuseNothing } from './admission.ts';
import { BusyController } from './application-controller.ts';
import { isGenerated } from './application-sets.ts';
import { drawFaults, type Fault } from './faults.ts';
import { HubOperator } from './hub-operator.ts';
import { inflict } from './inflict.ts';
import { type ChaosFinding, checkInvariants, type Ledgers } from './invariants.ts';
import { Ledger } from './ledger.ts';
import { type Lookout, lookAround } from './look.ts';
import { Onlooker } from './onlooker.ts';
import { type ChaosStage, startStage } from './stage.ts';
import { tracesOf } from './traces.ts';
import { Users } from './users.ts';
import type { Verdict } from './verdict.ts';

/** How a run is made. */
export interface ChaosOptions {
  readonly seed: number;
  /** How long faults happen. */
  readonly durationMs: number;
  /** Two hubs: the second one follows the first, and takes over. */
  readonly hubs: 1 | 2;
  /** Principals of each hub. */
  readonly replicas: number;
  readonly clusters: number;
  /** Applications of each agent at the start; at most twice as many later. */
  readonly applications: number;
  /** Mean time between two edits of one agent's Applications. */
  readonly editEveryMs: number;
  /** Mean time between two faults. */
  readonly faultEveryMs: number;
  /** Mean time between two failovers, with two hubs. */
  readonly failoverEveryMs: number;
  /** Where the logs of the programs go when something is found. */
  readonly logs: string;
  /** Gets a line about everything that happens. */
  readonly log: (line: string) => void;
}

/** How long everything may take to be as it must be when the faults are over. */
const quietMs = 300_000;
const healthPerSecond = 4;
const livePerSecond = 4;

/**
 * Starts a fleet of real processes, breaks it for a while under load, mends it, waits until all is quiet and compares what is
 * there with what was asked for.
 */
export async function runChaos(options: ChaosOptions): Promise<Verdict> {
  const began = performance.now();
  const log = (line: string) => options.log(`${clock(performance.now() - began)}  ${line}`);
  const random = new Random(options.seed);
  // Each part of a run has numbers of its own: what one takes changes nothing for the others.
  const numbers = () => new Random(random.integer(0, 2 ** 31 - 1));
  const [forFaults, forUsers, forStage, forLive, forOperator] = [numbers(), numbers(), numbers(), numbers(), numbers()];
  const stage = await startStage({ ...options, random: forStage, log });
  const stop = new AbortController();
  const load = new AbortController();
  const running: Promise<unknown>[] = [];
  const failures: string[] = [];
  /** Work beside the run; a failure of it ends the run. */
  const beside = (what: Promise<unknown>) =>
    running.push(
      what.catch((error: Error) => {
        if (!stop.signal.aborted) {
          failures.push(error.stack ?? error.message);
          load.abort();
        }
      }),
    );
  try {
    const ledgers: Ledgers = { ledger: new Ledger(), sets: new Ledger(), projects: new Ledger() };
    const { ledger } = ledgers;
    const { workloads } = ledger;
    const controllers = stage.agents.map(
      ({ name, cluster }) => new BusyController({ agent: name, client: cluster.client, random: numbers(), workloads }),
    );
    const live = new Onlooker(stage, forLive);
    await live.prepare();
    for (const one of controllers) {
      beside(one.run(stop.signal));
    }
    startAll(stage);
    stage.active.setController.start();
    const edits: string[] = [];
    const edited = (line: string) => edits.push(`${new Date().toISOString()} ${line}`);
    const users = new Users({
      stage,
      ...ledgers,
      isTakingAway: true,
      random: forUsers,
      most: 2 * options.applications,
      everyMs: options.editEveryMs,
      accepted: ({ agent, name, uid, spec }) => edited(`accepted: ${agent}/${name} ${uid} ${JSON.stringify(spec)}`),
      log: edited,
    });
    await users.begin(options.applications);
    const operator = new HubOperator({ stage, users, ...ledgers, random: forOperator, log });
    const lookout = { stage, controllers, live, operator, sets: ledgers.sets };
    const first = await quiet(lookout, ledgers, log);
    if (first.length > 0) {
      throw new Error(`the fleet does not even start:\n${first.map(({ what }) => what).join('\n')}`);
    }
    log('all is quiet; faults begin');

    const faults = drawFaults(forFaults, {
      durationMs: options.durationMs,
      everyMs: options.faultEveryMs,
      targets: targetsOf(stage),
    });
    beside(users.run(load.signal));
    beside(live.run(livePerSecond, load.signal));
    for (const one of controllers) {
      beside(one.changeHealth(healthPerSecond, load.signal));
    }
    const operating = stage.standby && operator.run(options.failoverEveryMs, load.signal);
    beside(Promise.resolve(operating));
    await breakThings(faults, options.durationMs, stage, load.signal, log);
    load.abort();
    log('faults are over');
    await operating;
    await Promise.all([...stage.hubs, ...stage.agents].map(({ cluster }) => refuseNothing(cluster.client)));
    startAll(stage);
    // Of what an AppProject does not permit, clusters keep what they have, and what was asked for waits.
    await users.openProjects();
    const over = performance.now();
    const findings = await quiet(lookout, ledgers, log, failures);
    const quietSeconds = (performance.now() - over) / 1000;
    for (const what of failures) {
      findings.push({ invariant: 'lost', what: `the run itself has failed: ${what}`, isFinal: true });
    }
    if (findings.length > 0) {
      await writeLogs(stage, edits, options.logs);
      log(`the programs’ logs, and users.log, are in ${options.logs}`);
    }
    const counts = [...ledger.edits].map(([what, count]) => `${what} ${count}`).join(', ');
    const memory = stage.parts.map(({ name, mostBytes }) => `${name} ${Math.round(mostBytes / 2 ** 20)}`).join(', ');
    return {
      seed: options.seed,
      findings,
      counts: [
        ['faults', String(faults.length)],
        ['edits', counts],
        ['syncs run', String(controllers.reduce((sum, { runs }) => sum + runs.length, 0))],
        ['workloads', workloadsText(ledger, controllers)],
        ...(stage.standby === undefined
          ? []
          : ([
              ['failovers', `${operator.planned} planned, ${operator.unplanned} after the death of the active hub`],
              ['edits that died with a hub', String(operator.undone)],
            ] as const)),
        ['live requests', `${live.answered} answered, ${live.failed} not`],
        ['most memory, MiB', memory],
      ],
      quietSeconds,
      traces: tracesOf(
        findings,
        stage.parts.map(({ name, program }) => ({ name, output: program.output })),
      ),
    };
  } finally {
    load.abort();
    stop.abort();
    await Promise.allSettled(running);
    await stage.stop();
  }
}

function workloadsText({ workloads }: Ledger, controllers: readonly BusyController[]): string {
  const removed = controllers.flatMap(({ removedWorkloads }) => removedWorkloads);
  const byUsers = removed.filter(({ agent, uid }) => workloads.isAsked(agent, uid)).length;
  const bySets = removed.filter(({ agent, uid, name }) => isGenerated(name) && !workloads.isAsked(agent, uid)).length;
  const unasked = removed.length - byUsers - bySets;
  return `${byUsers} removed as users asked for, ${bySets} of what ApplicationSets made, ${unasked} unasked`;
}

function startAll({ parts }: ChaosStage): void {
  for (const part of parts) {
    part.start();
  }
}

async function breakThings(
  faults: readonly Fault[],
  durationMs: number,
  stage: ChaosStage,
  signal: AbortSignal,
  log: (line: string) => void,
): Promise<void> {
  const began = performance.now();
  const wait = (atMs: number) =>
    sleep(Math.max(0, began + atMs - performance.now()), undefined, { signal }).catch(() => undefined);
  await Promise.all(
    faults.map(async (fault) => {
      await wait(fault.atMs);
      if (!signal.aborted) {
        log(`${fault.kind}: ${fault.target}, for ${(fault.forMs / 1000).toFixed(1)} s`);
        await inflict(fault, stage);
      }
    }),
  );
  await wait(durationMs);
}

function targetsOf({ hubs, principals, agents }: ChaosStage) {
  return {
    principal: principals.map(({ part }) => part.name),
    agent: agents.map(({ name }) => name),
    cluster: [...hubs, ...agents].map(({ cluster }) => cluster.name),
    // On an autonomous cluster are no copies.
    'place of copies': [...hubs, ...agents.filter(({ mode }) => mode === 'managed')].map(({ cluster }) => cluster.name),
    hub: hubs.length > 1 ? hubs.map(({ name }) => name) : [],
    pair: hubs.length > 1 ? ['the hubs'] : [],
    fleet: ['the fleet'],
  };
}

/**
 * Waits until nothing is found twice in a row, or for as long as may be; what is found then. Before each look the operator does what
 * the hub asks for.
 */
async function quiet(
  lookout: Lookout,
  ledgers: Ledgers,
  log: (line: string) => void,
  failures: readonly string[] = [],
): Promise<ChaosFinding[]> {
  const began = performance.now();
  for (let clean = 0, told = 10_000; ; ) {
    const findings = await lookout.operator
      .deleteKeptCopies()
      .then(() => lookAround(lookout))
      .then(
        (view) => checkInvariants(ledgers, view),
        (error: Error): ChaosFinding[] => [
          { invariant: 'lost', what: `cannot look: ${error.message}`, isFinal: false },
        ],
      );
    clean = findings.every(({ isFinal }) => isFinal) ? clean + 1 : 0;
    const waited = performance.now() - began;
    if (clean === 2 || waited > quietMs || failures.length > 0) {
      return findings;
    }
    if (waited > told) {
      told += 10_000;
      log(`${findings.length} findings are left, such as: ${findings.find(({ isFinal }) => !isFinal)?.what}`);
    }
    await sleep(500);
  }
}

async function writeLogs(stage: ChaosStage, edits: readonly string[], folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'users.log'), `${edits.join('\n')}\n`);
  const write = ({ name, program }: ChaosStage['parts'][number]) =>
    writeFile(join(folder, `${name.replaceAll(' ', '-')}.log`), program.output);
  await Promise.all([...stage.parts, ...stage.hubs.map(({ setController }) => setController)].map(write));
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 100) / 10;
  return `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${(seconds % 60).toFixed(1).padStart(4, '0')}`;
}
