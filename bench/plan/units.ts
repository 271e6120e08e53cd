import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../e2e/pair/index.ts';
import { agentNames, Generator } from '../load/generator.ts';
import { usageOf } from '../process-meter.ts';
import { editSome } from '../scale/edits.ts';
import { type Hub, startScaleHub } from '../scale/hub.ts';
import { type Principal, startPrincipal } from '../scale/principal.ts';
import { print } from '../table.ts';

/** A fleet that is small enough for this machine. */
export interface SmallFleet {
  readonly agents: number;
  readonly perAgent: number;
}

/** What one small fleet took of each part, once all was in sync. Bytes, and seconds of the processor. */
export interface FleetCosts {
  readonly apiServerBytes: number;
  readonly etcdBytes: number;
  readonly principalBytes: number;
  /** Until agents that have nothing are in sync. */
  readonly connectSeconds: number;
  readonly apiServerConnectSeconds: number;
  /** For each change of an Application: of the principal that serves the agent, and of one that only watches. */
  readonly changeSeconds: number;
  readonly watchSeconds: number;
  readonly apiServerChangeSeconds: number;
  readonly etcdChangeSeconds: number;
}

const changes = 1_000;
const settleMs = 8_000;

/**
 * Measures a fleet on a real API server, with two replicas of the principal: all agents are at the first one, so that the second
 * one shows what it costs to watch.
 */
export async function measureFleet({ agents, perAgent }: SmallFleet): Promise<FleetCosts> {
  const names = agentNames(agents);
  const hub = await startScaleHub();
  const principals: Principal[] = [];
  let generator: Generator | undefined;
  try {
    print(`${agents} agents with ${perAgent} Applications each, on a real hub …`);
    await hub.map(names);
    await hub.fill(names, perAgent);
    for (let number = 0; number < 2; number++) {
      principals.push(await startPrincipal(hub, { replica: { listen: await freePort() } }));
    }
    const [serving, watching] = principals as [Principal, Principal];
    const processors = () =>
      Promise.all([
        serving.usage(),
        watching.usage(),
        usageOf(hub.cluster.apiServer.pid ?? 0),
        usageOf(hub.cluster.etcd.pid ?? 0),
      ]).then((all) => all.map(({ cpuSeconds }) => cpuSeconds) as [number, number, number, number]);
    const beforeAgents = await processors();
    generator = await Generator.start({ server: serving.server, pki: hub.pki, agents: names, applications: perAgent });
    await generator.allInSync(generator.connect());
    await sleep(settleMs);
    const inSync = await processors();
    const [apiServerBytes, etcdBytes, { rssBytes }] = await Promise.all([
      heapOf(hub),
      stat(join(hub.cluster.dir, 'etcd', 'member', 'snap', 'db')),
      serving.usage(),
    ]);
    await sleep(settleMs);
    const quiet = await processors();
    await sleep(settleMs);
    const idle = await processors();
    const began = performance.now();
    await editSome(hub, names, { perAgent, count: changes });
    await sleep(settleMs);
    const changed = await processors();
    const idles = (performance.now() - began) / settleMs;
    const perChange = (part: 0 | 1 | 2 | 3) =>
      Math.max(0, changed[part] - idle[part] - (idle[part] - quiet[part]) * idles) / changes;
    return {
      apiServerBytes,
      etcdBytes: etcdBytes.size,
      principalBytes: rssBytes,
      connectSeconds: inSync[0] - beforeAgents[0],
      apiServerConnectSeconds: inSync[2] - beforeAgents[2],
      changeSeconds: perChange(0),
      watchSeconds: perChange(1),
      apiServerChangeSeconds: perChange(2),
      etcdChangeSeconds: perChange(3),
    };
  } finally {
    await generator?.stop();
    await Promise.all(principals.map((one) => one.stop()));
    await hub.stop();
  }
}

/** Bytes that were alive in the API server's heap at its last collection: Go begins the next one at twice as much. */
async function heapOf(hub: Hub): Promise<number> {
  const text = await (await hub.cluster.client.request('/metrics')).body.text();
  const found = /^go_memstats_next_gc_bytes (\S+)$/m.exec(text)?.[1];
  if (found === undefined) {
    throw new Error('the API server says nothing about its heap');
  }
  return Number(found) / 2;
}
