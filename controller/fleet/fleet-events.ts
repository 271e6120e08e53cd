import { type EventRecorder, findCondition, keyOf } from '../../lib/kube/index.ts';
import type { GitOpsCluster } from '../hub/resources.ts';
import { conflictText, skippedText } from './placement-steps.ts';
import type { ClusterSummary } from './steps.ts';

/** What stays wrong in changing words (counts, names) is told again after this time, not with every word. */
const againAfterMs = 60_000;

/** Tells what operators must know of a GitOpsCluster as a whole, as Events of it. */
export class FleetEvents {
  readonly #events: Pick<EventRecorder, 'normal' | 'warning'>;
  /** By GitOpsCluster and condition: when it was last told. */
  readonly #toldAt = new Map<string, Map<string, number>>();

  constructor(events: Pick<EventRecorder, 'normal' | 'warning'>) {
    this.#events = events;
  }

  /**
   * Compares a status that was just written with the one before: conditions that turned bad, that all is well again,
   * clusters that are skipped or belong to somebody else. What the status said before a restart is not told again.
   */
  tell(
    gitOpsCluster: GitOpsCluster,
    status: NonNullable<GitOpsCluster['status']>,
    { skipped, lost }: Pick<ClusterSummary, 'skipped' | 'lost'>,
    now: Date,
  ): void {
    for (const { type, status: value, reason, message } of status.conditions ?? []) {
      const before = findCondition(gitOpsCluster.status?.conditions, type);
      if (before?.status === value && before.message === message) {
        continue;
      }
      if (type === 'Ready') {
        if (value === 'True' && before?.status !== 'True') {
          this.#events.normal(gitOpsCluster, 'Ready', message);
        }
      } else if (value === 'False' && reason !== 'InProgress') {
        const isNew = before?.status !== 'False';
        if (this.#isDue(gitOpsCluster, type, isNew, now)) {
          this.#events.warning(gitOpsCluster, `${type}Failed`, message);
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

  /** Forgets a GitOpsCluster that is gone. */
  forget(key: string): void {
    this.#toldAt.delete(key);
  }

  #isDue(gitOpsCluster: GitOpsCluster, type: string, isNew: boolean, now: Date): boolean {
    const key = keyOf(gitOpsCluster);
    const told = this.#toldAt.get(key) ?? new Map<string, number>();
    this.#toldAt.set(key, told);
    if (!isNew && now.getTime() - (told.get(type) ?? 0) < againAfterMs) {
      return false;
    }
    told.set(type, now.getTime());
    return true;
  }
}
