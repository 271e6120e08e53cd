import { setTimeout as sleep } from 'node:timers/promises';
import { pairApplications as applicationType, freePort } from '../../e2e/pair/index.ts';
import { isForbidden, isRetryable } from '../../lib/kube/index.ts';
import { timedRevision } from '../load/timed-revision.ts';
import { Generator } from './generator.ts';
import { applicationName, type Hub } from './hub.ts';
import { type Principal, startPrincipal } from './principal.ts';
import type { ShownStatuses } from './shown-statuses.ts';

/** For how long nothing must come before everything counts as arrived. */
const silenceMs = 2_000;
const retryMs = 100;

/** The hub of the benchmark, and what is done to it. */
export interface ReplicaContext {
  readonly hub: Hub;
  readonly names: readonly string[];
  readonly perAgent: number;
  readonly perSecond: number;
  /** Seconds. */
  readonly duration: number;
  readonly shown: ShownStatuses;
}

/** Replicas of the principal, and all agents. */
export interface ReplicaFleet {
  readonly principals: readonly Principal[];
  readonly generator: Generator;
}

/** How a replica is started that something happens to. */
export interface ReplicaStart {
  readonly args?: readonly string[];
  /** See {@link startPrincipal}. */
  readonly preload?: string;
  /** Where agents find it; default: where it listens. */
  readonly server?: (listens: string) => Promise<string>;
}

/** Starts replicas and agents, which connect at once, for as long as `use` takes. `first` is how the first replica is started. */
export async function withReplicas<T>(
  { hub, names, perAgent }: ReplicaContext,
  count: number,
  use: (fleet: ReplicaFleet, began: number) => Promise<T>,
  first: ReplicaStart = {},
): Promise<T> {
  const principals: Principal[] = [];
  const servers: string[] = [];
  let generator: Generator | undefined;
  try {
    for (let number = 0; number < count; number++) {
      const { args = [], preload, server = async (listens: string) => listens } = number === 0 ? first : {};
      const address = `127.0.0.1:${await freePort()}`;
      const sharing = ['--enable-replicas', `--replica-listen=${address}`, `--replica-address=${address}`];
      const principal = await startPrincipal(hub, [...sharing, ...args], preload);
      principals.push(principal);
      servers.push(await server(principal.server));
    }
    generator = await Generator.start({
      server: servers.join(','),
      pki: hub.pki,
      agents: names.length,
      applications: perAgent,
    });
    return await use({ principals, generator }, generator.connect());
  } finally {
    await generator?.stop();
    await Promise.all(principals.map((one) => one.stop()));
  }
}

/**
 * Edits Applications at a steady pace, each at most once, so that no two edits become one; while the API server is away, they
 * wait. `received` tells how many have arrived.
 */
export async function editAll(
  { hub, names, perAgent, perSecond, duration }: ReplicaContext,
  generator: Generator,
): Promise<{ made: number; received: () => Promise<number> }> {
  const before = (await generator.count()).changesReceived;
  const received = async () => (await generator.count()).changesReceived - before;
  const made = Math.min(names.length * perAgent, Math.round(perSecond * duration));
  const began = performance.now();
  for (let index = 0; index < made; index++) {
    await sleep(Math.max(0, began + (1000 * index) / perSecond - performance.now()));
    const namespace = names[index % names.length] ?? '';
    await edit(hub, { namespace, name: applicationName(Math.floor(index / names.length)) });
  }
  return { made, received };
}

/** The same edit is tried until the API server has answered: if it had been done before the answer was lost, it changes nothing. */
async function edit({ cluster: { client } }: Hub, key: { namespace: string; name: string }): Promise<void> {
  const targetRevision = timedRevision();
  for (;;) {
    try {
      await client.mergePatch(applicationType, key, { spec: { source: { targetRevision } } });
      return;
    } catch (error) {
      // An API server that has just started knows no roles yet, and forbids.
      if (!isRetryable(error) && !isForbidden(error)) {
        throw error;
      }
      await sleep(retryMs);
    }
  }
}

/** Resolves when nothing has come for a while, in either direction. */
export async function silence(generator: Generator, shown: ShownStatuses): Promise<void> {
  for (let before = ''; ; await sleep(silenceMs)) {
    const now = `${(await generator.count()).changesReceived} ${shown.delays.length}`;
    if (now === before) {
      return;
    }
    before = now;
  }
}
