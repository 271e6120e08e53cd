import { setTimeout as sleep } from 'node:timers/promises';
import { startNetwork } from '../../e2e/network/index.ts';
import { percentile } from '../figures.ts';
import { type FaultVictim, type ReplicaFault, replicaFaults, startApiWay } from './replica-faults.ts';
import { editAll, type ReplicaContext, type ReplicaFleet, silence, withReplicas } from './replica-fleet.ts';
import { milliseconds } from './table.ts';

const settleLimitMs = 120_000;
const movedClock = new URL('./moved-clock.ts', import.meta.url).href;

/** Columns of {@link underFault}. */
export const underFaultHeading = (replicas: number) => [
  `A fault among ${replicas} replicas`,
  'lasted',
  'agents moved',
  'in sync p50',
  'max',
  'edits p50',
  'p99',
  'reports p50',
  'p99',
  'edits',
  'lost',
  'twice',
];

/** Does one fault to a new fleet of replicas in the middle of edits and reports: one row of a table. */
export async function underFault(context: ReplicaContext, count: number, fault: ReplicaFault): Promise<string[]> {
  const { hub } = context;
  const { way: apiWay, kubeconfig } = await startApiWay(hub);
  let target = { host: '127.0.0.1', port: 0 };
  const agentWay = await startNetwork(() => target);
  const server = async (listens: string) => {
    target = { host: '127.0.0.1', port: Number(new URL(`tcp://${listens}`).port) };
    return `127.0.0.1:${agentWay.port}`;
  };
  const first = { args: [`--kubeconfig=${kubeconfig}`], preload: movedClock, server };
  try {
    return await withReplicas(
      context,
      count,
      async (fleet, began) => {
        await fleet.generator.allInSync(began);
        const [principal] = fleet.principals;
        if (principal === undefined) {
          throw new Error('there is no replica');
        }
        return measured(context, fleet, fault, { principal, hub, apiWay, agentWay });
      },
      first,
    );
  } finally {
    await Promise.all([apiWay.close(), agentWay.close()]);
  }
}

async function measured(
  context: ReplicaContext,
  { generator }: ReplicaFleet,
  fault: ReplicaFault,
  victim: FaultVictim,
): Promise<string[]> {
  const { duration, perSecond, shown } = context;
  await silence(generator, shown);
  shown.clear();
  generator.editMs.length = 0;
  const work = Promise.all([editAll(context, generator), generator.change(perSecond, duration)]);
  await sleep((duration / 3) * 1000);
  const connectedBefore = new Map(generator.connected);
  const faultAt = performance.timeOrigin + performance.now();
  await replicaFaults[fault].inflict(victim);
  const lastedMs = performance.timeOrigin + performance.now() - faultAt;
  const [edits] = await work;
  const moved = () =>
    [...generator.connected].filter(([agent, at]) => at !== connectedBefore.get(agent)).map(([agent]) => agent);
  const isOver = async () =>
    moved().every((agent) => (generator.inSync.get(agent) ?? 0) >= faultAt) && (await edits.received()) >= edits.made;
  for (const limit = performance.now() + settleLimitMs; !(await isOver()) && performance.now() < limit; ) {
    await sleep(100);
  }
  await silence(generator, shown);
  const received = await edits.received();
  const times = moved().map((agent) => (generator.inSync.get(agent) ?? 0) - faultAt);
  const { editMs } = generator;
  return [
    fault,
    milliseconds(lastedMs),
    String(times.length),
    times.length === 0 ? '–' : milliseconds(percentile(times, 50)),
    times.length === 0 ? '–' : milliseconds(Math.max(...times)),
    milliseconds(percentile(editMs, 50)),
    milliseconds(percentile(editMs, 99)),
    milliseconds(percentile(shown.delays, 50)),
    milliseconds(percentile(shown.delays, 99)),
    String(edits.made),
    String(Math.max(0, edits.made - received)),
    String(Math.max(0, received - edits.made)),
  ];
}
