import { type AddOnCondition, type FleetReasons, namesText, type StepResult } from '../hub/index.ts';
import { describeVersion, type Foundation } from '../spec/index.ts';
import type { Phase, RolloutPlan } from './plan.ts';

/** The condition Progressing of an add-on during a rollout; undefined when the state of its works determines it. */
export function rolloutProgress(phase: Phase, { release, key }: Foundation): AddOnCondition<'Progressing'> | undefined {
  const type = 'Progressing';
  const version = describeVersion(release.version);
  if (phase === 'Waiting') {
    const message = `waiting for its turn in the rollout of ${version} by GitOpsCluster ${key}`;
    return { type, status: 'True', reason: 'WaitingForRollout', message };
  }
  if (phase !== 'TimeOut') {
    return undefined;
  }
  const message = `${version} is delivered, but not up and running in the time that rolloutStrategy.progressDeadline gives`;
  return { type, status: 'False', reason: 'Failed', message };
}

/** The condition ClustersUpToDate of a GitOpsCluster. */
export function rolloutCondition(
  plan: RolloutPlan,
  { release }: Pick<Foundation, 'release'>,
): StepResult<FleetReasons['ClustersUpToDate']> {
  const version = describeVersion(release.version);
  const { total, start, running, failed, waiting, unreachable, isStopped } = plan;
  const behind = start.length + waiting.length;
  if (total === 0) {
    return { status: 'True', reason: 'NoClusters', message: 'No clusters are enrolled' };
  }
  const done = total - behind - running.length - failed.length - unreachable.length;
  if (behind + running.length === 0) {
    const unwell = failed.length > 0 ? `; not well with it: ${namesText(failed)}` : '';
    const absent = unreachable.length > 0 ? `; not reporting: ${namesText(unreachable)}` : '';
    const have = done + failed.length;
    const message = `${have} of ${total} clusters have ${version}${unwell}${absent}`;
    return { status: 'True', reason: 'Success', message };
  }
  const parts = [
    `${done} of ${total} clusters done`,
    ...(running.length > 0 ? [`under way: ${namesText(running)}`] : []),
    ...(failed.length > 0 ? [`failed: ${namesText(failed)}`] : []),
    ...(behind > 0 ? [`${behind} to follow`] : []),
    ...(unreachable.length > 0 ? [`not reporting: ${namesText(unreachable)}`] : []),
  ].join(', ');
  if (!isStopped) {
    return { status: 'False', reason: 'InProgress', message: `Rolling out ${version}: ${parts}` };
  }
  const advice =
    'it goes on when these clusters are well, or with a higher maxFailures in spec.argoCDAgentAddon.rolloutStrategy';
  return { status: 'False', reason: 'Failed', message: `The rollout of ${version} is stopped: ${parts}; ${advice}` };
}
