import type { Application, AppProject } from './application.ts';
import { isGlob, matchesGlob } from './glob.ts';
import { inCluster } from './project-clusters.ts';
import { admitsNamespace, permitsDestination } from './project-permissions.ts';

/** Characters that Argo CD refuses in `defaultServiceAccount`. */
const refusedCharacters = /[!*[\]{}\\/]/;

/**
 * The user that an Argo CD with impersonation acts as for an Application that it deploys to its own cluster:
 * `system:serviceaccount:<namespace>:<name>`. The rule is Argo CD's (`DeriveServiceAccountToImpersonate`): the first entry of
 * `destinationServiceAccounts` whose globs match counts. An account without a namespace is in the one that the Application
 * deploys into.
 * @param namespace Argo CD's own
 * @returns undefined when the project names no account, or none that is valid, or does not permit the Application
 */
export function impersonatedUser(
  { metadata, spec }: Application,
  project: AppProject,
  namespace: string,
): string | undefined {
  const { name = '', server = '', namespace: to = '' } = spec.destination ?? {};
  const isHere = name === '' ? server === inCluster.server : name === inCluster.name;
  const from = metadata.namespace ?? '';
  if (
    !isHere ||
    !permitsDestination(project, { ...inCluster, namespace: to }) ||
    (from !== namespace && !admitsNamespace(project, from))
  ) {
    return undefined;
  }
  for (const account of project.spec.destinationServiceAccounts ?? []) {
    const { server: servers, namespace: namespaces = '', defaultServiceAccount } = account;
    if (!isGlob(servers) || !isGlob(namespaces)) {
      return undefined;
    }
    if (matchesGlob(servers, inCluster.server) && matchesGlob(namespaces, to)) {
      return typeof defaultServiceAccount === 'string' ? userOf(defaultServiceAccount, to || from) : undefined;
    }
  }
  return undefined;
}

function userOf(account: string, namespace: string): string | undefined {
  // Argo CD cuts blanks alone off.
  if (/^ *$/.test(account) || refusedCharacters.test(account)) {
    return undefined;
  }
  return `system:serviceaccount:${account.includes(':') ? account : `${namespace}:${account}`}`;
}
