import type { ManifestConfig, ManifestWork, OrphaningRule } from '../hub/index.ts';

/**
 * The namespace is not the works' to delete: it may have been there before. The clean-up Job decides.
 * @param crds others that stay, by name
 */
export function orphan(
  namespace: string,
  crds: readonly string[] = [],
): NonNullable<ManifestWork['spec']['deleteOption']> {
  const orphaningRules: OrphaningRule[] = [
    { group: '', resource: 'namespaces', name: namespace },
    ...crds.map((name) => ({ group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions', name })),
  ];
  return { propagationPolicy: 'SelectivelyOrphan', selectivelyOrphans: { orphaningRules } };
}

/** A namespace that exists is left as it is: above all it does not get the label by which it would be taken for ours. */
export function keepNamespace(name: string): ManifestConfig {
  return { resourceIdentifier: { group: '', resource: 'namespaces', name }, updateStrategy: { type: 'CreateOnly' } };
}

/** What others add to a ConfigMap or Secret stays. */
export function keepOthersKeys(namespace: string, resource: 'configmaps' | 'secrets', name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: '', resource, namespace, name },
    updateStrategy: { type: 'ServerSideApply', serverSideApply: { fieldManager: 'work-agent', force: true } },
  };
}

/**
 * Values of a workload that come back beside the well-known ones. From one look at one object, they tell whether its
 * pods are those that this work asks for: the numbers of ready pods alone may be of those before.
 */
export const workloadPaths = [
  { name: 'Image', path: '.spec.template.spec.containers[0].image' },
  { name: 'Generation', path: '.metadata.generation' },
  { name: 'ObservedGeneration', path: '.status.observedGeneration' },
  { name: 'UpdatedReplicas', path: '.status.updatedReplicas' },
];

/** Asks for the status of a Deployment. */
export function deploymentFeedback(namespace: string, name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: 'apps', resource: 'deployments', namespace, name },
    feedbackScrapeType: 'Watch',
    feedbackRules: [{ type: 'WellKnownStatus' }, { type: 'JSONPaths', jsonPaths: workloadPaths }],
  };
}

/** Asks for the status of a StatefulSet, which OCM has no well-known values of. */
export function statefulSetFeedback(namespace: string, name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: 'apps', resource: 'statefulsets', namespace, name },
    feedbackScrapeType: 'Watch',
    feedbackRules: [
      {
        type: 'JSONPaths',
        jsonPaths: [
          { name: 'ReadyReplicas', path: '.status.readyReplicas' },
          { name: 'Replicas', path: '.status.replicas' },
          ...workloadPaths,
        ],
      },
    ],
  };
}

/** Asks for the phase of an ArgoCD, which argocd-operator writes. */
export function argoCdFeedback(namespace: string, name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: 'argoproj.io', resource: 'argocds', namespace, name },
    feedbackScrapeType: 'Watch',
    feedbackRules: [{ type: 'JSONPaths', jsonPaths: [{ name: 'Phase', path: '.status.phase' }] }],
  };
}
