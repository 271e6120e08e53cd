import { addOnName } from '../hub/names.ts';
import type { ConfigReference, ManagedClusterAddOn } from '../hub/resources.ts';
import { type AddOnConfig, parseAddOnConfig } from '../render/addon-config.ts';
import type { ClusterContext } from './cluster-context.ts';

/** What the works of a cluster need is not there. */
export class NotDeliverableError extends Error {
  override readonly name = 'NotDeliverableError';
  readonly code = 'NOT_DELIVERABLE';
}

/** The AddOnDeploymentConfig that applies to a cluster: named by its add-on, else the add-on's default. */
export function configReferenceOf(
  context: Pick<ClusterContext, 'caches'>,
  addOn: ManagedClusterAddOn | undefined,
): ConfigReference | undefined {
  const own = addOn?.spec?.configs?.find(isConfig);
  if (own) {
    return own;
  }
  const supported = context.caches.addOnRegistrations.list()[0]?.spec?.supportedConfigs ?? [];
  const found = supported.find(isConfig);
  return found?.defaultConfig
    ? { group: found.group ?? '', resource: found.resource, ...found.defaultConfig }
    : undefined;
}

const isConfig = ({ resource }: { resource: string }) => resource === 'addondeploymentconfigs';
const isOwn = (addOn: ManagedClusterAddOn | undefined) => addOn?.spec?.configs?.some(isConfig) ?? false;

/**
 * The settings for workloads that apply to a cluster.
 * @throws NotDeliverableError when they are not there or make no sense
 */
export function configOf(context: Pick<ClusterContext, 'caches' | 'cluster'>): AddOnConfig {
  const { caches, cluster } = context;
  const addOn = caches.addOns.get({ namespace: cluster, name: addOnName });
  const reference = configReferenceOf(context, addOn);
  const config = reference && caches.configs.get({ namespace: reference.namespace, name: reference.name });
  // The default may be named before it exists; what a user asked for must not be left out silently.
  if (reference && config === undefined && isOwn(addOn)) {
    throw new NotDeliverableError(
      `AddOnDeploymentConfig ${reference.namespace}/${reference.name}, named by ManagedClusterAddOn ${cluster}/${addOnName}, does not exist`,
    );
  }
  const { value, problem } = parseAddOnConfig(config, caches.managedClusters.get({ name: cluster }));
  if (problem !== undefined) {
    throw new NotDeliverableError(problem);
  }
  return value;
}
