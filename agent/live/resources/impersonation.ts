import { type Application, type AppProject, impersonatedUser } from '../../../lib/argocd/index.ts';
import type { Informer, KubeObject } from '../../../lib/kube/index.ts';

/**
 * Tells as which users Argo CD may act on this cluster: those that the AppProject of an Application of this cluster names for
 * it. The AppProjects are the cluster's own, so this does not depend on what the hub says they are.
 * @param sources the caches of this cluster, and Argo CD's namespace
 */
export function impersonationRule(sources: {
  readonly applications: Pick<Informer<KubeObject>, 'list'>;
  readonly appProjects: Pick<Informer<KubeObject>, 'get'>;
  readonly namespace: string;
}): (user: string) => boolean {
  const { applications, appProjects, namespace } = sources;
  const isUserOf = (application: Application, user: string) => {
    const project = appProjects.get({ namespace, name: application.spec.project || 'default' });
    return project !== undefined && impersonatedUser(application, project as AppProject, namespace) === user;
  };
  return (user) => applications.list().some((application) => isUserOf(application as Application, user));
}
