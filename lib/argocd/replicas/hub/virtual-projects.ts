import { isEqual } from '../../../base/index.ts';
import { type ObjectRef, type Runtime, refOf, type Store, type StoreChange } from '../../../sync/index.ts';
import type { AppProject } from '../../application.ts';
import { type GlobalProject, parseGlobalProjects } from '../../global-projects.ts';
import type { GpgKeys } from '../../gpg-keys.ts';
import type { ArgoCluster } from '../../project-clusters.ts';
import { type ProjectScope, projectScope, projectSurroundings } from '../../project-surroundings.ts';
import type { RepositorySecret } from '../../repository.ts';
import { type ProjectSurroundings, virtualProject, withOwnRepositories } from '../../virtual-project.ts';

/** The objects of the hub's Argo CD that decide what its AppProjects are. None of them is left out by its labels. */
export interface VirtualProjectsOptions {
  readonly projects: Pick<Store<AppProject>, 'subscribe'>;
  /** Of clusters and repositories. */
  readonly secrets: Pick<Store<RepositorySecret>, 'subscribe'>;
  /** ConfigMap `argocd-cm`. */
  readonly settings: Pick<Store<GpgKeys>, 'subscribe'>;
  readonly runtime: Pick<Runtime, 'log'>;
}

/** The hub's AppProjects as its Argo CD uses them, with what global projects and their own clusters and repositories add. */
export class VirtualProjects {
  readonly #options: VirtualProjectsOptions;
  readonly #projects = new Map<string, AppProject>();
  readonly #scopes = new Map<string, ProjectScope>();
  #globalProjects: readonly GlobalProject[] = [];
  #surroundings: ProjectSurroundings | undefined;
  /** What each project is: it is asked for each agent. */
  #known = new WeakMap<AppProject, { readonly project: AppProject; withRepositories?: AppProject }>();
  /** Name or server of a cluster → the projects that it belongs to. */
  #owners: Map<string, Set<string>> | undefined;
  #changed: (isConcerned: (project: string) => boolean) => void = () => undefined;

  constructor(options: VirtualProjectsOptions) {
    this.#options = options;
  }

  /**
   * Follows the objects until the returned function is called.
   * @param changed called when other objects than projects themselves have changed what these projects are
   */
  follow(changed: (isConcerned: (project: string) => boolean) => void): () => void {
    const { projects, secrets, settings } = this.#options;
    const ends = [
      settings.subscribe(({ now }) => this.#settingsChanged(now)),
      projects.subscribe((change) => this.#projectChanged(change)),
      secrets.subscribe((change) => this.#secretChanged(change)),
    ];
    this.#changed = changed;
    return () => {
      for (const end of ends) {
        end();
      }
    };
  }

  /** A project without its own repositories, as copies are made of it. */
  of(project: AppProject): AppProject {
    return this.#virtual(project).project;
  }

  /** A project with its own repositories. */
  withRepositories(project: AppProject): AppProject {
    const virtual = this.#virtual(project);
    virtual.withRepositories ??= withOwnRepositories(virtual.project, this.#around());
    return virtual.withRepositories;
  }

  /** The projects that have one of these clusters to themselves. */
  ownersOf(clusters: readonly ArgoCluster[]): readonly string[] {
    this.#owners ??= ownersOf(this.#scopes.values());
    const owners = this.#owners;
    return clusters.flatMap(({ name, server }) => [name, server].flatMap((key) => [...(owners.get(key) ?? [])]));
  }

  #virtual(project: AppProject): { readonly project: AppProject; withRepositories?: AppProject } {
    let known = this.#known.get(project);
    if (known === undefined) {
      known = { project: virtualProject(project, this.#around()) };
      this.#known.set(project, known);
    }
    return known;
  }

  #around(): ProjectSurroundings {
    this.#surroundings ??= projectSurroundings({
      globalProjects: this.#globalProjects,
      project: (name) => this.#projects.get(name),
      scopes: this.#scopes.values(),
    });
    return this.#surroundings;
  }

  #settingsChanged(settings: GpgKeys | undefined): void {
    let next: GlobalProject[] = [];
    try {
      next = parseGlobalProjects(settings?.data?.globalProjects);
    } catch (error) {
      const hint = 'what it should add to AppProjects holds neither on the hub nor on the clusters: correct it';
      this.#options.runtime.log.warn({ error, hint }, 'globalProjects of ConfigMap argocd-cm cannot be read');
    }
    if (!isEqual(next, this.#globalProjects)) {
      this.#globalProjects = next;
      this.#forget();
      this.#changed(() => true);
    }
  }

  #projectChanged({ old, now }: StoreChange<AppProject>): void {
    const { name } = (now ?? old)?.metadata ?? {};
    if (name === undefined) {
      return;
    }
    if (now === undefined) {
      this.#projects.delete(name);
    } else {
      this.#projects.set(name, now);
    }
    if (this.#globalProjects.some(({ projectName }) => projectName === name) && !isEqual(old?.spec, now?.spec)) {
      this.#known = new WeakMap();
      this.#changed(() => true);
    }
  }

  #secretChanged({ old, now }: StoreChange<RepositorySecret>): void {
    const secret = now ?? old;
    if (secret === undefined) {
      return;
    }
    const key = keyOf(refOf(secret));
    const [before, after] = [this.#scopes.get(key), now && projectScope(now)];
    if (isEqual(before, after)) {
      return;
    }
    if (after === undefined) {
      this.#scopes.delete(key);
    } else {
      this.#scopes.set(key, after);
    }
    this.#forget();
    this.#changed((project) => project === before?.project || project === after?.project);
  }

  #forget(): void {
    this.#surroundings = undefined;
    this.#known = new WeakMap();
    this.#owners = undefined;
  }
}

const keyOf = ({ namespace, name }: ObjectRef) => `${namespace}/${name}`;

function ownersOf(scopes: Iterable<ProjectScope>): Map<string, Set<string>> {
  const owners = new Map<string, Set<string>>();
  for (const { project, cluster } of scopes) {
    for (const key of new Set([cluster?.name ?? '', cluster?.server ?? ''])) {
      if (key !== '') {
        owners.set(key, (owners.get(key) ?? new Set()).add(project));
      }
    }
  }
  return owners;
}
