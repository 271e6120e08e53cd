import type { ManifestConfig, ManifestWork, OrphaningRule } from '../hub/index.ts';

/**
 * The delete option that keeps the namespace, which may have existed before. The clean-up Job decides about the namespace.
 * @param others further objects to keep
 */
export function orphan(
  namespace: string,
  others: readonly OrphaningRule[] = [],
): NonNullable<ManifestWork['spec']['deleteOption']> {
  const orphaningRules = [{ group: '', resource: 'namespaces', name: namespace }, ...others];
  return { propagationPolicy: 'SelectivelyOrphan', selectivelyOrphans: { orphaningRules } };
}

/** Names a CRD. */
export const crdRule = (name: string): OrphaningRule => ({
  group: 'apiextensions.k8s.io',
  resource: 'customresourcedefinitions',
  name,
});

/** Names Argo CD's project `default`. Applications may use it when the agent's work is deleted. */
export const defaultProjectRule = (namespace: string): OrphaningRule => ({
  group: 'argoproj.io',
  resource: 'appprojects',
  namespace,
  name: 'default',
});

/** Creates Argo CD's project `default` and never updates it: it belongs to the users of the cluster. */
export function keepDefaultProject(namespace: string): ManifestConfig {
  return {
    resourceIdentifier: { group: '', ...defaultProjectRule(namespace) },
    updateStrategy: { type: 'CreateOnly' },
  };
}

/** Creates a namespace and never updates it. An existing one does not get the label that marks the add-on's namespaces. */
export function keepNamespace(name: string): ManifestConfig {
  return { resourceIdentifier: { group: '', resource: 'namespaces', name }, updateStrategy: { type: 'CreateOnly' } };
}

/** Applies a ConfigMap or Secret by server-side apply, so that keys of others stay. */
export function keepOthersKeys(namespace: string, resource: 'configmaps' | 'secrets', name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: '', resource, namespace, name },
    updateStrategy: { type: 'ServerSideApply', serverSideApply: { fieldManager: 'work-agent', force: true } },
  };
}

/**
 * Status feedback of a workload besides the well-known values. Read from the same object at the same time, the values show
 * whether its pods are those that the work asks for. Numbers of ready pods alone may count former pods.
 */
export const workloadPaths = [
  { name: 'Image', path: '.spec.template.spec.containers[0].image' },
  { name: 'Generation', path: '.metadata.generation' },
  { name: 'ObservedGeneration', path: '.status.observedGeneration' },
  { name: 'UpdatedReplicas', path: '.status.updatedReplicas' },
  { name: 'Settings', path: '.spec.template.metadata.annotations.checksum/settings' },
];

/** Requests the status feedback of a Deployment. */
export function deploymentFeedback(namespace: string, name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: 'apps', resource: 'deployments', namespace, name },
    feedbackScrapeType: 'Watch',
    feedbackRules: [{ type: 'WellKnownStatus' }, { type: 'JSONPaths', jsonPaths: workloadPaths }],
  };
}

/** Requests the status feedback of a StatefulSet, for which OCM has no well-known values. */
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

/** Requests the phase of an ArgoCD, which argocd-operator writes. */
export function argoCdFeedback(namespace: string, name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: 'argoproj.io', resource: 'argocds', namespace, name },
    feedbackScrapeType: 'Watch',
    feedbackRules: [{ type: 'JSONPaths', jsonPaths: [{ name: 'Phase', path: '.status.phase' }] }],
  };
}
