import { type Condition, findCondition, isConditionTrue, keyOf } from '../../lib/kube/index.ts';
import { eventMessage, type FleetReporter } from '../../lib/ops/index.ts';
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
export function recordClusterEvents(events: HubEvents, gitOpsCluster: GitOpsCluster, change: ClusterChange): void {
  const { cluster, before, conditions } = change;
  if (isEnrolledNow(change)) {
    events.normal(gitOpsCluster, 'ClusterEnrolled', `cluster ${cluster} has applied everything that was delivered`);
  }
  if (wasNeverConnected(before) && turned('AgentConnected', before, conditions)) {
    events.normal(
      gitOpsCluster,
      'ClusterConnected',
      `the agent of cluster ${cluster} has connected to the principal for the first time`,
    );
  }
  const begun = begunTrouble(change);
  const reason = begun?.reason === agentNotConnected ? reasons.AgentConnected : reasons[begun?.step ?? ''];
  if (begun && reason) {
    events.warning(gitOpsCluster, reason, `cluster ${cluster}: ${begun.message}`);
  }
  const ended = endedTrouble(change);
  if (ended) {
    events.normal(
      gitOpsCluster,
      'ClusterRecovered',
      `cluster ${cluster} has recovered: ${ended.step} was ${ended.reason} since ${ended.since}`,
    );
  }
}

/** Reports a change of a cluster to those who follow the fleet, under the same rules as {@link recordClusterEvents}. */
export function reportClusterChange(
  fleetEvents: FleetReporter | undefined,
  gitOpsCluster: GitOpsCluster,
  change: ClusterChange,
): void {
  const { cluster } = change;
  const subject = clusterSubject(cluster);
  const about = { cluster, gitOpsCluster: keyOf(gitOpsCluster) };
  if (isEnrolledNow(change)) {
    fleetEvents?.report('cluster-enrolled', subject, about);
  }
  const begun = begunTrouble(change);
  if (begun) {
    const { step, reason, since } = begun;
    const message = eventMessage(begun.message);
    fleetEvents?.report('cluster-failing', subject, { ...about, step, reason, since, message });
  }
  const ended = endedTrouble(change);
  if (ended) {
    fleetEvents?.report('cluster-recovered', subject, { ...about, step: ended.step, since: ended.since });
  }
}

/** The subject of an event about a cluster. */
export function clusterSubject(cluster: string): string {
  return `clusters/${cluster}`;
}

/** Whether the cluster has everything that was delivered, for the first time. */
function isEnrolledNow({ before, conditions }: ClusterChange): boolean {
  const appliedBefore = findCondition(before, 'ManifestApplied');
  // The agent may connect before its work is reported as applied. After a refusal only the connection shows whether the
  // works were applied before.
  const wasNeverApplied =
    appliedBefore?.status === 'False'
      ? wasNeverConnected(before)
      : (appliedBefore?.reason ?? 'Progressing') === 'Progressing';
  return wasNeverApplied && turned('ManifestApplied', before, conditions);
}

function wasNeverConnected(before: readonly Condition[]): boolean {
  const connected = findCondition(before, 'AgentConnected');
  return connected === undefined || connected.reason === 'NeverConnected';
}

function turned(type: string, before: readonly Condition[], conditions: readonly Condition[]): boolean {
  return isConditionTrue(conditions, type) && !isConditionTrue(before, type);
}

/** The problem of a cluster, if it is another one than before and no earlier controller has told of it. */
function begunTrouble({ known, trouble, firstReconcile }: ClusterChange): Trouble | undefined {
  const isNews = trouble !== undefined && trouble.step !== known?.step;
  return isNews && !(firstReconcile && wasRecorded(trouble, firstReconcile)) ? trouble : undefined;
}

/** The problem that a cluster had and has not any more. */
function endedTrouble({ known, trouble }: ClusterChange): ClusterChange['known'] {
  return trouble === undefined ? known : undefined;
}

/** Whether an earlier controller must have recorded the problem. */
function wasRecorded(
  { step, since }: Trouble,
  { startedAt, delays }: { readonly startedAt: Date; readonly delays: TroubleDelays },
): boolean {
  const ms = step === 'ManifestApplied' ? delays.refusedMs : delays.slowMs;
  return Date.parse(since) + ms < startedAt.getTime();
}
