import { findCondition, rfc3339 } from '../../lib/kube/index.ts';
import { hasReadyEndpoint } from '../endpoint/index.ts';
import { type FleetReasons, failed, type StepReport, succeeded } from '../hub/index.ts';
import type { Fleet } from './fleet-deps.ts';

/** How long the principal may take to start before that is a failure, in milliseconds. */
const patienceMs = 60_000;
/** How long a principal that was available may be away, in milliseconds: it is replaced in less, and nobody has to act. */
const replacementMs = 20_000;

/** The condition for which {@link judgePrincipal} runs. */
export const principalCondition = 'PrincipalAvailable';

/** Whether agents that reach the principal's Service find a principal there. */
export function judgePrincipal({
  exposure,
  namespace,
  gitOpsCluster,
  now,
}: Pick<Fleet, 'exposure' | 'namespace' | 'gitOpsCluster' | 'now'>): StepReport<
  undefined,
  FleetReasons['PrincipalAvailable']
> {
  const isReady = hasReadyEndpoint(exposure);
  if (isReady === undefined) {
    return { result: succeeded(`Namespace ${namespace} has no Service of a principal whose endpoints can be checked`) };
  }
  const what = `Service ${namespace}/${exposure.service?.metadata.name}`;
  if (isReady) {
    return { result: succeeded(`${what} has ready endpoints`) };
  }
  const before = findCondition(gitOpsCluster.status?.conditions, principalCondition);
  if (before?.status === 'True') {
    // The message keeps the time: the condition itself did not change.
    const awaySince = Date.parse(/ since (\S+Z):/.exec(before.message)?.[1] ?? '') || now.getTime();
    const renewAt = awaySince + replacementMs;
    if (now.getTime() < renewAt) {
      const away = `${what} has had no ready endpoints since ${rfc3339(new Date(awaySince))}: the principal is replaced`;
      return { result: { status: 'True', reason: 'InProgress', message: away }, renewAt };
    }
  }
  const since = before?.status === 'False' ? Date.parse(before.lastTransitionTime) : now.getTime();
  const renewAt = since + patienceMs;
  const message = `${what} has no ready endpoints: agents cannot connect`;
  return now.getTime() < renewAt
    ? { result: failed(message, 'InProgress'), renewAt }
    : { result: failed(`${message}; check the pods of the principal`) };
}
