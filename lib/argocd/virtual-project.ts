import type { AppProject } from './application.ts';
import type { ArgoCluster } from './project-clusters.ts';

/** A cluster that belongs to one AppProject. */
export interface ProjectCluster extends ArgoCluster {
  /** Those that Argo CD manages there; none: all. */
  readonly namespaces: readonly string[];
}

/** What Argo CD adds to AppProjects. */
export interface ProjectSurroundings {
  /** The global projects that apply to projects with these labels, in their order (`globalProjects` of `argocd-cm`). */
  globalProjectsFor(project: AppProject): readonly AppProject[];
  /** Clusters whose Secrets name the project. */
  clustersOf(project: string): readonly ProjectCluster[];
  /** Addresses of repositories whose Secrets name the project. */
  repositoriesOf(project: string): readonly string[];
}

/** What a global project adds to others (`mergeVirtualProject`). */
const inherited = [
  'clusterResourceWhitelist',
  'clusterResourceBlacklist',
  'namespaceResourceWhitelist',
  'namespaceResourceBlacklist',
  'syncWindows',
  'sourceRepos',
  'destinations',
] as const;

/**
 * An AppProject as Argo CD uses it (`GetAppProjectByName`): with its own clusters as destinations, and with what it inherits
 * from global projects. Without its own repositories: {@link withOwnRepositories}.
 */
export function virtualProject(project: AppProject, surroundings: ProjectSurroundings): AppProject {
  const own = surroundings
    .clustersOf(project.metadata.name)
    .flatMap(({ server, namespaces }) =>
      (namespaces.length === 0 ? ['*'] : namespaces).map((namespace) => ({ server, namespace })),
    );
  const globals = surroundings.globalProjectsFor(project);
  if (own.length === 0 && globals.length === 0) {
    return project;
  }
  const spec = { ...project.spec };
  for (const field of inherited) {
    const added = [...(field === 'destinations' ? own : []), ...globals.flatMap((one) => listOf(one.spec[field]))];
    if (added.length > 0) {
      // Argo CD refuses a project that has a repository twice.
      spec[field] = [...new Set([...listOf(spec[field]), ...added])] as never;
    }
  }
  return { ...project, spec };
}

/**
 * A project with the addresses of its own repositories among its sources. Copies are made without them: an address in a Secret
 * may hold a password, and the Argo CD of a cluster adds those of the Secrets that it has.
 */
export function withOwnRepositories(project: AppProject, surroundings: ProjectSurroundings): AppProject {
  const own = surroundings.repositoriesOf(project.metadata.name);
  return own.length === 0
    ? project
    : { ...project, spec: { ...project.spec, sourceRepos: [...listOf(project.spec.sourceRepos), ...own] } };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
