import { createHash } from 'node:crypto';
import { canonicalJson } from '../../lib/base/index.ts';
import type { AddOnCondition, AddOnDeploymentConfig, ManagedClusterAddOn, ManifestWork } from '../hub/index.ts';
import { unmatchedContainers } from '../render/index.ts';
import { type ConfigScope, configOf, configReferenceOf } from './cluster-config.ts';

/** Annotation on a work: hashes of its configurations, as OCM's add-on manager writes it. */
export const configHashAnnotation = 'open-cluster-management.io/config-spec-hash';

/** Most container IDs in a condition, which takes 32 KiB. */
const mostNamed = 10;

/** The condition Configured: whether the configuration is valid, and which of its container IDs match no container. */
export function configured(scope: ConfigScope, works: readonly ManifestWork[]): AddOnCondition {
  const type = 'Configured';
  let config: ReturnType<typeof configOf>;
  try {
    config = configOf(scope);
  } catch (error) {
    return { type, status: 'False', reason: 'ConfigurationInvalid', message: (error as Error).message };
  }
  const manifests = works.flatMap(({ spec }) => spec.workload.manifests);
  const unmatched = manifests.length > 0 ? unmatchedContainers(manifests, config) : [];
  const more = unmatched.length > mostNamed ? ` and ${unmatched.length - mostNamed} more` : '';
  const names = `${unmatched.slice(0, mostNamed).join(', ')}${more}`;
  const note = unmatched.length > 0 ? `; no container is ${names} (spec.resourceRequirements)` : '';
  return { type, status: 'True', reason: 'ConfigurationsConfigured', message: `Configurations configured${note}` };
}

/**
 * The configurations of an add-on with their hashes. `lastAppliedConfig` becomes `desiredConfig` once the works made with
 * it are applied.
 */
export function configReferences(
  scope: ConfigScope,
  addOn: ManagedClusterAddOn,
  works: readonly ManifestWork[],
  isCompleted: boolean,
): NonNullable<NonNullable<ManagedClusterAddOn['status']>['configReferences']> {
  const found = referencedConfig(scope, addOn);
  if (found === undefined) {
    return [];
  }
  const { reference, config } = found;
  const { group = '', resource, name, namespace } = reference;
  const named = { name, ...(namespace ? { namespace } : {}) };
  const desiredConfig = { ...named, specHash: configHash(config) };
  const previous = addOn.status?.configReferences?.find((one) => one.resource === resource && one.name === name);
  const noted = configHashes(scope, addOn);
  const isApplied =
    isCompleted && works.every(({ metadata }) => metadata.annotations?.[configHashAnnotation] === noted);
  const lastAppliedConfig = isApplied ? desiredConfig : previous?.lastAppliedConfig;
  return [{ group, resource, ...named, desiredConfig, ...(lastAppliedConfig ? { lastAppliedConfig } : {}) }];
}

/** The value of that annotation: `{"<resource>.<group>/<namespace>/<name>": "<hash>"}`. */
export function configHashes(scope: ConfigScope, addOn: ManagedClusterAddOn | undefined): string {
  const found = referencedConfig(scope, addOn);
  if (found === undefined) {
    return '{}';
  }
  const { group = '', resource, namespace = '', name } = found.reference;
  return JSON.stringify({ [`${resource}.${group}/${namespace}/${name}`]: configHash(found.config) });
}

/**
 * OCM's hash of a configuration: hex SHA-256 of the object without kind, metadata and status, in the JSON that Go
 * marshals.
 */
export function configHash(config: AddOnDeploymentConfig): string {
  const {
    apiVersion: _,
    kind: __,
    metadata: ___,
    status: ____,
    ...content
  } = config as AddOnDeploymentConfig & {
    status?: unknown;
  };
  return createHash('sha256').update(canonicalJson(content)).digest('hex');
}

function referencedConfig(scope: ConfigScope, addOn: ManagedClusterAddOn | undefined) {
  const reference = configReferenceOf(scope, addOn);
  const config = reference && scope.caches.configs.get({ namespace: reference.namespace, name: reference.name });
  return config && { reference, config };
}
