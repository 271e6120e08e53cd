import { findCondition } from '../../lib/kube/index.ts';
import { type FleetReasons, failed, namesText, type StepResult, succeeded } from '../hub/index.ts';
import { unreadParams } from '../render/index.ts';
import { releaseOf } from '../spec/index.ts';
import type { Fleet, FleetDeps } from './fleet-deps.ts';

/** The condition about settings. A GitOpsCluster without settings does not have it. */
export const settingsCondition = 'ClusterSettingsRead';

/** Reports settings that stop all deployments, or have no effect: parameters that no delivered program reads, most likely by mistake. */
export function judgeSettings(
  deps: Pick<FleetDeps, 'caches' | 'delivery' | 'templates'>,
  { gitOpsCluster, namespace, spec }: Pick<Fleet, 'gitOpsCluster' | 'namespace' | 'spec'>,
): StepResult<FleetReasons['ClusterSettingsRead']> {
  const { settings = {} } = spec.addOn.value ? releaseOf(deps, namespace, spec.addOn.value).version : {};
  // The worse one first: nothing is deployed.
  if (settings.replicas?.repoServer === 0 && settings.params?.['repo.server'] === undefined) {
    return failed(
      'replicas.repoServer is 0, and params has no repo.server: the clusters have no program that makes manifests; set one of them (spec.argoCDAgentAddon.clusterSettings)',
    );
  }
  const unread = unreadParams(deps.templates, settings);
  if (unread.length > 0) {
    const message = `No program that the clusters get reads ${namesText(unread)}: look at the spelling, or remove the keys (spec.argoCDAgentAddon.clusterSettings; the chart's value controller.clusterSettings)`;
    return { status: 'False', reason: 'UnknownParameters', message };
  }
  const isNew = findCondition(gitOpsCluster.status?.conditions, settingsCondition) === undefined;
  return isNew && Object.keys(settings).length === 0 ? undefined : succeeded('All parameters are read by a program');
}
