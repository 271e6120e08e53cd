import { type Condition, type EventRecorder, findCondition, isConditionTrue } from '../../lib/kube/index.ts';
import type { Trouble } from '../fleet/steps.ts';
import type { GitOpsCluster } from '../hub/resources.ts';
import type { Patience } from './cluster-trouble.ts';

/** What became of a cluster in one reconcile. */
export interface ClusterNews {
  readonly cluster: string;
  /** Of the ManagedClusterAddOn. */
  readonly before: readonly Condition[];
  readonly conditions: readonly Condition[];
  /** What was wrong when it was last looked at. */
  readonly known: Trouble | undefined;
  readonly trouble: Trouble | undefined;
  /** Undefined when this controller has looked at the cluster before: then everything is news. */
  readonly firstLook: { readonly startedAt: Date; readonly patience: Patience } | undefined;
}

/** Reasons of the Events that tell of trouble; what fails on the hub is told once for all clusters, by condition. */
const reasons: Readonly<Record<string, string>> = {
  ManifestApplied: 'ClusterRefusesWork',
  Available: 'ClusterUnavailable',
  AgentConnected: 'AgentDisconnected',
};

/**
 * Tells what operators must know of a cluster, as Events of its GitOpsCluster: once each, whatever is restarted in
 * between. What is news shows in the add-on's conditions, which outlive the controller.
 */
export function tellOfCluster(
  events: Pick<EventRecorder, 'normal' | 'warning'>,
  gitOpsCluster: GitOpsCluster,
  { cluster, before, conditions, known, trouble, firstLook }: ClusterNews,
): void {
  const connectedBefore = findCondition(before, 'AgentConnected');
  const wasNeverConnected = connectedBefore === undefined || connectedBefore.reason === 'NeverConnected';
  const appliedBefore = findCondition(before, 'ManifestApplied');
  // The agent may be heard of before the work that it came with is. After a refusal nothing else tells whether it was the first time.
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
    const reason = reasons[trouble.step];
    if (reason && !(firstLook && wasTold(trouble, firstLook))) {
      events.warning(gitOpsCluster, reason, `cluster ${cluster}: ${trouble.message}`);
    }
  }
  if (trouble === undefined && known !== undefined) {
    events.normal(
      gitOpsCluster,
      'ClusterRecovered',
      `cluster ${cluster} is well again: ${known.step} was ${known.reason}`,
    );
  }
}

/** Whether the controller that worked before this one has told it. */
function wasTold({ step, since }: Trouble, { startedAt, patience }: { startedAt: Date; patience: Patience }): boolean {
  const ms = step === 'ManifestApplied' ? patience.refusedMs : patience.slowMs;
  return Date.parse(since) + ms < startedAt.getTime();
}
