import { type KubeObject, resourceType } from '../../lib/kube/index.ts';

/** An Application on a managed cluster, with the fields that are read here. */
export interface ManagedApplication extends KubeObject {
  status?: { resources?: { kind?: string; namespace?: string; name?: string }[] };
}

const argoproj = { group: 'argoproj.io', version: 'v1alpha1', namespaced: true };

/** argoproj.io/v1alpha1 Application. */
export const argoCdApplications = resourceType<KubeObject>({
  ...argoproj,
  kind: 'Application',
  plural: 'applications',
});
/** argoproj.io/v1alpha1 AppProject. */
export const argoProjects = resourceType({ ...argoproj, kind: 'AppProject', plural: 'appprojects' });
/** argoproj.io/v1alpha1 ApplicationSet. */
export const argoApplicationSets = resourceType({ ...argoproj, kind: 'ApplicationSet', plural: 'applicationsets' });

/** Whether an object is an ArgoCD, from which argocd-operator deploys Argo CD. */
export function isArgoCd({ apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>): boolean {
  return apiVersion === 'argoproj.io/v1beta1' && kind === 'ArgoCD';
}
