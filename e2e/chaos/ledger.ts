import type { AgentMode } from '../../lib/auth/index.ts';

/** What the users want of one Application, as an API server has confirmed it. */
export interface WantedApplication {
  readonly agent: string;
  readonly name: string;
  /** Of the object that the users wrote: on the hub in managed mode, on the cluster in autonomous mode. */
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

/** What must be so when all is over: the edits that were accepted, and the syncs that were asked for. */
export class Ledger {
  readonly operations: RequestedOperation[] = [];
  /** How often each kind of edit was accepted. */
  readonly edits = new Map<string, number>();
  readonly #wanted = new Map<string, WantedApplication>();
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
    this.#wanted.set(`${application.agent}/${application.name}`, application);
  }

  /** A user is about to delete an Application. */
  drop({ agent, name, uid }: WantedApplication): void {
    this.#wanted.delete(`${agent}/${name}`);
    this.#takenAway.add(uid);
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

  #operationsOf(agent: string, name: string): RequestedOperation[] {
    return this.operations.filter((one) => one.agent === agent && one.name === name);
  }
}

/** An agent of the fleet. */
export interface ChaosMember {
  readonly name: string;
  readonly mode: AgentMode;
}
