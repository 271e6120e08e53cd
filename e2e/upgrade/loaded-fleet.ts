import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../lib/base/testing.ts';
import { BusyController, type ChaosFinding, checkApplications, Ledger, type SeenSides, Users } from '../chaos/index.ts';
import {
  namespace,
  type Originals,
  type Program,
  pairApplications,
  pairAppProjects,
  permissiveProject,
  startPair,
} from '../pair/index.ts';
import { Random } from '../random/index.ts';
import { CopyWatch } from './copy-watch.ts';

/** How a loaded fleet is started. */
export interface LoadedFleetOptions {
  readonly executables: Originals;
  readonly seed: number;
  /** What users try to change, all agents together. */
  readonly attemptsPerSecond: number;
  /** Applications of each agent at the start; at most twice as many later. */
  readonly applications: number;
}

/** What happened while a fleet was under load. */
export interface UpgradeLoad {
  /** Changes that users made. */
  readonly changes: number;
  readonly seconds: number;
  /** The longest time that a change took from its source to the copy. */
  readonly longestMs: number;
}

/** A hub with a managed and an autonomous agent, whose users and clusters can be made busy. */
export interface LoadedFleet {
  readonly principal: Program;
  readonly agents: Readonly<Record<'managed' | 'autonomous', Program>>;
  /** Syncs that were asked for until now. */
  readonly syncs: number;
  /** Users are busy before, during and after `act`; resolves when all their changes have arrived. */
  during(act: () => Promise<void>): Promise<UpgradeLoad>;
  /** What is not as it must be, once all is quiet or it has been waited long enough for that. */
  findings(): Promise<readonly ChaosFinding[]>;
  stop(): Promise<void>;
}

const calmMs = 5_000;
const mostQuietMs = 100_000;
const healthPerSecond = 4;

/** Starts the fleet, with Applications. Connected when it resolves. */
export async function startLoadedFleet(options: LoadedFleetOptions): Promise<LoadedFleet> {
  const { executables, attemptsPerSecond, applications } = options;
  const random = new Random(options.seed);
  // Users ask for syncs to revisions of their own.
  const environment = { ARGOCD_AGENT_OPERATION_REVISIONS: 'any' };
  const pair = await startPair({ name: 'cluster1', originals: executables, environment });
  const running = new AbortController();
  const stop = async () => {
    running.abort();
    await pair.stop();
  };
  try {
    const other = await pair.addAgent({ name: 'cluster2', mode: 'autonomous' });
    const agents = [
      { name: pair.name, mode: 'managed' as const, cluster: pair.managed },
      { name: other.name, mode: other.mode, cluster: other.cluster },
    ];
    for (const { client } of [pair.hub, other.cluster]) {
      await client.create(pairAppProjects, { metadata: { name: 'default', namespace }, spec: permissiveProject });
    }
    const ledger = new Ledger();
    const watches = agents.map(({ name: agent, mode, cluster: { client } }) => {
      const at = mode === 'managed' ? { client, namespace } : { client: pair.hub.client, namespace: agent };
      return new CopyWatch({ agent, ledger, ...at });
    });
    const numbers = () => new Random(random.integer(0, 2 ** 31 - 1));
    const controllers = agents.map(
      ({ name: agent, cluster: { client } }) => new BusyController({ agent, client, random: numbers() }),
    );
    const users = new Users({
      stage: { hub: pair.hub, agents },
      ledger,
      random: numbers(),
      most: 2 * applications,
      everyMs: (1000 * agents.length) / attemptsPerSecond,
      accepted: (application) =>
        watches[agents.findIndex(({ name }) => name === application.agent)]?.accepted(application),
    });
    let failure: unknown;
    for (const one of [...watches, ...controllers]) {
      one.run(running.signal).catch((error: unknown) => {
        failure ??= running.signal.aborted ? undefined : error;
      });
    }
    const throwFailure = () => {
      if (failure !== undefined) {
        throw failure;
      }
    };

    const look = async (): Promise<ChaosFinding[]> => {
      const [onHub, ...onClusters] = await Promise.all(
        [pair.hub, ...agents.map(({ cluster }) => cluster)].map(({ client }) => client.list(pairApplications)),
      );
      return checkApplications(ledger, {
        agents: agents.map(({ name, mode }, index): SeenSides => {
          const mine = onHub?.filter(({ metadata }) => metadata.namespace === name) ?? [];
          return { name, mode, onHub: mine, onCluster: onClusters[index] ?? [] };
        }),
        runs: controllers.flatMap(({ runs }) => runs),
        goneCopies: [...watches, ...controllers].flatMap(({ goneCopies }) => goneCopies),
      });
    };
    const findings = async () => {
      let found: ChaosFinding[] = [];
      const began = performance.now();
      for (let clean = 0; clean < 2 && performance.now() - began < mostQuietMs; await sleep(500)) {
        throwFailure();
        found = await look();
        clean = found.every(({ isFinal }) => isFinal) ? clean + 1 : 0;
      }
      return found;
    };
    const changes = () => [...ledger.edits.values()].reduce((sum, count) => sum + count, 0);

    await users.begin(applications);
    return {
      principal: pair.principal,
      agents: { managed: pair.agent, autonomous: other.agent },
      get syncs() {
        return ledger.operations.length;
      },
      async during(act) {
        const load = new AbortController();
        const began = performance.now();
        const before = changes();
        for (const watch of watches) {
          watch.takeLongest();
        }
        const busy = Promise.all([
          users.run(load.signal),
          ...controllers.map((one) => one.changeHealth(healthPerSecond, load.signal)),
        ]);
        try {
          await Promise.race([
            busy,
            (async () => {
              await sleep(calmMs);
              await act();
              await sleep(calmMs);
            })(),
          ]);
        } finally {
          load.abort();
          await busy;
        }
        const seconds = (performance.now() - began) / 1000;
        await until(
          'all changes have arrived',
          () => {
            throwFailure();
            return watches.every(({ waiting }) => waiting === 0);
          },
          { timeoutMs: mostQuietMs },
        );
        const longestMs = Math.max(...watches.map((watch) => watch.takeLongest()));
        return { changes: changes() - before, seconds, longestMs };
      },
      findings,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
