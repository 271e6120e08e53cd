import type { AgentMode, SyncStats } from '../lib/argocd/index.ts';
import type { ArgoCD } from './argo-cd.ts';
import { type LastingAnswer, Refused, type SimulatedCluster } from './cluster.ts';
import type { ClusterSecrets } from './cluster-secrets.ts';
import type { ClusterStore } from './cluster-store.ts';
import type { SeededDice } from './dice.ts';
import type { Layout } from './layout.ts';
import type { Machine } from './machine.ts';
import type { AgentProgram, Answering, Stream } from './network.ts';
import type { OddValues } from './odd-values.ts';
import type { Permissions } from './permissions.ts';
import type { Unkindness } from './unkindness.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A program that can be killed and started again, without memory of before. */
export interface Process<P> {
  readonly program: P;
  readonly machine: Machine;
  /** One per kind of object that it follows. */
  readonly stores: readonly Pick<ClusterStore<never>, 'breakWatch'>[];
  readonly stop: AbortController;
}

/** A cluster with an agent. */
export interface Site {
  readonly name: string;
  readonly mode: AgentMode;
  /** Its agent is one of argocd-agent. */
  readonly isGo: boolean;
  readonly cluster: SimulatedCluster;
  readonly argoCD: ArgoCD;
  agent: Process<AgentProgram>;
  stream: Stream | undefined;
  /** Users did something on this cluster. */
  meddled: boolean;
}

/** What programs and topics see of the simulated world. */
export interface Scene {
  readonly time: VirtualTime;
  readonly dice: SeededDice;
  readonly layout: Layout;
  readonly hub: SimulatedCluster;
  readonly sites: readonly Site[];
  /** What befalls this history beside the faults that all have. */
  readonly unkind: Unkindness;
  /** What users write. */
  readonly values: OddValues;
  /** What API servers answer to the end. */
  readonly lasting: readonly LastingAnswer[];
  /** What the hub's AppProjects let agents have. */
  readonly permissions: Permissions;
  readonly clusterSecrets: ClusterSecrets;
  /** There are projects, repositories and keys too. */
  readonly everyKind: boolean;
  /** The principal may create namespaces. */
  readonly makesNamespaces: boolean;
  /** The principal's persistent identity. */
  principalUid: string;
  /** What clusters have of a principal that had another one. */
  readonly foreign: { begin(sites: readonly Site[]): void };
  /** A program, or the storage of a cluster, lost its memory. */
  restarted: boolean;
  trace(line: string): void;
}

/** What serves the agents on the hub, and what may befall it. */
export interface HubSide {
  /** What an agent reaches that dials now; undefined: nothing. */
  dial(site: Site): Answering | undefined;
  /** Something befalls it. */
  happens(): string;
  /** One of its programs loses a watch for a while. */
  breakWatch(): void;
  /** What still waits for an agent. */
  stats(site: Site): SyncStats;
  /** Nothing befalls it any more. */
  calm(): void;
  /**
   * Something happens on it for ever, so that the end is when nothing but that happens: how often it may look at itself. Default:
   * the end is when nothing happens.
   */
  readonly restMs?: number;
  /** About how long an agent waits before it dials again. Default: 2 s. */
  readonly redialMs?: number;
  /** Writes so far by which programs show that they live. Default: none. */
  readonly renewals?: number;
  /** What is not as it should be; `isOver`: all has come to rest. */
  problems(isOver: boolean): string[];
  end(): void;
}

/**
 * Some kind of objects in the simulated world: what users do about it on both sides, and what must hold in the end. A new
 * kind needs a topic of its own, an entry in {@link Kinds}, and the programs that synchronise it (`programs.ts`).
 */
export interface Topic {
  /** Whether it has to do with a site. */
  concerns(site: Site): boolean;
  /** Somebody does something about it on the hub, with regard to a site. */
  onHub(site: Site): string;
  /** Somebody does something about it on the site's own cluster. */
  onSite(site: Site): string;
  /** Resources of the site whose copies have to fail on the hub. Default: none. */
  failing?(site: Site): number;
  /** Something rare that concerns more than one site; undefined most of the time. */
  beyondOneSite?(): string | undefined;
  /** What is not as it should be when all has come to rest. */
  problems(site: Site): string[];
}

/** Runs what a user does; that an API server refuses it is the user's business. */
export function attempt(action: () => string): string {
  try {
    return action();
  } catch (error) {
    if (error instanceof Refused) {
      return `refused: ${error.message}`;
    }
    throw error;
  }
}

/** Ends a program without giving it time for anything. */
export function endProcess({ machine, stop }: Pick<Process<unknown>, 'machine' | 'stop'>): void {
  machine.die();
  stop.abort();
}
