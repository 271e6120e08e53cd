import type { EngineFigures } from './engine.ts';
import type { FleetCosts, SmallFleet } from './units.ts';

/** What a fleet costs for each part of it. Bytes, and seconds of one processor of the machine that measured. */
export interface UnitCosts {
  readonly apiServer: { readonly base: number; readonly perApplication: number };
  readonly etcd: { readonly base: number; readonly perApplication: number };
  readonly principal: { readonly base: number; readonly perAgent: number; readonly perApplication: number };
  /** Processor time until an agent that comes with nothing is in sync: for itself, and for each of its Applications. */
  readonly connect: { readonly perAgent: number; readonly perApplication: number };
  readonly apiServerConnect: { readonly perAgent: number; readonly perApplication: number };
  /** For each change: of the replica that serves the agent, of each other one, of the API server and of etcd. */
  readonly change: number;
  readonly watch: number;
  readonly apiServerChange: number;
  readonly etcdChange: number;
}

/** A fleet to plan for. */
export interface PlannedFleet {
  readonly clusters: number;
  readonly applications: number;
  readonly replicas: number;
  /** Changes of Applications on the hub in a second, by users and by reports of agents. */
  readonly changesPerSecond: number;
}

/** What a fleet needs. Bytes; processors as a fraction of one of the machine that measured; seconds of the clock. */
export interface FleetNeeds {
  readonly apiServerBytes: number;
  readonly etcdBytes: number;
  /** Of each replica. */
  readonly principalBytes: number;
  /** Of the busiest replica, when agents are spread evenly. One replica uses one processor. */
  readonly principalProcessors: number;
  readonly apiServerProcessors: number;
  readonly etcdProcessors: number;
  /** Until all agents are in sync when all come at once with nothing, if only the principals limit that. */
  readonly connectSeconds: number;
  /** The same if only the API server does, with as many processors as it uses then. */
  readonly apiServerConnectSeconds: number;
}

/** A measured fleet. */
export type MeasuredFleet = SmallFleet & FleetCosts;

/**
 * Unit costs from three fleets: `many` differs from `few` in Applications alone, `wide` in agents alone. What the engine keeps of
 * an Application comes from the engine, which tells it exactly.
 */
export function unitCosts(
  few: MeasuredFleet,
  many: MeasuredFleet,
  wide: MeasuredFleet,
  engine: Pick<EngineFigures, 'agents' | 'perAgent' | 'objectBytes' | 'engineBytes'>,
): UnitCosts {
  const total = ({ agents, perAgent }: SmallFleet) => agents * perAgent;
  const lineOf = (cost: (fleet: MeasuredFleet) => number) => {
    const perApplication = Math.max(0, (cost(many) - cost(few)) / (total(many) - total(few)));
    const rest = (fleet: MeasuredFleet) => cost(fleet) - total(fleet) * perApplication;
    const perAgent = Math.max(0, (rest(wide) - rest(few)) / (wide.agents - few.agents));
    return { base: Math.max(0, rest(few) - few.agents * perAgent), perAgent, perApplication };
  };
  const perObject = (engine.objectBytes + engine.engineBytes) / (engine.agents * engine.perAgent);
  const principal = lineOf(({ principalBytes, ...fleet }) => principalBytes - total(fleet) * perObject);
  const apiServer = lineOf(({ apiServerBytes }) => apiServerBytes);
  const etcd = lineOf(({ etcdBytes }) => etcdBytes);
  const mean = (cost: (fleet: MeasuredFleet) => number) => (cost(few) + cost(many) + cost(wide)) / 3;
  return {
    apiServer,
    etcd,
    principal: { base: principal.base, perAgent: principal.perAgent, perApplication: perObject },
    connect: lineOf(({ connectSeconds }) => connectSeconds),
    apiServerConnect: lineOf(({ apiServerConnectSeconds }) => apiServerConnectSeconds),
    change: mean(({ changeSeconds }) => changeSeconds),
    watch: mean(({ watchSeconds }) => watchSeconds),
    apiServerChange: mean(({ apiServerChangeSeconds }) => apiServerChangeSeconds),
    etcdChange: mean(({ etcdChangeSeconds }) => etcdChangeSeconds),
  };
}

/** What a fleet needs, by the unit costs. */
export function fleetNeeds(
  { clusters, applications, replicas, changesPerSecond }: PlannedFleet,
  costs: UnitCosts,
): FleetNeeds {
  const served = 1 / replicas;
  const connect = costs.connect.perAgent * clusters + costs.connect.perApplication * applications;
  return {
    apiServerBytes: costs.apiServer.base + costs.apiServer.perApplication * applications,
    etcdBytes: costs.etcd.base + costs.etcd.perApplication * applications,
    principalBytes:
      costs.principal.base +
      costs.principal.perApplication * applications +
      costs.principal.perAgent * clusters * served,
    // Every replica sees every change, and one of them has the agent.
    principalProcessors: changesPerSecond * (costs.watch + Math.max(0, costs.change - costs.watch) * served),
    apiServerProcessors: changesPerSecond * (costs.apiServerChange + (replicas - 1) * watchShare(costs)),
    etcdProcessors: changesPerSecond * costs.etcdChange,
    connectSeconds: connect * served,
    apiServerConnectSeconds:
      costs.apiServerConnect.perAgent * clusters + costs.apiServerConnect.perApplication * applications,
  };
}

/** The API server was measured with two watches of its changes; each further one costs it at most as much as one that reads it. */
function watchShare({ watch, apiServerChange }: UnitCosts): number {
  return Math.min(watch, apiServerChange) / 2;
}

/** A limit of a part, and how many Applications it takes to reach it. */
export interface Wall {
  readonly part: string;
  readonly limit: string;
  readonly applications: number;
}

/** Limits that are usual. Bytes, and a fraction of a processor. */
export const usualLimits = {
  /** The largest database that etcd's documentation recommends; the default is 2 GiB. */
  etcdBytes: 8 * 2 ** 30,
  /** Control planes of clouds rarely have more. */
  apiServerBytes: 64 * 2 ** 30,
  principalBytes: 16 * 2 ** 30,
  /** Above this, delays begin to grow. */
  principalProcessors: 0.7,
} as const;

/** The walls of a fleet that grows with the same proportions, the nearest first. */
export function wallsOf(fleet: PlannedFleet, costs: UnitCosts): Wall[] {
  const reaches = (value: (needs: FleetNeeds) => number, limit: number) => {
    // Every need is a line: two points give it.
    const at = (factor: number) =>
      value(
        fleetNeeds(
          {
            ...fleet,
            clusters: fleet.clusters * factor,
            applications: fleet.applications * factor,
            changesPerSecond: fleet.changesPerSecond * factor,
          },
          costs,
        ),
      );
    const [base, one] = [at(0), at(1)];
    return one <= base ? Number.POSITIVE_INFINITY : (fleet.applications * (limit - base)) / (one - base);
  };
  const gib = (bytes: number) => `${bytes / 2 ** 30} GiB`;
  const { etcdBytes, apiServerBytes, principalBytes, principalProcessors } = usualLimits;
  return [
    { part: 'etcd, default quota', limit: '2 GiB', applications: reaches((needs) => needs.etcdBytes, 2 * 2 ** 30) },
    {
      part: 'etcd, largest quota that it recommends',
      limit: gib(etcdBytes),
      applications: reaches((needs) => needs.etcdBytes, etcdBytes),
    },
    {
      part: 'memory of the API server',
      limit: gib(apiServerBytes),
      applications: reaches((needs) => needs.apiServerBytes, apiServerBytes),
    },
    {
      part: 'memory of each principal',
      limit: gib(principalBytes),
      applications: reaches((needs) => needs.principalBytes, principalBytes),
    },
    {
      part: 'processor of each principal',
      limit: `${principalProcessors} of one`,
      applications: reaches((needs) => needs.principalProcessors, principalProcessors),
    },
  ].sort((a, b) => a.applications - b.applications);
}
