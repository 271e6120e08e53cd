import { addOnName, type Caches, type ConfigReference, type ManagedClusterAddOn } from '../hub/index.ts';
import { type AddOnConfig, parseAddOnConfig } from '../render/index.ts';

/** An object that the works of a cluster need does not exist or is invalid. */
export class NotDeliverableError extends Error {
  override readonly name = 'NotDeliverableError';
  readonly code = 'NOT_DELIVERABLE';
}

/** The cluster whose settings are read, and the caches to read from. */
export interface ConfigScope {
  readonly caches: Pick<Caches, 'addOns' | 'addOnRegistrations' | 'configs' | 'managedClusters'>;
  readonly cluster: string;
}

/** The reference to a cluster's AddOnDeploymentConfig: its add-on's own, else the add-on's default. */
export function configReferenceOf(
  { caches }: Pick<ConfigScope, 'caches'>,
  addOn: ManagedClusterAddOn | undefined,
): ConfigReference | undefined {
  const own = addOn?.spec?.configs?.find(isConfig);
  if (own) {
    return own;
  }
  const supported = caches.addOnRegistrations.list()[0]?.spec?.supportedConfigs ?? [];
  const found = supported.find(isConfig);
  return found?.defaultConfig
    ? { group: found.group ?? '', resource: found.resource, ...found.defaultConfig }
    : undefined;
}

const isConfig = ({ resource }: { resource: string }) => resource === 'addondeploymentconfigs';
const isOwn = (addOn: ManagedClusterAddOn | undefined) => addOn?.spec?.configs?.some(isConfig) ?? false;

/**
 * The workload settings of a cluster.
 * @throws NotDeliverableError when a user named settings that do not exist, or they are invalid
 */
export function configOf({ caches, cluster }: ConfigScope): AddOnConfig {
  const addOn = caches.addOns.get({ namespace: cluster, name: addOnName });
  const reference = configReferenceOf({ caches }, addOn);
  const config = reference && caches.configs.get({ namespace: reference.namespace, name: reference.name });
  // The default may be set before the object exists. An object that a user named must exist.
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
