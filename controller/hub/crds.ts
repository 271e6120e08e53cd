import { wellKnown } from '../../lib/base/index.ts';
import type { CustomResourceDefinition } from '../../lib/kube/index.ts';

/** Argo CD's kinds that a managed cluster needs, as CRD names. */
const argoCdKinds = ['applications.argoproj.io', 'appprojects.argoproj.io'] as const;

/** What an autonomous agent's users write besides. */
const autonomousKinds = ['applicationsets.argoproj.io'] as const;

/** Argo CD's kinds that an agent works with, as CRD names. */
export function kindsOf(mode: 'managed' | 'autonomous'): string[] {
  return [...argoCdKinds, ...(mode === 'autonomous' ? autonomousKinds : [])];
}

/** What argocd-operator v0.18 works on and looks at: it does not start where one of them is missing. */
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
 * A CRD of the hub as it is delivered: without the texts for humans, which make two thirds of it, without conversion (the
 * hub's webhook is out of reach) and without what the hub's API server wrote.
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

/** A schema without its descriptions. A property called `description` stays: it is a schema, not a text. */
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
