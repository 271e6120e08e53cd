import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { benchOptions } from '../options.ts';
import type { Plot } from '../report/plots.ts';
import { svgOf } from '../report/svg.ts';
import { print, table } from '../table.ts';
import type { EngineFigures } from './engine.ts';
import { fleetNeeds, type MeasuredFleet, type PlannedFleet, type UnitCosts, unitCosts, wallsOf } from './model.ts';
import { measureFleet, type SmallFleet } from './units.ts';

const help = `Usage: npm run bench -- plan [--clusters N] [--applications N] [--replicas N] [--changes-per-second N]
                                [--quick] [--from FILE] [--output FOLDER]

What a fleet needs that this machine cannot hold. Three small fleets on a real API server give the unit costs of API server, etcd
and principal; the principal's engine, as it is, runs the whole fleet in memory, at four sizes. Then it is told what the fleet
needs, and which limit is reached first if it grows on.

  --clusters N             (10000)
  --applications N         of all clusters together (500000)
  --replicas N             of the principal (3)
  --changes-per-second N   of Applications on the hub, by users and by reports (500)
  --quick                  a tenth of the sizes in the engine
  --from FILE              measures nothing: takes the figures of an earlier run (plan.json)
  --output FOLDER          plan.json and plots go there (dist/bench)
`;

const few: SmallFleet = { agents: 40, perAgent: 10 };
const many: SmallFleet = { agents: 40, perAgent: 200 };
const wide: SmallFleet = { agents: 240, perAgent: 10 };
const parts = [0.1, 0.2, 0.5, 1];
const changesOfEngine = 5_000;
const heapMegabytes = 14_000;

interface Figures {
  readonly fleets: readonly MeasuredFleet[];
  readonly engine: readonly EngineFigures[];
}

/** Runs the benchmark, prints its tables and writes its plots. */
export async function benchPlan(args: string[]): Promise<void> {
  const options = benchOptions(args, help, {
    clusters: 10_000,
    applications: 500_000,
    replicas: 3,
    'changes-per-second': 500,
    quick: false,
    from: '',
    output: 'dist/bench',
  });
  if (options === undefined) {
    return;
  }
  const fleet: PlannedFleet = { ...options, changesPerSecond: options['changes-per-second'] };
  const figures = options.from === '' ? await measure(fleet, options.quick) : await readFigures(options.from);
  const output = resolve(options.output);
  await mkdir(output, { recursive: true });
  await writeFile(join(output, 'plan.json'), `${JSON.stringify(figures, null, 2)}\n`);
  for (const [name, plot] of Object.entries(tell(fleet, figures))) {
    await writeFile(join(output, `plan-${name}.svg`), svgOf(plot));
  }
  print(`\n${output}`);
}

async function measure(fleet: PlannedFleet, isQuick: boolean): Promise<Figures> {
  const fleets: MeasuredFleet[] = [];
  for (const small of [few, many, wide]) {
    fleets.push({ ...small, ...(await measureFleet(small)) });
  }
  const engine: EngineFigures[] = [];
  const perAgent = Math.max(1, Math.round(fleet.applications / fleet.clusters));
  for (const part of parts) {
    const agents = Math.max(2, Math.round(fleet.clusters * part * (isQuick ? 0.1 : 1)));
    print(`${agents} agents with ${perAgent} Applications each, in the engine …`);
    engine.push(await engineOf({ agents, perAgent }));
  }
  return { fleets, engine };
}

async function engineOf({ agents, perAgent }: SmallFleet): Promise<EngineFigures> {
  const script = new URL('./engine-process.ts', import.meta.url).pathname;
  const changes = Math.min(changesOfEngine, agents * perAgent);
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    `--max-old-space-size=${heapMegabytes}`,
    script,
    JSON.stringify({ agents, perAgent, changes }),
  ]);
  return JSON.parse(stdout) as EngineFigures;
}

async function readFigures(file: string): Promise<Figures> {
  return JSON.parse(await readFile(file, 'utf8')) as Figures;
}

/** Prints what was found. Returns the plots by their names. */
function tell(fleet: PlannedFleet, { fleets, engine }: Figures): Record<string, Plot> {
  const [first, second, third] = fleets;
  const largest = engine.at(-1);
  if (first === undefined || second === undefined || third === undefined || largest === undefined) {
    throw new Error('the figures are not complete');
  }
  const costs = unitCosts(first, second, third, largest);
  print(`\n${table(['The engine, by size of the fleet', ...engineHeading], engine.map(engineRow))}`);
  print(`\n${table(['What one costs', 'Application', 'agent', 'change'], unitRows(costs))}`);
  const sizes = [0.02, 0.1, 0.3, 1].map((part) => ({
    ...fleet,
    clusters: Math.round(fleet.clusters * part),
    applications: Math.round(fleet.applications * part),
    changesPerSecond: fleet.changesPerSecond * part,
  }));
  print(
    `\n${table(
      needsHeading,
      sizes.map((size) => needsRow(size, costs)),
    )}`,
  );
  const alone = [1, 2, 3, 6].map((replicas) => ({ ...fleet, replicas }));
  print(
    `\n${table(
      needsHeading,
      alone.map((size) => needsRow(size, costs)),
    )}`,
  );
  const walls = wallsOf(fleet, costs);
  print(
    `\n${table(
      ['First limits if all grows alike', 'limit', 'Applications', 'clusters'],
      walls.map(({ part, limit, applications }) => [
        part,
        limit,
        rounded(applications),
        rounded((applications * fleet.clusters) / fleet.applications),
      ]),
    )}`,
  );
  return {
    engine: {
      title: 'One change in the engine, by Applications in the fleet',
      unit: 'µs',
      bars: engine.map((one) => ({
        label: rounded(one.agents * one.perAgent),
        tone: 'own',
        value: (one.changeSeconds / one.changes) * 1e6,
      })),
    },
    memory: {
      title: `Memory for ${rounded(fleet.applications)} Applications of ${rounded(fleet.clusters)} clusters`,
      unit: 'GiB',
      bars: memoryBars(fleet, costs),
    },
    walls: {
      title: 'Applications on one hub at the first limits',
      unit: 'thousand',
      bars: walls
        .filter(({ applications }) => Number.isFinite(applications))
        .map(({ part, limit, applications }) => ({
          label: `${part} (${limit})`,
          tone: 'own',
          value: applications / 1_000,
        })),
    },
  };
}

const engineHeading = ['objects', 'engine', 'each', 'all connect', 'one returns', 'one change', 'of it collector'];

function engineRow(one: EngineFigures): string[] {
  const total = one.agents * one.perAgent;
  return [
    `${rounded(total)} of ${rounded(one.agents)} agents`,
    gibibytes(one.objectBytes),
    gibibytes(one.engineBytes),
    kibibytes((one.objectBytes + one.engineBytes) / total),
    `${one.connectSeconds.toFixed(1)} s`,
    `${(one.returnSeconds * 1000).toFixed(1)} ms`,
    `${((one.changeSeconds / one.changes) * 1e6).toFixed(0)} µs`,
    `${((one.collectorSeconds / one.changes) * 1e6).toFixed(0)} µs`,
  ];
}

function unitRows(costs: UnitCosts): string[][] {
  const ms = (value: number) => `${(value * 1000).toFixed(2)} ms`;
  return [
    ['memory of the API server', kibibytes(costs.apiServer.perApplication), '', ''],
    ['database of etcd', kibibytes(costs.etcd.perApplication), '', ''],
    [
      'memory of a principal',
      kibibytes(costs.principal.perApplication),
      `${kibibytes(costs.principal.perAgent)} where it is`,
      '',
    ],
    [
      'CPU of the principal that serves the agent',
      `${ms(costs.connect.perApplication)} at first`,
      `${ms(costs.connect.perAgent)} at first`,
      ms(costs.change),
    ],
    ['CPU of each other principal', '', '', ms(costs.watch)],
    [
      'CPU of the API server',
      `${ms(costs.apiServerConnect.perApplication)} at first`,
      `${ms(costs.apiServerConnect.perAgent)} at first`,
      ms(costs.apiServerChange),
    ],
    ['CPU of etcd', '', '', ms(costs.etcdChange)],
  ];
}

const needsHeading = [
  'Fleet',
  'API server',
  'its CPUs',
  'etcd',
  'its CPUs',
  'each principal',
  'its CPUs',
  'all connect',
];

function needsRow(fleet: PlannedFleet, costs: UnitCosts): string[] {
  const needs = fleetNeeds(fleet, costs);
  const { clusters, applications, replicas, changesPerSecond } = fleet;
  return [
    `${rounded(clusters)} clusters, ${rounded(applications)} Applications, ${replicas} ${replicas === 1 ? 'principal' : 'principals'}, ${rounded(changesPerSecond)}/s`,
    gibibytes(needs.apiServerBytes),
    needs.apiServerProcessors.toFixed(2),
    gibibytes(needs.etcdBytes),
    needs.etcdProcessors.toFixed(2),
    gibibytes(needs.principalBytes),
    needs.principalProcessors.toFixed(2),
    `${Math.max(needs.connectSeconds, needs.apiServerConnectSeconds).toFixed(0)} s`,
  ];
}

function memoryBars(fleet: PlannedFleet, costs: UnitCosts): Plot['bars'] {
  const needs = fleetNeeds(fleet, costs);
  const bar = (label: string, bytes: number) => ({ label, tone: 'own' as const, value: bytes / 2 ** 30 });
  return [
    bar('API server', needs.apiServerBytes),
    bar('each principal', needs.principalBytes),
    bar('database of etcd', needs.etcdBytes),
  ];
}

const rounded = (value: number) => (Number.isFinite(value) ? Math.round(value).toLocaleString('en') : 'no limit');
const gibibytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
const kibibytes = (bytes: number) => `${(bytes / 2 ** 10).toFixed(1)} KiB`;
