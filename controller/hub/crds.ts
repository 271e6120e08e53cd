import { wellKnown } from '../../lib/base/index.ts';
import type { CustomResourceDefinition } from '../../lib/kube/index.ts';

/** Names of the Argo CD CRDs that every managed cluster needs. */
const argoCdKinds = ['applications.argoproj.io', 'appprojects.argoproj.io'] as const;

/** Names of the CRDs that the users of an autonomous agent need besides. */
const autonomousKinds = ['applicationsets.argoproj.io'] as const;

/** Names of the Argo CD CRDs that an agent works with. */
export function kindsOf(mode: 'managed' | 'autonomous'): string[] {
  return [...argoCdKinds, ...(mode === 'autonomous' ? autonomousKinds : [])];
}

/** CRDs that argocd-operator v0.18 watches. It does not start when one of them is missing. */
export const operatorKinds = [
  ...argoCdKinds,
  ...autonomousKinds,
  'argocds.argoproj.io',
  'argocdexports.argoproj.io',
  'namespacemanagements.argoproj.io',
  'notificationsconfigurations.argoproj.io',
  'imageupdaters.argocd-image-updater.argoproj.io',
] as const;

/**
 * A CRD of the hub for delivery: without descriptions, which make two thirds of it, without conversion (managed clusters
 * cannot reach the hub's webhook) and without the metadata of the hub's API server.
 */
export function deliverableCrd(crd: CustomResourceDefinition): CustomResourceDefinition {
  const {
    conversion: _,
    preserveUnknownFields: __,
    ...spec
  } = crd.spec ?? {
    group: '',
    names: { kind: '', plural: '' },
    scope: 'Namespaced',
    versions: [],
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: crd.metadata.name,
      labels: { 'app.kubernetes.io/name': crd.metadata.name, [wellKnown.partOfLabel]: 'argocd' },
    },
    spec: withoutDescriptions(spec) as NonNullable<CustomResourceDefinition['spec']>,
  };
}

/** A schema without descriptions. A property with the name `description` stays: it is a schema, not a text. */
function withoutDescriptions(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(withoutDescriptions);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, part]) => key !== 'description' || typeof part !== 'string')
      .map(([key, part]) => [key, withoutDescriptions(part)]),
  );
}
