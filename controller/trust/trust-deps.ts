import type { KeyedMutex, Logger } from '../../lib/base/index.ts';
import type { EventRecorder } from '../../lib/kube/index.ts';
import type { Applier, Caches, GitOpsCluster } from '../hub/index.ts';
import type { ClusterCertificates } from '../ownership/index.ts';

/** What the steps that make certificates and keys work with. */
export interface TrustDeps {
  readonly caches: Caches;
  readonly applier: Applier;
  readonly logger: Logger;
  readonly events: Pick<EventRecorder, 'normal' | 'warning'>;
  /** Held by namespace: its GitOpsClusters share Secrets, and must not make the same one twice. */
  readonly mutex: KeyedMutex;
  /** The reported certificates of all clusters of a namespace; undefined for a cluster not reconciled yet. */
  readonly clusterCertificates: (namespace: string) => ReadonlyMap<string, ClusterCertificates | undefined>;
}

/** The GitOpsCluster for which a step runs. Most of what a step makes is shared by all GitOpsClusters of its namespace. */
export interface TrustScope {
  readonly gitOpsCluster: GitOpsCluster;
  readonly namespace: string;
  readonly now: Date;
  readonly signal: AbortSignal;
}
