import { isDeepStrictEqual } from 'node:util';
import type { AgentMode } from '../../lib/auth/index.ts';
import type { ArgoObject } from '../pair/index.ts';

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
    this.#note(key, application.spec);
  }

  /** A user is about to delete an Application. {@link dropped} tells when that was accepted. */
  drop({ agent, name, uid }: WantedApplication): void {
    const key = `${agent}/${name}`;
    this.#wanted.delete(key);
    this.#note(key, undefined, Number.POSITIVE_INFINITY);
    for (const gone of [uid, ...(this.#formerUids.get(key) ?? [])]) {
      this.#takenAway.add(gone);
    }
    this.#formerUids.delete(key);
    this.excuse(agent, name);
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
        this.#takenAway.add(there.metadata.uid ?? '');
      }
      const since = Math.max(
        0,
        versions.findLastIndex(({ at }) => at <= knownAt),
      );
      const possible = versions.slice(since);
      const isNew = versions[0] !== undefined && versions[0].at > knownAt;
      const isPossible = found
        ? possible.some(({ spec }) => isDeepStrictEqual(spec, found.spec))
        : isNew || possible.some(({ spec }) => spec === undefined);
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
          this.drop(wanted);
          this.#versions.delete(key);
        }
        continue;
      }
      if (wanted !== undefined) {
        this.#formerUids.set(key, [...(this.#formerUids.get(key) ?? []), wanted.uid]);
      }
      this.want({ agent, name, uid: found.metadata.uid ?? '', spec: found.spec });
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

  #note(key: string, spec: Version['spec'], at = performance.now()): void {
    const versions = this.#versions.get(key) ?? [];
    versions.push({ at, spec });
    this.#versions.set(key, versions);
  }

  #operationsOf(agent: string, name: string): RequestedOperation[] {
    return this.operations.filter((one) => one.agent === agent && one.name === name);
  }
}

/** An agent of the fleet. */
export interface ChaosMember {
  readonly name: string;
  readonly mode: AgentMode;
}
