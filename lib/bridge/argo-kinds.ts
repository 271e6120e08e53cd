import { type KubeObject, resourceType } from '../kube/index.ts';

const argo = { group: 'argoproj.io', version: 'v1alpha1', namespaced: true };

/** argoproj.io/v1alpha1 Application. */
export const argoApplications = resourceType<KubeObject>({ ...argo, kind: 'Application', plural: 'argoApplications' });
/** argoproj.io/v1alpha1 AppProject. */
export const argoAppProjects = resourceType<KubeObject>({ ...argo, kind: 'AppProject', plural: 'appprojects' });

/** Objects with this label set to `true` are never synchronised. */
const skipSync = 'argocd-agent.argoproj-labs.io/ignore-sync';

/** The selector of every list and watch of synchronised kinds, with the user's own selector added. */
export function syncSelector(own: string): string {
  return own === '' ? `${skipSync}!=true` : `${skipSync}!=true,${own}`;
}
