import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type FleetApplication, fleetApplications, type RunningFleet } from '../fleet/index.ts';
import { persist } from '../testbed/index.ts';
import type { Wanted } from './traffic.ts';

/** The Applications of both sides at about one moment, by name. */
interface Sides {
  readonly hub: ReadonlyMap<string, FleetApplication>;
  /** By cluster. */
  readonly copies: ReadonlyMap<string, ReadonlyMap<string, FleetApplication>>;
}

/** What takes longer is explained. */
const slowMs = 15_000;

/** How {@link agreement} waits. */
export interface AgreementOptions {
  timeoutMs?: number;
  /**
   * What is marked as deleted on both sides need not be gone, nor a copy that a user deleted be there again: when Argo CD
   * could not remove what it deployed in the middle of an outage, it tries again only with its periodic look, up to three
   * minutes later.
   */
  allowLeaving?: boolean;
}

/**
 * Waits until hub, managed clusters and what the users want are the same.
 * @returns the uid of every copy that is not being deleted, by name
 * @throws Error that lists what differs when the time is over
 */
export async function agreement(
  fleet: RunningFleet,
  wanted: ReadonlyMap<string, Wanted>,
  { timeoutMs = 240_000, allowLeaving = false }: AgreementOptions = {},
): Promise<Map<string, string>> {
  const begin = Date.now();
  const history = new Map<string, { first: number; last: number }>();
  for (;;) {
    const sides = await read(fleet);
    const differences = compare(sides, wanted, allowLeaving);
    const waited = Date.now() - begin;
    for (const one of differences) {
      history.set(one, { first: history.get(one)?.first ?? waited, last: waited });
    }
    if (differences.length === 0) {
      if (waited > slowMs) {
        console.log(`agreement took ${waited} ms:\n${told(history)}`);
      }
      return uidsOf(sides);
    }
    if (waited > timeoutMs) {
      throw new Error(`no agreement within ${timeoutMs} ms:\n${told(history)}`);
    }
    await sleep(200);
  }
}

/** The differences that stood longest, and when they were seen first and last. */
function told(history: ReadonlyMap<string, { first: number; last: number }>): string {
  return [...history]
    .sort(([, a], [, b]) => b.last - b.first - (a.last - a.first))
    .slice(0, 12)
    .map(([what, { first, last }]) => `from ${first} to ${last} ms: ${what}`)
    .join('\n');
}

async function read(fleet: RunningFleet): Promise<Sides> {
  const byName = (list: FleetApplication[]) => new Map(list.map((one) => [one.metadata.name, one]));
  const [hub, ...copies] = await Promise.all([
    persist(() => fleet.hub.client.list(fleetApplications)),
    ...[...fleet.members].map(
      async ([name, { cluster }]) =>
        [name, byName(await persist(() => cluster.client.list(fleetApplications)))] as const,
    ),
  ]);
  return { hub: byName(hub), copies: new Map(copies) };
}

function compare({ hub, copies }: Sides, wanted: ReadonlyMap<string, Wanted>, allowLeaving: boolean): string[] {
  const found: string[] = [];
  const say = (name: string, what: string, left?: unknown, right?: unknown) =>
    found.push(`${name}: ${what}${left === undefined ? '' : `: ${JSON.stringify(left)} and ${JSON.stringify(right)}`}`);
  const isLeaving = (name: string) => {
    const sides = [hub.get(name), ...[...copies.values()].map((there) => there.get(name))].filter((one) => one);
    return allowLeaving && sides.length === 2 && sides.every((one) => one?.metadata.deletionTimestamp !== undefined);
  };
  for (const [name, { metadata }] of hub) {
    if (!wanted.has(name) && !isLeaving(name)) {
      say(name, `is on the hub though nobody wants it; ${deletion(metadata)}`);
    }
  }
  for (const [cluster, there] of copies) {
    for (const [name, copy] of there) {
      if (wanted.get(name)?.cluster !== cluster && !isLeaving(name)) {
        say(name, `is on ${cluster} though nobody wants it there; ${deletion(copy.metadata)}`);
      }
      if (copy.metadata.namespace !== 'argocd') {
        say(name, `is in namespace ${copy.metadata.namespace}`);
      }
    }
  }
  for (const [name, want] of wanted) {
    const original = hub.get(name);
    const copy = copies.get(want.cluster)?.get(name);
    if (!original) {
      say(name, 'is lost on the hub');
    } else if (original.metadata.uid !== want.uid) {
      say(name, 'is another one on the hub');
    } else if (!isDeepStrictEqual(original.spec, want.spec)) {
      say(name, 'spec of users and hub', want.spec, original.spec);
    }
    if (!copy) {
      say(name, `is not on ${want.cluster}`);
    }
    if (!original || !copy) {
      continue;
    }
    if (allowLeaving && copy.metadata.deletionTimestamp) {
      continue;
    }
    if (copy.metadata.deletionTimestamp) {
      say(name, `is being deleted on ${want.cluster}`);
    }
    if (copy.metadata.annotations?.['argocd.argoproj.io/source-uid'] !== want.uid) {
      say(name, 'source-uid');
    }
    const expected = { ...want.spec, destination: { ...want.spec.destination, name: 'in-cluster' } };
    if (!isDeepStrictEqual(copy.spec, expected)) {
      say(name, 'spec expected and found', expected, copy.spec);
    }
    const [left, right] = [shown(original), shown(copy)];
    if (!isDeepStrictEqual(left, right)) {
      say(name, `status of hub and ${want.cluster}`, left, right);
    } else if (left.sync === undefined) {
      say(name, 'Argo CD has not said anything of it yet');
    }
  }
  return found;
}

function deletion({ deletionTimestamp = 'not', finalizers = [] }: FleetApplication['metadata']): string {
  return `deleted: ${deletionTimestamp}, finalizers: ${finalizers.join(' ') || 'none'}`;
}

/** What users see of an Application's state. */
function shown({ status }: FleetApplication) {
  const { sync, health, operationState, history, resources, conditions } = status ?? {};
  const operation = operationState as { phase?: string; finishedAt?: string } | undefined;
  return {
    sync: sync?.status,
    revision: sync?.revision,
    health: health?.status,
    phase: operation?.phase,
    finishedAt: operation?.finishedAt,
    history,
    resources,
    conditions: conditions?.map(({ type, message }) => ({ type, message })) ?? [],
  };
}

function uidsOf({ copies }: Sides): Map<string, string> {
  const all = [...copies.values()].flatMap((there) => [...there.values()]);
  const staying = all.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return new Map(staying.map(({ metadata }) => [metadata.name, metadata.uid ?? '']));
}
