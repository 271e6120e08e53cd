import type { AgentMode } from '../../argocd/index.ts';
import type { ArgoCD } from './argo-cd.ts';
import { Refused, type SimulatedCluster } from './cluster.ts';
import type { ClusterStore } from './cluster-store.ts';
import type { SeededDice } from './dice.ts';
import type { Layout } from './layout.ts';
import type { AgentProgram, Stream } from './network.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A program that can be killed and started again, without memory of before. */
export interface Process<P> {
  readonly program: P;
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
  /** There are projects, repositories and keys too. */
  readonly everyKind: boolean;
  /** The principal may create namespaces. */
  readonly makesNamespaces: boolean;
  /** A program lost its memory. */
  readonly restarted: boolean;
  trace(line: string): void;
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
