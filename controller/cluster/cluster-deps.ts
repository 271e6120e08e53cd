import type { Logger } from '../../lib/base/index.ts';
import type { KubeClient } from '../../lib/kube/index.ts';
import type { Templates } from '../../lib/manifests/index.ts';
import type { FleetReporter } from '../../lib/ops/index.ts';
import type { Applier, Caches, HubEvents } from '../hub/index.ts';
import type { ClusterReports, Ownership } from '../ownership/index.ts';
import type { Renderings } from '../render/index.ts';
import type { Rollouts } from '../rollout/index.ts';
import type { DeliverySettings, Foundation } from '../spec/index.ts';
import type { TroubleDelays } from './cluster-trouble.ts';

/** What the reconcile of clusters works with. */
export interface ClusterDeps {
  readonly client: KubeClient;
  readonly logger: Logger;
  readonly events: HubEvents;
  /** Undefined when nobody wants to learn what happens to the fleet. */
  readonly fleetEvents?: FleetReporter | undefined;
  readonly caches: Caches;
  readonly applier: Applier;
  readonly ownership: Ownership;
  readonly reports: ClusterReports;
  readonly templates: Templates;
  readonly renderings: Renderings;
  readonly rollouts: Rollouts;
  readonly delivery: DeliverySettings;
  /** By key of the GitOpsCluster. */
  readonly foundations: ReadonlyMap<string, Foundation>;
  readonly now: () => Date;
  /** How long the agent of a detached cluster may take to carry out deletions, in milliseconds. */
  readonly drainMs: number;
  readonly troubleDelays: TroubleDelays;
  /** When this controller started. */
  readonly startedAt: Date;
  /** Requests an update of a GitOpsCluster's status. */
  readonly statusChanged: (gitOpsCluster: string) => void;
}

/** An enrolled cluster in one reconcile. */
export interface Enrolment {
  readonly cluster: string;
  /** The desired state of all clusters of its GitOpsCluster. */
  readonly foundation: Foundation;
  readonly now: Date;
  readonly signal: AbortSignal;
}
