import type { KubeClient } from '../../lib/kube/index.ts';
import type { PrincipalEndpoint, ServiceExposure } from '../endpoint/index.ts';
import type { ClusterReports, ClusterSelection, Ownership } from '../ownership/index.ts';
import type { Rollouts } from '../rollout/index.ts';
import type { DeliverySettings, FleetSpec, Foundation } from '../spec/index.ts';
import type { HubAuthority, TrustDeps, TrustScope } from '../trust/index.ts';

/** What the reconcile of GitOpsClusters works with. */
export interface FleetDeps extends TrustDeps {
  readonly client: KubeClient;
  readonly ownership: Ownership;
  readonly reports: ClusterReports;
  readonly rollouts: Rollouts;
  readonly delivery: DeliverySettings;
  readonly now: () => Date;
  /** What clusters are made from, by GitOpsCluster: written here, read by the reconciles of clusters and requests. */
  readonly foundations: Map<string, Foundation>;
  /** Asks for a reconcile of a cluster. */
  readonly wakeCluster: (cluster: string) => void;
}

/** One GitOpsCluster as its reconcile reads it at the beginning. */
export interface Fleet extends TrustScope {
  /** `namespace/name`. */
  readonly key: string;
  readonly spec: FleetSpec;
  readonly selection: ClusterSelection;
  /** The principal's Service, if there is one, and everything that leads to it. */
  readonly exposure: ServiceExposure;
}

/** What the foundation steps found. When both are there, work on the clusters can begin. */
export interface FoundationFindings {
  readonly endpoint: PrincipalEndpoint | undefined;
  readonly authority: HubAuthority | undefined;
}
