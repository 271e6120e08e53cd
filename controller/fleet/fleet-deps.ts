import type { KubeClient } from '../../lib/kube/index.ts';
import type { Templates } from '../../lib/manifests/index.ts';
import type { FleetReporter } from '../../lib/ops/index.ts';
import type { PrincipalEndpoint, ServiceExposure } from '../endpoint/index.ts';
import type { ClusterReports, ClusterSelection, Ownership } from '../ownership/index.ts';
import type { Rollouts } from '../rollout/index.ts';
import type { DeliverySettings, FleetSpec, Foundation } from '../spec/index.ts';
import type { HubAuthority, TrustDeps, TrustScope } from '../trust/index.ts';

/** What the reconcile of GitOpsClusters works with. */
export interface FleetDeps extends TrustDeps {
  readonly client: KubeClient;
  /** Undefined when nobody wants to learn what happens to the fleet. */
  readonly fleetEvents?: FleetReporter | undefined;
  readonly ownership: Ownership;
  readonly reports: ClusterReports;
  readonly rollouts: Rollouts;
  readonly delivery: DeliverySettings;
  readonly templates: Templates;
  /** Namespaces whose own Argo CD may be given the parameters that live access needs. */
  readonly configuredNamespaces: readonly string[];
  readonly now: () => Date;
  /** Foundations by key of the GitOpsCluster. Written here; read by the reconciles of clusters and requests. */
  readonly foundations: Map<string, Foundation>;
  /** Requests a reconcile of a cluster. */
  readonly wakeCluster: (cluster: string) => void;
}

/** One GitOpsCluster, with its state at the beginning of its reconcile. */
export interface Fleet extends TrustScope {
  /** `namespace/name`. `namespace` alone, in {@link TrustScope}, is that of the principal. */
  readonly key: string;
  readonly spec: FleetSpec;
  readonly selection: ClusterSelection;
  /** The principal's Service, if there is one, and the objects that expose it. */
  readonly exposure: ServiceExposure;
}

/** The results of the foundation steps. With both of them the clusters can be reconciled. */
export interface FoundationFindings {
  readonly endpoint: PrincipalEndpoint | undefined;
  readonly authority: HubAuthority | undefined;
}
