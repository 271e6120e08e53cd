import { expect, test } from 'vitest';
import { fleetNeeds, type MeasuredFleet, type UnitCosts, unitCosts, wallsOf } from './model.ts';

const costs: UnitCosts = {
  apiServer: { base: 500, perApplication: 50 },
  etcd: { base: 100, perApplication: 10 },
  principal: { base: 200, perAgent: 30, perApplication: 8 },
  connect: { perAgent: 0.01, perApplication: 0.001 },
  apiServerConnect: { perAgent: 0.002, perApplication: 0.0005 },
  change: 0.001,
  watch: 0.0004,
  apiServerChange: 0.002,
  etcdChange: 0.0005,
};

/** A fleet that costs exactly what the unit costs say. */
function measured(agents: number, perAgent: number): MeasuredFleet {
  const applications = agents * perAgent;
  const per = ({ perAgent: ofAgent, perApplication }: { perAgent: number; perApplication: number }) =>
    agents * ofAgent + applications * perApplication;
  return {
    agents,
    perAgent,
    apiServerBytes: 500 + applications * 50,
    etcdBytes: 100 + applications * 10,
    principalBytes: 200 + per(costs.principal),
    connectSeconds: per(costs.connect),
    apiServerConnectSeconds: per(costs.apiServerConnect),
    changeSeconds: costs.change,
    watchSeconds: costs.watch,
    apiServerChangeSeconds: costs.apiServerChange,
    etcdChangeSeconds: costs.etcdChange,
  };
}

const close = (value: unknown): unknown =>
  typeof value === 'number'
    ? Number(value.toPrecision(6))
    : Object.fromEntries(Object.entries(value as object).map(([key, part]) => [key, close(part)]));

test('unit costs are found again in three fleets', () => {
  const engine = { agents: 10, perAgent: 10, objectBytes: 600, engineBytes: 200 };
  const found = unitCosts(measured(40, 10), measured(40, 100), measured(240, 10), engine);
  const { apiServer, etcd, ...others } = found;
  expect(close({ ...others, apiServer: apiServer.perApplication, etcd: etcd.perApplication })).toMatchObject(
    close({
      principal: costs.principal,
      connect: costs.connect,
      apiServerConnect: costs.apiServerConnect,
      change: costs.change,
      watch: costs.watch,
      apiServer: 50,
      etcd: 10,
    }) as object,
  );
});

test('more replicas share agents and sessions, and each keeps all Applications and sees all changes', () => {
  const fleet = { clusters: 100, applications: 1_000, changesPerSecond: 100 };
  const [one, four] = [fleetNeeds({ ...fleet, replicas: 1 }, costs), fleetNeeds({ ...fleet, replicas: 4 }, costs)];
  expect([one.principalBytes, four.principalBytes]).toEqual([200 + 8_000 + 3_000, 200 + 8_000 + 750]);
  expect(one.principalProcessors).toBeCloseTo(0.1);
  expect(four.principalProcessors).toBeCloseTo(0.04 + 0.015);
  expect(one.connectSeconds / four.connectSeconds).toBeCloseTo(4);
  expect([one.apiServerBytes, one.etcdBytes]).toEqual([50_500, 10_100]);
});

test('a wall is where a need reaches its limit, and the nearest comes first', () => {
  const fleet = { clusters: 100, applications: 1_000, replicas: 1, changesPerSecond: 100 };
  const walls = wallsOf(fleet, costs);
  expect(walls[0]).toMatchObject({ part: 'processor of each principal' });
  expect(walls[0]?.applications).toBeCloseTo(7_000);
  expect(walls.map(({ applications }) => applications)).toEqual(
    walls.map(({ applications }) => applications).toSorted((a, b) => a - b),
  );
});
