import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import {
  fleetGitOpsClusters,
  guestbookValues,
  type RunningFleet,
  selectedClusters,
  startFleet,
} from '../fleet/index.ts';
import { ocmManifestWorks } from '../ocm/index.ts';
import { Random } from '../random/index.ts';
import { waitForObjects } from '../testbed/index.ts';
import { victimNames, victimOf } from './victims.ts';

// As survival.e2e.test.ts, but the fleet is being enrolled: the programs have hardly begun when they are killed.
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const random = new Random(seed);

let fleet: RunningFleet;
beforeAll(async () => {
  fleet = await startFleet({ labels: selectedClusters });
});
afterAll(() => fleet?.stop());

test(`a fleet enrolls whatever is killed meanwhile (SEED=${seed})`, async () => {
  onTestFailed(async () => console.error(`SEED=${seed}\n${await fleet.logs(80)}`));
  await fleet.install(guestbookValues);
  const plans = random.shuffle(victimNames).map((name) => ({
    victim: victimOf(fleet, name),
    after: random.integer(500, 8_000),
    down: random.integer(0, 1_000),
  }));
  await Promise.all(
    plans.map(async ({ victim, after, down }) => {
      await sleep(after);
      await victim.kill();
      await sleep(down);
      await victim.revive();
    }),
  );
  await waitForObjects(
    fleet.hub.client,
    fleetGitOpsClusters,
    { timeoutMs: 400_000 },
    ([gitOpsCluster]) =>
      gitOpsCluster?.status?.clusters?.available === 2 &&
      gitOpsCluster.status.clusters.connected === 2 &&
      gitOpsCluster.status.conditions?.find(({ type }) => type === 'Ready')?.status === 'True',
  );
  for (const name of fleet.members.keys()) {
    const works = await fleet.hub.client.list(ocmManifestWorks, { namespace: name });
    expect(new Set(works.map(({ metadata }) => metadata.name)).size).toBe(works.length);
    expect(works.length).toBeGreaterThanOrEqual(3);
  }
});
