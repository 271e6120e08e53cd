import type { KeyedMutex, Logger } from '../../lib/base/index.ts';
import type { Applier, Caches, GitOpsCluster, HubEvents } from '../hub/index.ts';
import type { ClusterCertificates } from '../ownership/index.ts';

/** What the steps for certificates and keys work with. */
export interface TrustDeps {
  readonly caches: Caches;
  readonly applier: Applier;
  readonly logger: Logger;
  readonly events: HubEvents;
  /** Locked by the principal's namespace: its GitOpsClusters share Secrets and must not make the same one twice. */
  readonly mutex: KeyedMutex;
  /** The reported certificates of all clusters of a principal, by cluster; undefined for one not reconciled yet. */
  readonly clusterCertificates: (namespace: string) => ReadonlyMap<string, ClusterCertificates | undefined>;
}

/** The GitOpsCluster of a step. All GitOpsClusters of a principal share most of the objects that the steps make. */
export interface TrustScope {
  readonly gitOpsCluster: GitOpsCluster;
  /** The namespace of the principal, and of all objects that the steps make. */
  readonly namespace: string;
  readonly now: Date;
  readonly signal: AbortSignal;
}
