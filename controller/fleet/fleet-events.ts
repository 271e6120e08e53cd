import { findCondition, keyOf } from '../../lib/kube/index.ts';
import { eventMessage, type FleetReporter } from '../../lib/ops/index.ts';
import type { FleetConditionType, GitOpsCluster, HubEvents } from '../hub/index.ts';
import type { ClusterSummary } from '../ownership/index.ts';
import { conflictText, skippedText } from './placement-steps.ts';

/** How soon a problem whose message changes (counts, names) is recorded again, in milliseconds. */
const repeatAfterMs = 60_000;

/** Records Events about GitOpsClusters as a whole. */
export class FleetEvents {
  readonly #events: HubEvents;
  readonly #fleetEvents: FleetReporter | undefined;
  /** When the last Event was recorded, by GitOpsCluster and condition. */
  readonly #recordedAt = new Map<string, Map<string, number>>();

  /** @param fleetEvents learns of rollouts that stop */
  constructor(events: HubEvents, fleetEvents?: FleetReporter) {
    this.#events = events;
    this.#fleetEvents = fleetEvents;
  }

  /**
   * Compares a status that was just written with the previous one. Records Events for conditions that became bad, for the
   * return to Ready, and for clusters that are skipped or belong to another GitOpsCluster. Problems in the status from before
   * a restart are not recorded again.
   */
  record(
    gitOpsCluster: GitOpsCluster,
    status: NonNullable<GitOpsCluster['status']>,
    { skipped, lost }: Pick<ClusterSummary, 'skipped' | 'lost'>,
    now: Date,
  ): void {
    for (const { type, status: value, reason, message } of status.conditions ?? []) {
      const before = findCondition(gitOpsCluster.status?.conditions, type);
      if (before?.status === value && before.reason === reason && before.message === message) {
        continue;
      }
      if (type === 'Ready') {
        if (value === 'True' && before?.status !== 'True') {
          this.#events.normal(gitOpsCluster, 'Ready', message);
        }
      } else if (value === 'False' && reason !== 'InProgress' && reason !== 'Conflict') {
        const isNew = before?.status !== 'False' || before.reason !== reason;
        if (type === 'ClustersUpToDate' && isNew) {
          const key = keyOf(gitOpsCluster);
          const data = { gitOpsCluster: key, message: eventMessage(message) };
          this.#fleetEvents?.report('rollout-stopped', `gitopsclusters/${key}`, data);
        }
        // Each failing cluster has an Event of its own.
        if (type === 'ClustersReady' && !isNew) {
          continue;
        }
        if (this.#isDue(gitOpsCluster, type, isNew, now)) {
          const own = type as Exclude<FleetConditionType, 'Ready'>;
          this.#events.warning(gitOpsCluster, `${own}Failed`, message);
        }
      }
      if (type !== 'PlacementEvaluated') {
        continue;
      }
      const [skips, conflicts] = [skippedText(skipped), conflictText(lost)];
      if (skips && message.includes(skips) && !before?.message.includes(skips)) {
        this.#events.normal(gitOpsCluster, 'ClusterSkipped', skips);
      }
      if (conflicts && message.includes(conflicts) && !before?.message.includes(conflicts)) {
        this.#events.warning(gitOpsCluster, 'ClusterConflict', conflicts);
      }
    }
  }

  /** Forgets a deleted GitOpsCluster. */
  forget(key: string): void {
    this.#recordedAt.delete(key);
  }

  #isDue(gitOpsCluster: GitOpsCluster, type: string, isNew: boolean, now: Date): boolean {
    const key = keyOf(gitOpsCluster);
    const recorded = this.#recordedAt.get(key) ?? new Map<string, number>();
    this.#recordedAt.set(key, recorded);
    if (!isNew && now.getTime() - (recorded.get(type) ?? 0) < repeatAfterMs) {
      return false;
    }
    recorded.set(type, now.getTime());
    return true;
  }
}
