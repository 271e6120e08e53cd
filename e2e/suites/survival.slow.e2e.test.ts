import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { configMaps, deployments, secrets } from '../../lib/kube/index.ts';
import {
  type FleetApplication,
  fleetApplications,
  fleetGitOpsClusters,
  guestbookValues,
  isSyncedAndHealthy,
  type RunningFleet,
  selectedClusters,
  startFleet,
} from '../fleet/index.ts';
import { ocmManifestWorks } from '../ocm/index.ts';
import { Random } from '../random/index.ts';
import { persist, waitForObjects } from '../testbed/index.ts';
import { agreement } from './agreement.ts';
import { Traffic, variantFiles } from './traffic.ts';
import { victimNames, victimOf } from './victims.ts';

// Everything is killed at random moments while users go on writing: afterwards the hub, the managed clusters and what
// the users were told must be the same. SEED repeats the same kills and much the same writes.
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const random = new Random(seed);
const order = random.shuffle(victimNames);
const rounds = [
  ...Array.from({ length: Math.ceil(order.length / 3) }, (_, i) => order.slice(3 * i, 3 * i + 3)),
  ['principal', 'controller', 'API server of hub', 'etcd of hub'],
  ['agent of cluster1', 'API server of cluster1', 'etcd of cluster1', 'principal'],
].map((victims, i) => ({ round: i + 1, victims, names: victims.join(', ') }));

let fleet: RunningFleet;
let traffic: Traffic;
let copies = new Map<string, string>();
let made: object;

beforeAll(async () => {
  console.log(`SEED=${seed}`);
  fleet = await startFleet({ labels: selectedClusters });
  await fleet.git.commit('variants', variantFiles, 'All colours');
  await fleet.install(guestbookValues);
  await isReady().catch(async (error: unknown) => {
    console.error(await fleet.logs(80));
    throw error;
  });
  traffic = new Traffic(fleet, random, fleet.git.url('variants'));
  made = await whatTheControllerMade();
});
afterAll(() => fleet?.stop());
beforeEach(() => onTestFailed(async () => console.error(`SEED=${seed}\n${fleet ? await fleet.logs(80) : 'no fleet'}`)));

describe(`whatever is killed (SEED=${seed})`, () => {
  test.each(rounds)('round $round: $names', async ({ victims }) => {
    const quiet = new AbortController();
    const writing = traffic.run(quiet.signal);
    const plans = victims.map((name) => ({
      victim: victimOf(fleet, name),
      after: random.integer(300, 3_000),
      down: random.integer(0, 2_000),
    }));
    // A write that fails for good must not leave the others running unseen.
    await Promise.race([
      writing,
      Promise.all(
        plans.map(async ({ victim, after, down }) => {
          await sleep(after);
          await victim.kill();
          await sleep(down);
          await victim.revive();
        }),
      ),
    ]);
    await sleep(random.integer(100, 1_000));
    quiet.abort();
    await writing;

    const begin = performance.now();
    const since = () => `${Math.round(performance.now() - begin)} ms`;
    const now = await agreement(fleet, traffic.wanted, { allowLeaving: true });
    const disturbed = traffic.takeDisturbed();
    const replaced = [...copies].filter(
      ([name, uid]) => now.has(name) && now.get(name) !== uid && !disturbed.has(name),
    );
    expect(replaced, 'copies that were made anew though nobody deleted them').toEqual([]);
    copies = now;
    const agreed = since();
    await isReady();
    console.log(`agreed after ${agreed}, ready after ${since()}`);
    expect(await whatTheControllerMade()).toEqual(made);
  });

  test('afterwards everything works: what was written is deployed', async () => {
    onTestFailed(async () => console.error(await unfinished()));
    await agreement(fleet, traffic.wanted);
    console.log(`writes: ${JSON.stringify(traffic.done)}`);
    for (const name of traffic.wanted.keys()) {
      await fleet.hub.client.mergePatch(
        fleetApplications,
        { namespace: 'argocd', name },
        {
          metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } },
          spec: { syncPolicy: { automated: { prune: true, selfHeal: true }, syncOptions: ['CreateNamespace=true'] } },
        },
      );
    }
    const all = await waitForObjects(
      fleet.hub.client,
      fleetApplications,
      { namespace: 'argocd', timeoutMs: 400_000 },
      (found) => {
        for (const one of found.filter(isForgottenByArgoCd)) {
          void syncAgain(one.metadata.name);
        }
        return found.length === traffic.wanted.size && found.every(isSyncedAndHealthy);
      },
    );
    for (const { metadata, spec } of all) {
      const { cluster } = fleet.members.get(spec?.destination?.name ?? '') ?? {};
      const deployed = await cluster?.client.get(configMaps, { namespace: metadata.name, name: 'variant' });
      expect(deployed?.data, metadata.name).toEqual({ text: spec?.source?.path });
    }
  });
});

/**
 * Whether an operation runs for ever. When an Application is deleted and made again in the middle of a sync, the end of the
 * former one's sync takes away the `operation` of the new one, since Argo CD goes by the name alone.
 */
function isForgottenByArgoCd({ operation, status }: FleetApplication): boolean {
  const state = status?.operationState as { phase?: string } | undefined;
  const hasFailed = status?.conditions?.some(({ type }) => type === 'SyncError') ?? false;
  return operation === undefined && state?.phase === 'Running' && hasFailed;
}

const synced = new Set<string>();

/** What a user does about it, once. */
async function syncAgain(name: string): Promise<void> {
  if (synced.has(name)) {
    return;
  }
  synced.add(name);
  console.log(`Argo CD has forgotten the sync of ${name}; it is asked for another one`);
  const operation = { sync: { revision: 'main', syncOptions: ['CreateNamespace=true'] } };
  await persist(() => fleet.hub.client.mergePatch(fleetApplications, { namespace: 'argocd', name }, { operation }));
}

/** The Applications that are not deployed, as the hub and their clusters see them. */
async function unfinished(): Promise<string> {
  const late = (await fleet.hub.client.list(fleetApplications)).filter((one) => !isSyncedAndHealthy(one));
  const seen = late.map(async ({ metadata: { name }, spec, status }) => {
    const cluster = spec?.destination?.name ?? '';
    const copy = await fleet.members.get(cluster)?.cluster.client.get(fleetApplications, { namespace: 'argocd', name });
    return JSON.stringify({ name, hub: { spec, status }, [cluster]: copy });
  });
  return (await Promise.all(seen)).join('\n');
}

/** Resolves when the fleet is as after its enrolment, as far as the hub tells. */
async function isReady(): Promise<void> {
  await waitForObjects(fleet.hub.client, fleetGitOpsClusters, { timeoutMs: 300_000 }, ([found]) => {
    const ready = found?.status?.conditions?.find(({ type }) => type === 'Ready');
    return (
      ready?.status === 'True' && found?.status?.clusters?.connected === 2 && found.status.clusters?.available === 2
    );
  });
}

/** What must be made once and stay: certificates, works, cluster Secrets and what was delivered. */
async function whatTheControllerMade(): Promise<object> {
  const { client } = fleet.hub;
  const [credentials, works, delivered] = await Promise.all([
    persist(() => client.list(secrets, { labelSelector: 'app.kubernetes.io/managed-by=argocd-pull-integration' })),
    persist(() => client.list(ocmManifestWorks)),
    Promise.all(
      [...fleet.members.values()].map(({ cluster }) =>
        persist(() => cluster.client.list(deployments, { namespace: 'argocd' })),
      ),
    ),
  ]);
  return {
    secrets: Object.fromEntries(credentials.map(({ metadata, data }) => [metadata.name, [metadata.uid, data]])),
    works: works.map(({ metadata }) => [metadata.namespace, metadata.name, metadata.uid, metadata.generation]),
    deployments: delivered.flat().map(({ metadata }) => [metadata.name, metadata.uid, metadata.generation]),
  };
}
