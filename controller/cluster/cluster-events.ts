import { type Condition, findCondition, isConditionTrue } from '../../lib/kube/index.ts';
import type { GitOpsCluster, HubEventReason, HubEvents } from '../hub/index.ts';
import type { Trouble } from '../ownership/index.ts';
import { agentNotConnected, certificateIssuedType } from './cluster-health.ts';
import type { TroubleDelays } from './cluster-trouble.ts';

/** The change of a cluster in one reconcile. */
export interface ClusterChange {
  readonly cluster: string;
  /** Conditions of the ManagedClusterAddOn before the reconcile. */
  readonly before: readonly Condition[];
  readonly conditions: readonly Condition[];
  /** The problem at the last reconcile. */
  readonly known: Trouble | undefined;
  readonly trouble: Trouble | undefined;
  /** Set at the controller's first reconcile of the cluster: an earlier controller may have recorded the problem. */
  readonly firstReconcile: { readonly startedAt: Date; readonly delays: TroubleDelays } | undefined;
}

/** Reasons of the Events for problems. Failures on the hub have one Event per condition instead, for all clusters. */
const reasons: Readonly<Record<string, HubEventReason>> = {
  ManifestApplied: 'ClusterRefusesWork',
  Available: 'ClusterUnavailable',
  AgentConnected: 'AgentDisconnected',
  [certificateIssuedType]: 'CertificateMissing',
};

/**
 * Records changes of a cluster as Events of its GitOpsCluster, each once, also after a restart of the controller: the
 * add-on's conditions, which outlive the controller, show which changes are new.
 */
export function recordClusterEvents(
  events: HubEvents,
  gitOpsCluster: GitOpsCluster,
  { cluster, before, conditions, known, trouble, firstReconcile }: ClusterChange,
): void {
  const connectedBefore = findCondition(before, 'AgentConnected');
  const wasNeverConnected = connectedBefore === undefined || connectedBefore.reason === 'NeverConnected';
  const appliedBefore = findCondition(before, 'ManifestApplied');
  // The agent may connect before its work is reported as applied. After a refusal only the connection shows whether the
  // works were applied before.
  const wasNeverApplied =
    appliedBefore?.status === 'False' ? wasNeverConnected : (appliedBefore?.reason ?? 'Progressing') === 'Progressing';
  const turned = (type: string) => isConditionTrue(conditions, type) && !isConditionTrue(before, type);
  if (wasNeverApplied && turned('ManifestApplied')) {
    events.normal(gitOpsCluster, 'ClusterEnrolled', `cluster ${cluster} has applied everything that was delivered`);
  }
  if (wasNeverConnected && turned('AgentConnected')) {
    events.normal(
      gitOpsCluster,
      'ClusterConnected',
      `the agent of cluster ${cluster} has connected to the principal for the first time`,
    );
  }
  if (trouble !== undefined && trouble.step !== known?.step) {
    const reason = trouble.reason === agentNotConnected ? reasons.AgentConnected : reasons[trouble.step];
    if (reason && !(firstReconcile && wasRecorded(trouble, firstReconcile))) {
      events.warning(gitOpsCluster, reason, `cluster ${cluster}: ${trouble.message}`);
    }
  }
  if (trouble === undefined && known !== undefined) {
    events.normal(
      gitOpsCluster,
      'ClusterRecovered',
      `cluster ${cluster} has recovered: ${known.step} was ${known.reason} since ${known.since}`,
    );
  }
}

/** Whether an earlier controller must have recorded the problem. */
function wasRecorded(
  { step, since }: Trouble,
  { startedAt, delays }: { readonly startedAt: Date; readonly delays: TroubleDelays },
): boolean {
  const ms = step === 'ManifestApplied' ? delays.refusedMs : delays.slowMs;
  return Date.parse(since) + ms < startedAt.getTime();
}
