import type { AppProject } from '../../../lib/argocd/index.ts';
import { type Logger, wellKnown } from '../../../lib/base/index.ts';
import type { ConfigMap, Secret } from '../../../lib/kube/index.ts';
import { decodeSecret } from '../../../lib/ops/index.ts';
import { ArgoPolicy, type PolicyRequest, type PolicySubject } from './argo-policy.ts';
import { type ExtensionCaller, type ExtensionHeader, extensionCaller } from './extension-callers.ts';
import { identifyViewer, type PageCaller, type PageViewer, type TrustedProxies } from './page-viewers.ts';

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
  #secrets: Readonly<Record<string, string>> = {};
  /** The policies of the projects that have roles. */
  readonly #projects = new Map<string, string>();

  constructor(sources: PageAccessSources) {
    this.#sources = sources;
    const { namespace, configMaps, secrets, projects } = sources;
    const all = (heard: () => void) => ({ added: heard, updated: heard, deleted: heard });
    configMaps.policy.subscribe(all(() => this.#readPolicy()));
    configMaps.settings.subscribe(all(() => this.#changed()));
    const readSecret = (secret: Secret) => {
      if (secret.metadata.name === names.secret) {
        const now = secrets.get({ namespace, name: names.secret });
        this.#secrets = now === undefined ? {} : decodeSecret(now);
        this.#changed();
      }
    };
    secrets.subscribe({ added: readSecret, updated: (_old, now) => readSecret(now), deleted: readSecret });
    secrets.subscribe({
      updated: (old, now) => {
        if (placeOf(old) !== placeOf(now)) {
          this.#changed();
        }
      },
    });
    const readProject = ({ metadata: { name } }: AppProject) => {
      const project = projects.get({ namespace, name });
      const policies = project === undefined ? '' : projectPolicies(project);
      if (policies !== (this.#projects.get(name) ?? '')) {
        if (policies === '') {
          this.#projects.delete(name);
        } else {
          this.#projects.set(name, policies);
        }
        this.#changed();
      }
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

  /** Whether it is certain that the subject may get every cluster, whatever it is called, and whatever project it belongs to. */
  seesAllClusters(subject: PolicySubject): boolean {
    const policy = this.#policy;
    return (
      policy?.allowsAllClusters(subject) === true &&
      ![...this.#projects].some(([name, policies]) => policy.mayDeny({ name, policies }))
    );
  }

  /** Whether the subject may get a cluster, by its cluster Secret. */
  seesCluster(subject: PolicySubject, { server, project }: { server: string; project: string }): boolean {
    const object = project === '' ? server : `${project}/${server}`;
    return this.#allows(subject, { resource: 'clusters', action: 'get', object });
  }

  /** Whether the subject may get an Application. */
  seesApplication(subject: PolicySubject, application: { project: string; namespace: string; name: string }): boolean {
    const { project, namespace, name } = application;
    const own = namespace === this.#sources.namespace ? name : `${namespace}/${name}`;
    return this.#allows(subject, { resource: 'applications', action: 'get', object: `${project}/${own}` });
  }

  #allows(subject: PolicySubject, request: PolicyRequest): boolean {
    // As Argo CD has it: also the first part of a cluster's URL may be the name of a project, and is none.
    const [name = '', ...rest] = request.object.split('/');
    const policies = rest.length === 0 ? undefined : this.#projects.get(name);
    return this.#policy?.allows(subject, request, policies === undefined ? undefined : { name, policies }) ?? false;
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
      this.#policy = new ArgoPolicy(data);
    } catch (error) {
      this.#policy = undefined;
      logger.error(
        { error },
        `ConfigMap ${namespace}/${names.policy} is not understood: nobody may see the fleet page`,
      );
    }
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

/** What stands for the cluster of a Secret in policies. Empty for any other Secret. */
function placeOf(secret: Secret): string {
  if (secret.metadata.labels?.[wellKnown.secretTypeLabel] !== 'cluster') {
    return '';
  }
  const { project = '', server = '' } = decodeSecret(secret);
  return `${project}/${server}`;
}

/** The policies of a project's roles, and the roles of groups, as Argo CD adds them to its own. */
function projectPolicies({ metadata, spec }: AppProject): string {
  const roles = (Array.isArray(spec.roles) ? spec.roles : []) as {
    name?: unknown;
    policies?: unknown;
    groups?: unknown;
  }[];
  return roles
    .flatMap((role) => [
      ...texts(role?.policies),
      ...texts(role?.groups).map((group) => `g, ${group}, proj:${metadata.name}:${String(role?.name)}`),
    ])
    .join('\n');
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
