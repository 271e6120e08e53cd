import type { Logger } from '../lib/base/index.ts';
import type { EventRecorder, KubeClient } from '../lib/kube/index.ts';
import type { Patience } from './cluster/cluster-trouble.ts';
import type { Applier } from './hub/applier.ts';
import type { Caches } from './hub/caches.ts';
import type { Fleets } from './ownership/cluster-reports.ts';
import type { Renderings } from './render/renderings.ts';
import type { Templates } from './render/templates.ts';
import type { Rollouts } from './rollout/rollouts.ts';
import type { DeliverySettings } from './spec/delivery-settings.ts';
import type { Foundation } from './spec/foundation.ts';

/** What the reconciles of GitOpsClusters and of clusters share. */
export interface World {
  readonly client: KubeClient;
  readonly logger: Logger;
  readonly events: EventRecorder;
  readonly caches: Caches;
  readonly fleets: Fleets;
  readonly rollouts: Rollouts;
  readonly applier: Applier;
  readonly templates: Templates;
  readonly renderings: Renderings;
  readonly delivery: DeliverySettings;
  readonly now: () => Date;
  /** How long the agent of a cluster that leaves may take to carry out deletions, in milliseconds. */
  readonly drainMs: number;
  /** How long what is not as it should be counts as still under way. */
  readonly patience: Patience;
  /** When this controller began to work. */
  readonly startedAt: Date;
  /** What clusters are made from, by GitOpsCluster; written by its reconcile, read by those of its clusters. */
  readonly foundations: Map<string, { readonly foundation: Foundation; readonly digest: string }>;
  /** Asks for a reconcile of a cluster. */
  readonly wakeCluster: (cluster: string) => void;
  /** Asks for a GitOpsCluster's status to be summed up soon. */
  readonly statusChanged: (key: string | undefined) => void;
}

const hour = 3_600_000;

/** Milliseconds until a renewal. Timers hold no more than 24 days, and nothing is lost by looking twice a day. */
export function untilRenewal(renewAt: number, now: Date): number {
  return Math.max(1_000, Math.min(renewAt - now.getTime(), 12 * hour));
}
