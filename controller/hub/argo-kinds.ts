import { type KubeObject, resourceType } from '../../lib/kube/index.ts';

/** A copy of a hub's Application on a managed cluster, as far as it is read here. */
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

/** Whether an object is an ArgoCD, from which argocd-operator makes an Argo CD. */
export function isArgoCd({ apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>): boolean {
  return apiVersion === 'argoproj.io/v1beta1' && kind === 'ArgoCD';
}
