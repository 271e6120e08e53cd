import type { AppProject } from '../../../lib/argocd/index.ts';
import { type Logger, wellKnown } from '../../../lib/base/index.ts';
import type { ConfigMap, Secret } from '../../../lib/kube/index.ts';
import { decodeSecret } from '../../../lib/ops/index.ts';
import { ArgoPolicy, type PolicyRequest, type PolicySubject } from './argo-policy.ts';
import { type ExtensionCaller, type ExtensionHeader, extensionCaller } from './extension-callers.ts';
import { identifyViewer, type PageCaller, type PageViewer, type TrustedProxies } from './page-viewers.ts';
import { longestProjectPolicies, type ProjectPolicies, projectPolicies } from './project-policies.ts';

/** A cache as {@link PageAccess} reads it. */
interface Cache<T> {
  get(key: { namespace: string; name: string }): T | undefined;
  subscribe(handler: { added?(now: T): void; updated?(old: T, now: T): void; deleted?(last: T): void }): () => void;
}

/** Where Argo CD's accounts and rights are read from. */
export interface PageAccessSources {
  readonly namespace: string;
  readonly configMaps: { readonly settings: Cache<ConfigMap>; readonly policy: Cache<ConfigMap> };
  readonly secrets: Cache<Secret>;
  /** All AppProjects of Argo CD. */
  readonly projects: Cache<AppProject>;
  readonly isRevoked: (id: string) => Promise<boolean>;
  readonly proxies: TrustedProxies;
  readonly logger: Logger;
}

const names = { settings: 'argocd-cm', policy: 'argocd-rbac-cm', secret: 'argocd-secret' } as const;

/** Who may see what of the fleet: Argo CD's accounts and policy as they are now. */
export class PageAccess {
  readonly #sources: PageAccessSources;
  readonly #listeners = new Set<() => void>();
  #policy: ArgoPolicy | undefined;
  /** Counts changes of Argo CD's policy and settings. */
  #revision = 0;
  #secrets: Readonly<Record<string, string>> = {};
  /** The policies of the projects that have roles. */
  readonly #projects = new Map<string, ProjectPolicies>();
  /** By cluster Secret: how policies name the cluster. */
  readonly #clusters = new Map<string, string>();
  /** The projects that clusters are in; undefined until it is asked for. */
  #clusterProjects: ReadonlySet<string> | undefined;

  constructor(sources: PageAccessSources) {
    this.#sources = sources;
    const { namespace, configMaps, secrets, projects } = sources;
    const all = (heard: () => void) => ({ added: heard, updated: heard, deleted: heard });
    configMaps.policy.subscribe(all(() => this.#readPolicy()));
    configMaps.settings.subscribe(
      all(() => {
        this.#revision += 1;
        this.#changed();
      }),
    );
    const readSecret = (secret: Secret) => {
      if (secret.metadata.name === names.secret) {
        const now = secrets.get({ namespace, name: names.secret });
        this.#secrets = now === undefined ? {} : decodeSecret(now);
        this.#changed();
      }
    };
    secrets.subscribe({ added: readSecret, updated: (_old, now) => readSecret(now), deleted: readSecret });
    const readCluster = (secret: Secret | undefined, name: string) => {
      const object = secret === undefined ? undefined : clusterObject(secret);
      if (object !== this.#clusters.get(name)) {
        if (object === undefined) {
          this.#clusters.delete(name);
        } else {
          this.#clusters.set(name, object);
        }
        this.#clusterProjects = undefined;
        this.#changed();
      }
    };
    secrets.subscribe({
      added: (secret) => readCluster(secret, secret.metadata.name),
      updated: (_old, now) => readCluster(now, now.metadata.name),
      deleted: ({ metadata }) => readCluster(undefined, metadata.name),
    });
    const readProject = ({ metadata: { name } }: AppProject) => {
      const project = projects.get({ namespace, name });
      const read = project === undefined ? undefined : projectPolicies(project);
      const [before, now] = [this.#projects.get(name), read?.policies === '' ? undefined : read];
      if (before?.policies === now?.policies && (before === undefined) === (now === undefined)) {
        return;
      }
      if (now === undefined) {
        this.#projects.delete(name);
      } else {
        this.#projects.set(name, now);
      }
      this.#changed();
    };
    projects.subscribe({ added: readProject, updated: (_old, now) => readProject(now), deleted: readProject });
    this.#readPolicy();
  }

  /** Calls back when accounts or rights may have changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Where people log in to Argo CD, as its `url` says; undefined when it says nothing usable. */
  get loginUrl(): string | undefined {
    const url = this.#settings().url ?? '';
    return /^https?:\/\/[^\s"'<>]+$/.test(url) ? `${url.replace(/\/+$/, '')}/login` : undefined;
  }

  /** @throws TokenRefusedError when nothing proves who it is */
  identify(caller: PageCaller): Promise<PageViewer> {
    const { proxies, isRevoked } = this.#sources;
    return identifyViewer(caller, { proxies, isRevoked, argo: { settings: this.#settings(), secrets: this.#secrets } });
  }

  /** The request of Argo CD's server for its UI extension; undefined for any other. */
  extensionCaller(request: { header(name: ExtensionHeader): string | undefined }): ExtensionCaller | undefined {
    return extensionCaller((name) => request.header(name), this.#secrets);
  }

  /** Whether it is certain that the subject may get every cluster that there is, whatever it is called. */
  seesAllClusters(subject: PolicySubject): boolean {
    const policy = this.#policy;
    this.#clusterProjects ??= new Set([...this.#clusters.values()].map(projectOf));
    return (
      policy?.allowsAllClusters(subject) === true &&
      [...this.#clusterProjects].every((name) => {
        const project = this.#projects.get(name);
        return project === undefined || policy.allowsAllClusters(subject, project);
      })
    );
  }

  /** Whether the subject may get a cluster, by its cluster Secret. */
  seesCluster(subject: PolicySubject, { server, project }: { server: string; project: string }): boolean {
    return this.#allows(subject, { resource: 'clusters', action: 'get', object: objectOf({ server, project }) });
  }

  /** Whether the subject may get an Application. */
  seesApplication(subject: PolicySubject, application: { project: string; namespace: string; name: string }): boolean {
    const { project, namespace, name } = application;
    const own = namespace === this.#sources.namespace ? name : `${namespace}/${name}`;
    return this.#allows(subject, { resource: 'applications', action: 'get', object: `${project}/${own}` });
  }

  #allows(subject: PolicySubject, request: PolicyRequest): boolean {
    return this.#policy?.allows(subject, request, this.#projects.get(projectOf(request.object))) ?? false;
  }

  /** Another text as soon as Argo CD may judge otherwise of what is in a project. */
  rightsIn(project: string): string {
    return `${this.#revision} ${this.#projects.get(project)?.policies ?? ''}`;
  }

  #warnOfTooMuch(project: string): void {
    const { namespace, logger } = this.#sources;
    const most = longestProjectPolicies / 1024;
    const hint = `shorten the policies and groups of its roles to ${most} KiB; of a regular expression the repetitions count`;
    const message = `AppProject ${namespace}/${project} has more policies than the fleet page reads: nobody sees there what is in it`;
    logger.warn({ hint }, message);
  }

  #settings(): Readonly<Record<string, string>> {
    const { namespace, configMaps } = this.#sources;
    return configMaps.settings.get({ namespace, name: names.settings })?.data ?? {};
  }

  /** A policy that is not understood gives nobody a right. */
  #readPolicy(): void {
    const { namespace, configMaps, logger } = this.#sources;
    const data = configMaps.policy.get({ namespace, name: names.policy })?.data ?? {};
    try {
      this.#policy = new ArgoPolicy(data, (project) => this.#warnOfTooMuch(project));
    } catch (error) {
      this.#policy = undefined;
      logger.error(
        { error },
        `ConfigMap ${namespace}/${names.policy} is not understood: nobody may see the fleet page`,
      );
    }
    this.#revision += 1;
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

/** As policies name the cluster of a Secret; undefined for any other Secret. */
function clusterObject(secret: Secret): string | undefined {
  if (secret.metadata.labels?.[wellKnown.secretTypeLabel] !== 'cluster') {
    return undefined;
  }
  const { project = '', server = '' } = decodeSecret(secret);
  return objectOf({ server, project });
}

function objectOf({ server, project }: { server: string; project: string }): string {
  return project === '' ? server : `${project}/${server}`;
}

/** As Argo CD has it: also the first part of a cluster's URL may be the name of a project, and is none. */
function projectOf(object: string): string {
  const [name = '', ...rest] = object.split('/', 2);
  return rest.length === 0 ? '' : name;
}
