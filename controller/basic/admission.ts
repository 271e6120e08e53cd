import {
  type AppProject,
  admitsNamespace,
  appProjectSchema,
  matchesAny,
  permitsDestination,
} from '../../lib/argocd/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { problemsOf } from '../hub/index.ts';
import type { BasicDeps } from './basic-deps.ts';
import { clusterServer, pullKeys } from './names.ts';
import { type PullApplication, projectOf } from './resources.ts';
import type { PullTarget } from './target.ts';

/** What admission looks at. */
export type AdmissionDeps = Pick<BasicDeps, 'caches' | 'argoCdNamespace' | 'applicationNamespaces'>;

/**
 * Why the hub's rules do not let an Application reach its target, as a message for its owner. Undefined when they do.
 *
 * Applications in Argo CD's own namespace are admitted, as in Argo CD. Applications of another namespace belong to a
 * tenant. Argo CD's rules for them ("applications in any namespace") apply: the operator lists the namespace, and the
 * AppProject admits the namespace and the destination. The destination is the managed cluster. The copy lies in a
 * namespace of the same name on the cluster: in Argo CD's namespace there, `sourceNamespaces` would not apply to it.
 */
export function objectionTo(application: PullApplication, target: PullTarget, deps: AdmissionDeps): string | undefined {
  const { namespace = '' } = application.metadata;
  const { argoCdNamespace, applicationNamespaces } = deps;
  if (namespace === argoCdNamespace) {
    return undefined;
  }
  if (!matchesAny(applicationNamespaces, namespace)) {
    return `Applications of namespace ${namespace} are not served: --application-namespaces does not list it; use namespace ${argoCdNamespace}, or ask the operator of the hub to list ${namespace}`;
  }
  if (target.namespace !== namespace) {
    return `annotation ${pullKeys.appNamespace} is ${JSON.stringify(target.namespace)}: an Application of namespace ${namespace} keeps its namespace on the cluster; take the annotation off`;
  }
  const name = projectOf(application);
  const found = deps.caches.projects.get({ namespace: argoCdNamespace, name });
  if (found === undefined) {
    return `AppProject ${name} does not exist in namespace ${argoCdNamespace}`;
  }
  const parsed = appProjectSchema.safeParse(found);
  if (!parsed.success) {
    return `AppProject ${name} cannot be read: ${problemsOf(parsed.error)}`;
  }
  return objectionOf(parsed.data, application, target, deps);
}

function objectionOf(
  project: AppProject,
  application: PullApplication,
  { cluster }: PullTarget,
  { caches }: AdmissionDeps,
): string | undefined {
  const { namespace: own = '', annotations = {} } = application.metadata;
  const { name } = project.metadata;
  if (!admitsNamespace(project, own)) {
    return `AppProject ${name} does not admit Applications of namespace ${own} (spec.sourceNamespaces)`;
  }
  const namespace = application.spec?.destination?.namespace ?? '';
  const secrets = caches.clusterSecrets.byIndex('name', cluster);
  const servers = secrets.map(({ data }) => secretText(data, 'server') ?? '');
  // Every known address of the cluster counts: a denial by any of them must hold.
  const places = (servers.length > 0 ? servers : [clusterServer(cluster)]).map((server) => ({ name: cluster, server }));
  if (!places.every((place) => permitsDestination(project, { ...place, namespace }))) {
    return `AppProject ${name} does not permit namespace ${JSON.stringify(namespace)} of managed cluster ${cluster} (spec.destinations)`;
  }
  const isScoped = secrets.some(({ data }) => secretText(data, 'project') === name);
  if (project.spec.permitOnlyProjectScopedClusters === true && !isScoped) {
    return `AppProject ${name} permits only clusters of its own, and managed cluster ${cluster} is none (spec.permitOnlyProjectScopedClusters)`;
  }
  const chosen = {
    name: annotations[pullKeys.destinationName] ?? '',
    server: annotations[pullKeys.destinationServer] ?? '',
  };
  const isChosen = chosen.name !== '' || chosen.server !== '';
  if (isChosen && !permitsDestination(project, { ...chosen, namespace })) {
    return `AppProject ${name} does not permit the destination of annotations ${pullKeys.destinationName} and ${pullKeys.destinationServer} (spec.destinations)`;
  }
  return undefined;
}
