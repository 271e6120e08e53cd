import { isDeepStrictEqual } from 'node:util';
import type { AgentMode } from '../../lib/auth/index.ts';
import { hasResourcesFinalizer, WorkloadBook } from '../application-controller/index.ts';
import type { ArgoObject } from '../pair/index.ts';

/** Keeps an object out of all synchronisation if it is `true`: docs/reference/metadata.md. */
export const keptOutLabel = 'argocd-agent.argoproj-labs.io/ignore-sync';

/** What the users want of one Application, as an API server has confirmed it. */
export interface WantedApplication {
  readonly agent: string;
  readonly name: string;
  /**
   * Of the object that the users wrote: on the hub in managed mode, on the cluster in autonomous mode. Empty: an ApplicationSet
   * makes it.
   */
  readonly uid: string;
  readonly spec: Readonly<Record<string, unknown>>;
  /** It has Argo CD's finalizer: its workload goes with it. */
  readonly cascades?: boolean;
  /** It has the label that keeps it out of synchronisation: its agent has no copy of it, and no other hub is told of it. */
  readonly isKeptOut?: boolean;
}

/** A sync that a user has asked the hub for. */
export interface RequestedOperation {
  /** Stands in the operation's `info`. */
  readonly id: string;
  readonly agent: string;
  readonly name: string;
  /** False: the answer of the API server was lost, so nobody knows whether it was asked for. */
  readonly isAccepted: boolean;
  /** Something took the Application away in between: the sync need not have happened. */
  isExcused: boolean;
  /** A user deleted the copy that it ran on: it begins anew there, as documented. */
  mayRunAgain: boolean;
}

/** What users wanted of an Application at some time; no spec: that it is not there. */
interface Version {
  /** When the API server had accepted it, by the monotonic clock, ms; infinite: it has not yet. */
  at: number;
  readonly spec: WantedApplication['spec'] | undefined;
  /** Of this hub alone: the other one is not told, and keeps what it has. */
  readonly isKeptOut: boolean;
}

/** What became of an agent's Applications when another hub has taken over. */
export interface Takeover {
  /** What the other hub must have had and has not, in words. */
  readonly lost: readonly string[];
  /** Edits that the other hub had not been told yet. Users see what it has. */
  readonly undone: number;
}

/**
 * What must be so when all is over: the edits that were accepted, and the syncs that were asked for. Of Applications, or of
 * ApplicationSets in the same way.
 */
export class Ledger {
  readonly operations: RequestedOperation[] = [];
  /** Who asked for workloads to go. */
  readonly workloads = new WorkloadBook();
  /** How often each kind of edit was accepted. */
  readonly edits = new Map<string, number>();
  readonly #wanted = new Map<string, WantedApplication>();
  /** What was wanted of each, oldest first, since a hub has taken over or the start. */
  readonly #versions = new Map<string, Version[]>();
  /** UIDs that an Application had on hubs before. */
  readonly #formerUids = new Map<string, string[]>();
  /** The UIDs of copies that users deleted, and of sources that they deleted, whose copies go with them. */
  readonly #takenAway = new Set<string>();

  /** What must be there. */
  get wanted(): readonly WantedApplication[] {
    return [...this.#wanted.values()];
  }

  /** Those of one agent. */
  of(agent: string): WantedApplication[] {
    return this.wanted.filter((one) => one.agent === agent);
  }

  find(agent: string, name: string): WantedApplication | undefined {
    return this.#wanted.get(`${agent}/${name}`);
  }

  /** An edit was accepted: this is what is wanted from now on. */
  want(application: WantedApplication): void {
    const key = `${application.agent}/${application.name}`;
    this.#wanted.set(key, application);
    this.#note(key, application.spec, application.isKeptOut);
  }

  /** A user is about to take an Application out of synchronisation, by its label. Its copy goes. */
  keepOut(application: WantedApplication): void {
    this.#takeAway(application, application.cascades === true);
    // What had begun on the copy begins anew on the next one.
    for (const one of this.#operationsOf(application.agent, application.name)) {
      one.mayRunAgain = true;
    }
  }

  /** A user is about to delete an Application. {@link dropped} tells when that was accepted. */
  drop(application: WantedApplication): void {
    this.#leave(application, application.cascades === true);
  }

  /** The deletion of an Application was accepted: from now on other hubs may be expected to know. */
  dropped({ agent, name }: WantedApplication): void {
    const deletion = this.#versions.get(`${agent}/${name}`)?.findLast(({ at }) => at === Number.POSITIVE_INFINITY);
    if (deletion !== undefined) {
      deletion.at = performance.now();
    }
  }

  /**
   * Another hub has taken over, and these are the Applications of a managed agent there. Each must be as users wanted it at some
   * time since `knownAt`: the other hub had everything then. What it has is wanted from now on.
   */
  moved(agent: string, seen: readonly ArgoObject[], knownAt: number): Takeover {
    const lost: string[] = [];
    let undone = 0;
    for (const [key, versions] of [...this.#versions]) {
      if (!key.startsWith(`${agent}/`)) {
        continue;
      }
      const name = key.slice(agent.length + 1);
      const there = seen.find(({ metadata }) => metadata.name === name);
      const isLeaving = there?.metadata.deletionTimestamp !== undefined;
      const found = isLeaving ? undefined : there;
      if (isLeaving) {
        this.#takeAway(wantedOf(agent, there), hasResourcesFinalizer(there));
      }
      const told = versions.findLastIndex(({ at, isKeptOut }) => at <= knownAt && !isKeptOut);
      // The label also keeps back what the other hub had not been told by then.
      const since = versions[told + 1]?.isKeptOut === true ? 0 : Math.max(0, told);
      const possible = versions.slice(since);
      const isNew = versions[0] !== undefined && versions[0].at > knownAt;
      const isPossible = found
        ? possible.some(({ spec, isKeptOut }) => !isKeptOut && isDeepStrictEqual(spec, found.spec))
        : isNew || possible.some(({ spec, isKeptOut }) => spec === undefined || isKeptOut);
      const wanted = this.#wanted.get(key);
      if (!isPossible) {
        lost.push(
          `${key}: the hub that took over has ${JSON.stringify(found?.spec)}, wanted was ${JSON.stringify(possible)}`,
        );
      }
      if (!isDeepStrictEqual(found?.spec, wanted?.spec)) {
        undone++;
      }
      this.#versions.delete(key);
      if (found === undefined) {
        if (wanted !== undefined) {
          // Nobody asked for its workload to go.
          this.#leave(wanted, false);
          this.#versions.delete(key);
        }
        continue;
      }
      if (wanted !== undefined) {
        this.#formerUids.set(key, [...(this.#formerUids.get(key) ?? []), wanted.uid]);
      }
      this.want(wantedOf(agent, found));
    }
    return { lost, undone };
  }

  /** Syncs that were asked for and have not begun need not happen: the other hub is not told of them, as documented. */
  excuseOperations(): void {
    for (const one of this.operations) {
      one.isExcused = true;
    }
  }

  /** An ApplicationSet is about to lose an Application: its syncs need not happen. */
  excuse(agent: string, name: string): void {
    for (const one of this.#operationsOf(agent, name)) {
      one.isExcused = true;
    }
  }

  /** A user is about to delete a copy or mirror that nobody but its source may take away. */
  meddle(agent: string, name: string, uid: string): void {
    this.workloads.deleted(uid);
    this.#takenAway.add(uid);
    for (const one of this.#operationsOf(agent, name)) {
      one.isExcused = true;
      one.mayRunAgain = true;
    }
  }

  /** Whether users took an object away, a source or a copy, by its UID. */
  isTakenAway(uid: string): boolean {
    return this.#takenAway.has(uid);
  }

  count(edit: string): void {
    this.edits.set(edit, (this.edits.get(edit) ?? 0) + 1);
  }

  #leave(application: WantedApplication, isCascading: boolean): void {
    const key = `${application.agent}/${application.name}`;
    this.#wanted.delete(key);
    // The label is of one hub alone, a deletion is not.
    this.#note(key, undefined, false, Number.POSITIVE_INFINITY);
    this.#takeAway(application, isCascading);
    this.#formerUids.delete(key);
  }

  /** Nothing of it stays on its agent's cluster but the workload; that goes too if the Application cascades. */
  #takeAway({ agent, name, uid }: WantedApplication, isCascading: boolean): void {
    for (const gone of [uid, ...(this.#formerUids.get(`${agent}/${name}`) ?? [])]) {
      this.#takenAway.add(gone);
      if (isCascading) {
        this.workloads.ask(agent, gone);
      }
    }
    this.excuse(agent, name);
  }

  #note(key: string, spec: Version['spec'], isKeptOut = false, at = performance.now()): void {
    const versions = this.#versions.get(key) ?? [];
    versions.push({ at, spec, isKeptOut });
    this.#versions.set(key, versions);
  }

  #operationsOf(agent: string, name: string): RequestedOperation[] {
    return this.operations.filter((one) => one.agent === agent && one.name === name);
  }
}

/** What users want who have written this object. */
export function wantedOf(agent: string, object: ArgoObject): WantedApplication {
  const { name, uid = '', labels } = object.metadata;
  return {
    agent,
    name,
    uid,
    spec: object.spec,
    cascades: hasResourcesFinalizer(object),
    isKeptOut: labels?.[keptOutLabel] === 'true',
  };
}

/** An agent of the fleet. */
export interface ChaosMember {
  readonly name: string;
  readonly mode: AgentMode;
}
