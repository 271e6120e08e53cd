import { wellKnown } from '../base/index.ts';
import type { AppProject } from './application.ts';
import { type GlobalProject, matchesSelector } from './global-projects.ts';
import { fieldOf, type RepositorySecret } from './repository.ts';
import type { ProjectCluster, ProjectSurroundings } from './virtual-project.ts';

/** What a cluster or repository Secret of Argo CD adds to an AppProject. */
export interface ProjectScope {
  readonly project: string;
  readonly cluster?: ProjectCluster;
  readonly repository?: string;
}

/** What a Secret adds to the AppProject that it names; undefined for any other Secret. */
export function projectScope(secret: RepositorySecret): ProjectScope | undefined {
  const type = secret.metadata.labels?.[wellKnown.secretTypeLabel];
  const project = type === 'cluster' || type === 'repository' ? fieldOf(secret, 'project') : '';
  if (project === '') {
    return undefined;
  }
  if (type === 'repository') {
    return { project, repository: fieldOf(secret, 'url') };
  }
  const namespaces = fieldOf(secret, 'namespaces').split(',');
  const cluster = {
    name: fieldOf(secret, 'name'),
    server: fieldOf(secret, 'server').replace(/\/+$/, ''),
    namespaces: namespaces.map((one) => one.trim()).filter((one) => one !== ''),
  };
  return { project, cluster };
}

/** What surrounds the AppProjects of an Argo CD, from its objects. */
export function projectSurroundings(of: {
  readonly globalProjects: readonly GlobalProject[];
  readonly project: (name: string) => AppProject | undefined;
  readonly scopes: Iterable<ProjectScope>;
}): ProjectSurroundings {
  const scopes = Map.groupBy(of.scopes, ({ project }) => project);
  return {
    globalProjectsFor: (project) => globalProjectsFor(project, of.globalProjects, of.project),
    clustersOf: (project) => (scopes.get(project) ?? []).flatMap(({ cluster }) => cluster ?? []),
    repositoriesOf: (project) => (scopes.get(project) ?? []).flatMap(({ repository }) => repository ?? []),
  };
}

/** Argo CD stops at a setting whose selector is invalid, or whose project does not exist (`GetGlobalProjects`). */
function globalProjectsFor(
  { metadata: { name, labels = {} } }: AppProject,
  settings: readonly GlobalProject[],
  projectNamed: (name: string) => AppProject | undefined,
): AppProject[] {
  const found: AppProject[] = [];
  for (const { projectName, labelSelector } of settings) {
    if (projectName === name) {
      continue;
    }
    const isMatch = matchesSelector(labelSelector, labels);
    const project = isMatch === true ? projectNamed(projectName) : undefined;
    if (isMatch === undefined || (isMatch && project === undefined)) {
      break;
    }
    if (project !== undefined) {
      found.push(project);
    }
  }
  return found;
}
