import { wellKnown } from '../base/index.ts';
import { type KubeObject, resourceType } from '../kube/index.ts';

const argo = { group: 'argoproj.io', version: 'v1alpha1', namespaced: true };

/** argoproj.io/v1alpha1 Application. */
export const argoApplications = resourceType<KubeObject>({ ...argo, kind: 'Application', plural: 'applications' });
/** argoproj.io/v1alpha1 AppProject. */
export const argoAppProjects = resourceType<KubeObject>({ ...argo, kind: 'AppProject', plural: 'appprojects' });

/** The selector of what {@link syncSelector} leaves out because of its label alone. */
export function keptOutSelector(own: string): string {
  const selector = `${wellKnown.ignoreSyncLabel}=true`;
  return own === '' ? selector : `${selector},${own}`;
}

/** The selector of every list and watch of synchronised kinds, with the user's own selector added. */
export function syncSelector(own: string): string {
  const selector = `${wellKnown.ignoreSyncLabel}!=true`;
  return own === '' ? selector : `${selector},${own}`;
}
