import { isDeepStrictEqual } from 'node:util';
import type { ArgoObject } from '../pair/index.ts';
import { projectProblem } from './app-projects.ts';
import { isGenerated } from './application-sets.ts';
import type { ChaosMember, Ledger, WantedApplication } from './ledger.ts';

/** What must be true when all faults are over, by the name that the verdict has for it. */
export const invariants = {
  lost: 'nothing is lost',
  specs: 'both sides have the same specs',
  statuses: 'both sides have the same statuses',
  foreign: 'nothing is there that nobody wants',
  operations: 'what was asked for is done',
  twice: 'nothing is done twice',
  taken: 'no copy was taken away that its source still has',
  workloads: 'no workload was removed that nobody asked to remove',
  projects: 'clusters have the AppProjects as users left them',
  conditions: 'no condition of trouble is left',
  holds: 'every agent is held by one live replica',
  healthy: 'every health endpoint says yes',
  exits: 'no process has ended by itself',
  memory: 'memory stays below its bound',
  failovers: 'every failover has succeeded, and lost nothing that was acknowledged',
  standby: 'the standby hub has what the active one has',
  live: 'live access answers, and for the right cluster',
} as const;

/** The name of one of {@link invariants}. */
export type Invariant = keyof typeof invariants;

/** Something that is not as it must be. */
export interface ChaosFinding {
  readonly invariant: Invariant;
  readonly what: string;
  /** No wait can mend it. */
  readonly isFinal: boolean;
}

/** The two sides of an agent at about one moment. */
export interface SeenSides extends ChaosMember {
  /** Its Applications on the hub. */
  readonly onHub: readonly ArgoObject[];
  readonly onCluster: readonly ArgoObject[];
}

/** An agent at about one moment. */
export interface SeenAgent extends SeenSides {
  /** Holder in its Lease; undefined without one. */
  readonly holder: string | undefined;
  /** What its Lease says. */
  readonly isConnected: boolean;
}

/** A sync that the cluster's application controller has begun. */
export interface OperationRun {
  readonly agent: string;
  readonly name: string;
  readonly id: string;
}

/** A copy that went away. */
export interface GoneCopy {
  readonly agent: string;
  readonly name: string;
  readonly uid: string;
  readonly sourceUid: string;
}

/** What an Application had deployed was removed with it. */
export type RemovedWorkload = GoneCopy;

/** Memory of a process over all its runs. */
export interface SeenMemory {
  readonly name: string;
  readonly mostBytes: number;
  readonly boundBytes: number;
}

/** What was seen of the Applications of a fleet. */
export interface SeenApplications<Agent extends SeenSides = SeenSides> {
  readonly agents: readonly Agent[];
  readonly runs: readonly OperationRun[];
  readonly goneCopies: readonly GoneCopy[];
  readonly removedWorkloads?: readonly RemovedWorkload[];
  /** What ApplicationSets have to make. */
  readonly generated?: readonly WantedApplication[];
}

/** All that the checker looks at. */
export interface ChaosView extends SeenApplications<SeenAgent> {
  /** Identities of the replicas whose Leases are there. */
  readonly replicas: readonly string[];
  /** How many principals run. */
  readonly running: number;
  /** What health endpoints say that do not say yes. */
  readonly unhealthy: readonly string[];
  /** Processes that ended although nobody ended them, in words. */
  readonly exits: readonly string[];
  readonly memory: readonly SeenMemory[];
  /** What failovers lost, or why one did not succeed. */
  readonly failovers: readonly string[];
  /** ApplicationSets of the active hub; their agent is the one of their namespace. */
  readonly sets: readonly ArgoObject[];
  /** AppProjects of the active hub, and of each managed agent's cluster by the agent's name. */
  readonly projects: {
    readonly onHub: readonly ArgoObject[];
    readonly onClusters: ReadonlyMap<string, readonly ArgoObject[]>;
  };
  /** All Applications and ApplicationSets of the hubs; undefined with one hub. */
  readonly both: { readonly active: readonly ArgoObject[]; readonly standby: readonly ArgoObject[] } | undefined;
  /** Live access that did not answer now. */
  readonly unanswered: readonly string[];
  /** Live access that answered at any time for another cluster than the one that was asked. */
  readonly wrongAnswers: readonly string[];
}

/** What users want, by kind. */
export interface Ledgers {
  /** Of Applications. */
  readonly ledger: Ledger;
  /** Of ApplicationSets. */
  readonly sets: Ledger;
  /** Of AppProjects. */
  readonly projects: Ledger;
}

/**
 * Compares what there is with what the users want: `ledger` of Applications, `sets` of ApplicationSets, `projects` of AppProjects.
 * Nothing is found when all is as it must be.
 */
export function checkInvariants({ ledger, sets, projects }: Ledgers, view: ChaosView): ChaosFinding[] {
  const found = checkApplications(ledger, view);
  const say = (invariant: Invariant, what: string, isFinal = false) => found.push({ invariant, what, isFinal });
  const sayAll = (invariant: Invariant, all: readonly string[], isFinal = false) =>
    found.push(...all.map((what) => ({ invariant, what, isFinal })));
  for (const wanted of sets.wanted) {
    const isIt = ({ metadata }: ArgoObject) => metadata.namespace === wanted.agent && metadata.name === wanted.name;
    checkKept(`ApplicationSet ${wanted.agent}/${wanted.name}`, wanted, view.sets.find(isIt), say);
  }
  for (const wanted of projects.wanted) {
    const isIt = ({ metadata }: ArgoObject) => metadata.name === wanted.name;
    checkKept(`AppProject ${wanted.name}`, wanted, view.projects.onHub.find(isIt), say);
    const problem = projectProblem(wanted, view.projects.onClusters.get(wanted.agent)?.find(isIt));
    if (problem !== undefined) {
      say('projects', `${wanted.agent}: ${problem}`);
    }
  }
  for (const agent of view.agents) {
    checkHold(agent, view, say);
  }
  if (view.replicas.length !== view.running) {
    say('holds', `${view.replicas.length} replicas have Leases and ${view.running} run`);
  }
  sayAll('healthy', view.unhealthy);
  sayAll('exits', view.exits, true);
  for (const { name, mostBytes, boundBytes } of view.memory) {
    if (mostBytes > boundBytes) {
      say('memory', `${name} took ${mebibytes(mostBytes)}, and its bound is ${mebibytes(boundBytes)}`, true);
    }
  }
  sayAll('failovers', view.failovers, true);
  if (view.both !== undefined) {
    checkStandby(view.both.active, view.both.standby, say);
  }
  sayAll('live', view.unanswered);
  sayAll('live', view.wrongAnswers, true);
  return found;
}

/** The part of {@link checkInvariants} that is about Applications. */
export function checkApplications(ledger: Ledger, seen: SeenApplications): ChaosFinding[] {
  const found: ChaosFinding[] = [];
  const say = (invariant: Invariant, what: string, isFinal = false) => found.push({ invariant, what, isFinal });
  for (const agent of seen.agents) {
    const generated = seen.generated?.filter((one) => one.agent === agent.name) ?? [];
    checkAgent([...ledger.of(agent.name), ...generated], agent, say);
  }
  checkOperations(ledger, seen, say);
  const onHub = new Set(seen.agents.flatMap((agent) => agent.onHub.map(({ metadata }) => metadata.uid)));
  for (const { agent, name, uid, sourceUid } of seen.goneCopies) {
    // An ApplicationSet may have taken the source away.
    const isExcused = isGenerated(name) && !onHub.has(sourceUid);
    if (!isExcused && !ledger.isTakenAway(uid) && !ledger.isTakenAway(sourceUid)) {
      say('taken', `${agent}: copy ${name} (${uid}) was deleted while its source was wanted`, true);
    }
  }
  for (const { agent, name, uid, sourceUid } of seen.removedWorkloads ?? []) {
    const isExcused = isGenerated(name) && !onHub.has(sourceUid);
    if (!isExcused && !ledger.workloads.isAsked(agent, uid)) {
      const sources = ledger.workloads.sourcesOf(uid).join(', ');
      say('workloads', `${agent}: the workload of ${name} (${uid}, of ${sources}) was removed unasked`, true);
    }
  }
  return found;
}

/** What users want is on the hub as they left it. */
function checkKept(what: string, { uid, spec }: WantedApplication, found: ArgoObject | undefined, say: Say): void {
  if (found?.metadata.uid !== uid) {
    say('lost', `${what} is ${found?.metadata.uid} on the hub instead of ${uid}`);
  } else if (!isDeepStrictEqual(found.spec, spec)) {
    say('lost', `${what}: an edit is lost: ${differing(spec, found.spec)}`);
  }
}

type Say = (invariant: Invariant, what: string, isFinal?: boolean) => void;

function checkAgent(all: readonly WantedApplication[], agent: SeenSides, say: Say): void {
  const [sources, copies] = agent.mode === 'managed' ? [agent.onHub, agent.onCluster] : [agent.onCluster, agent.onHub];
  const [sourceSide, copySide] = agent.mode === 'managed' ? ['the hub', agent.name] : [agent.name, 'the hub'];
  for (const [objects, side] of [
    [sources, sourceSide],
    [copies, copySide],
  ] as const) {
    for (const { metadata } of objects) {
      if (!all.some(({ name }) => name === metadata.name)) {
        const leaves = metadata.deletionTimestamp === undefined ? '' : ', being deleted';
        say('foreign', `${agent.name}/${metadata.name} is on ${side} though nobody wants it${leaves}`);
      }
    }
  }
  for (const wanted of all) {
    const name = `${agent.name}/${wanted.name}`;
    const source = sources.find(({ metadata }) => metadata.name === wanted.name);
    const copy = copies.find(({ metadata }) => metadata.name === wanted.name);
    if (source === undefined) {
      say('lost', `${name} is not on ${sourceSide}`);
    } else if (wanted.uid !== '' && source.metadata.uid !== wanted.uid) {
      say('lost', `${name} is another one on ${sourceSide}: ${source.metadata.uid} instead of ${wanted.uid}`);
    } else if (!isDeepStrictEqual(source.spec, wanted.spec)) {
      say('lost', `${name}: an edit is lost on ${sourceSide}: ${differing(wanted.spec, source.spec)}`);
    }
    if (wanted.isKeptOut) {
      if (copy !== undefined) {
        say('foreign', `${name} is on ${copySide} though users keep it out`);
      }
      continue;
    }
    if (copy === undefined) {
      say('specs', `${name} is not on ${copySide}`);
    } else {
      const { uid = '' } = wanted.uid === '' && source !== undefined ? source.metadata : wanted;
      compareCopy(agent, { ...wanted, uid }, copy, (what) => say('specs', `${name} on ${copySide}${what}`));
    }
    if (source !== undefined && copy !== undefined) {
      const [left, right] = [shown(source), shown(copy)];
      if (!isDeepStrictEqual(left, right)) {
        say('statuses', `${name}: ${differing(left, right)}`);
      }
    }
  }
  for (const { metadata, status } of agent.onHub) {
    const conditions = (status?.conditions ?? []) as { type: string; message?: string }[];
    for (const { type, message = '' } of conditions) {
      say('conditions', `${agent.name}/${metadata.name} has ${type}: ${message}`);
    }
  }
}

function compareCopy(agent: ChaosMember, wanted: WantedApplication, copy: ArgoObject, say: (what: string) => void) {
  if (copy.metadata.deletionTimestamp !== undefined) {
    say(' is being deleted');
  }
  const sourceUid = copy.metadata.annotations?.['argocd.argoproj.io/source-uid'];
  if (sourceUid !== wanted.uid) {
    say(` is the copy of ${sourceUid} instead of ${wanted.uid}`);
  }
  const expected = expectedCopy(agent, wanted.spec);
  if (!isDeepStrictEqual(copy.spec, expected)) {
    say(`: ${differing(expected, copy.spec)}`);
  }
}

/** The spec of a copy, from docs/synchronisation.md. */
function expectedCopy({ name, mode }: ChaosMember, spec: WantedApplication['spec']): Record<string, unknown> {
  const { server: _, ...destination } = spec.destination as Record<string, unknown>;
  return mode === 'managed'
    ? { ...spec, destination: { ...destination, name: 'in-cluster' } }
    : { ...spec, project: `${name}-${spec.project}`, destination: { ...destination, name } };
}

/** What users see of an Application's state. */
function shown({ status = {}, operation }: ArgoObject): Record<string, unknown> {
  const { sync, health, operationState, history, reconciledAt } = status as Record<string, unknown>;
  const { comparedTo: _, ...comparison } = (sync ?? {}) as Record<string, unknown>;
  const { phase, message, startedAt, finishedAt } = (operationState ?? {}) as Record<string, unknown>;
  return { sync: comparison, health, phase, message, startedAt, finishedAt, history, reconciledAt, operation };
}

/** An operation that was asked for is not carried over. */
function checkStandby(active: readonly ArgoObject[], standby: readonly ArgoObject[], say: Say): void {
  const keyOf = ({ metadata }: ArgoObject) => `${metadata.namespace}/${metadata.name}`;
  const followers = new Map(standby.map((one) => [keyOf(one), one]));
  for (const one of active) {
    const key = keyOf(one);
    const follower = followers.get(key);
    followers.delete(key);
    if (follower === undefined) {
      say('standby', `${key} is not on the standby hub`);
      continue;
    }
    const [wanted, there] = [one, follower].map(({ spec, ...rest }) => {
      const { operation: _, ...state } = shown({ spec, ...rest });
      return { spec, ...state };
    });
    if (!isDeepStrictEqual(wanted, there)) {
      say('standby', `${key} differs on the standby hub: ${differing(wanted ?? {}, there ?? {})}`);
    }
  }
  for (const key of followers.keys()) {
    say('standby', `${key} is on the standby hub alone`);
  }
}

function checkHold({ name, holder, isConnected }: SeenAgent, { replicas }: ChaosView, say: Say): void {
  if (!isConnected) {
    say('holds', `the Lease of ${name} says that it is not connected`);
  }
  if (!replicas.includes(holder ?? '')) {
    say('holds', `${name} is held by ${holder || 'nobody'}, which is no live replica`);
  }
}

function checkOperations(ledger: Ledger, { runs }: SeenApplications, say: Say): void {
  const times = new Map<string, number>();
  for (const { id } of runs) {
    times.set(id, (times.get(id) ?? 0) + 1);
  }
  const known = new Set<string>();
  for (const { id, agent, name, isAccepted, isExcused, mayRunAgain } of ledger.operations) {
    known.add(id);
    const count = times.get(id) ?? 0;
    if (count === 0 && isAccepted && !isExcused) {
      say('operations', `sync ${id} of ${agent}/${name} was accepted and has not run`);
    }
    if (count > 1 && !mayRunAgain) {
      say('twice', `sync ${id} of ${agent}/${name} has run ${count} times`, true);
    }
  }
  for (const { id, agent, name } of runs) {
    if (!known.has(id)) {
      say('twice', `sync ${id} of ${agent}/${name} has run and nobody asked for it`, true);
    }
  }
}

/** The fields of two objects that differ, as JSON. */
function differing(left: object, right: object): string {
  const [one, other] = [left, right] as Record<string, unknown>[];
  const keys = [...new Set([...Object.keys(one ?? {}), ...Object.keys(other ?? {})])];
  const different = keys.filter((key) => !isDeepStrictEqual(one?.[key], other?.[key]));
  const text = (value: unknown) => JSON.stringify(value) ?? 'nothing';
  return different.map((key) => `${key} ${text(one?.[key])} and ${text(other?.[key])}`).join('; ');
}

const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
