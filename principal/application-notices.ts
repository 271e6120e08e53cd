import {
  type Application,
  type AppProject,
  annotations,
  excessOf,
  hasCredentials,
  isForRepository,
  isSkipped,
  isUntouchedDefault,
  type Mapping,
  matchesAny,
  ownerOfMirror,
  permitsSource,
  projectOfRepository,
  type RepositorySecret,
  repositoryUrls,
  skipSyncLabel,
} from '../lib/argocd/index.ts';
import type { AgentMode } from '../lib/auth/index.ts';
import { wellKnown } from '../lib/base/index.ts';

/** What {@link noticeOn} needs of the principal. */
export interface NoticeSources {
  readonly mapping: Mapping;
  /** Whether an Application takes part in synchronisation and is no mirror. */
  readonly isAdmitted: (application: Application) => boolean;
  /** The principal's own namespace. */
  readonly namespace: string;
  /** Whether an agent has a cluster Secret. */
  readonly isMapped: (agent: string) => boolean;
  /** The mode that an agent must have, undefined when it may have any. */
  readonly modeOf: (agent: string) => AgentMode | undefined;
  /** The agent of the hub's cluster with this name or URL; empty when it has none; undefined when there is no such cluster. */
  readonly agentOfCluster: (nameOrUrl: string) => string | undefined;
  /** The names of the hub's cluster Secrets with this URL. */
  readonly secretsWithUrl: (url: string) => readonly string[];
  /** The hub's AppProject. */
  readonly project: (name: string) => AppProject | undefined;
  /** Why a project goes to no agent, whatever it says (`excessOf`). */
  readonly excess: (project: AppProject) => string | undefined;
  /** The project as Argo CD uses it, with its own repositories (`VirtualProjects.withRepositories`). */
  readonly virtual: (project: AppProject) => AppProject;
  /** Whether a managed agent gets an AppProject of the hub. */
  readonly isFor: (project: AppProject, agent: string) => boolean;
  /** The Secrets of repositories and credential templates in the principal's namespace. */
  readonly secrets: () => readonly RepositorySecret[];
  /** Whether a managed agent gets a Secret of the hub. */
  readonly hasSecret: (secret: RepositorySecret, agent: string) => boolean;
  /** Whether Secrets without a project go to the agents whose Applications use them. */
  readonly shares: boolean;
  /** Whether Argo CD's untouched AppProject `default` goes to all managed agents. */
  readonly sharesDefault: boolean;
}

/**
 * Why nobody deploys an Application of the hub: neither the agent that it belongs to, although the hub's Argo CD leaves it to
 * an agent, nor the hub's own Argo CD, which has to serve the destination; undefined when somebody does, or when the agent
 * itself reports why. An agent that reports an error of its sources does not know whether the hub has credentials for them.
 * @param agent undefined when the Application belongs to none
 */
export function noticeOn(
  application: Application,
  agent: string | undefined,
  sources: NoticeSources,
): string | undefined {
  const { mapping, namespace, isMapped, modeOf, isAdmitted } = sources;
  const { [annotations.lastUpdated]: mirrored } = application.metadata.annotations ?? {};
  if (mirrored !== undefined || (agent === undefined && !isAdmitted(application))) {
    return undefined;
  }
  if (isOfHub(application, sources) && !(agent !== undefined && isMapped(agent))) {
    return hubNotice(application);
  }
  if (agent === undefined) {
    return destinationNotice(application, sources);
  }
  if (!isMapped(agent)) {
    if (mapping === 'namespace' && application.metadata.namespace === namespace) {
      return undefined;
    }
    const other = sources.agentOfCluster(application.spec.destination?.name ?? '') ?? '';
    return mapping === 'destination' && other !== ''
      ? `there is no agent named ${agent}; the cluster of this name belongs to agent ${other}, which spec.destination.name must name`
      : `there is no agent named ${agent}`;
  }
  if (modeOf(agent) === 'autonomous') {
    return `agent ${agent} is autonomous: it deploys no Applications of the hub`;
  }
  return projectRefusal(application, agent, sources) ?? repositoryNotice(application, agent, sources);
}

/** Whether the destination is the hub itself, or a cluster that the hub's Argo CD reaches without an agent. */
function isOfHub({ spec }: Application, { agentOfCluster }: NoticeSources): boolean {
  const { name = '', server = '' } = spec.destination ?? {};
  return (
    name === 'in-cluster' ||
    server === 'https://kubernetes.default.svc' ||
    agentOfCluster(name) === '' ||
    agentOfCluster(server) === ''
  );
}

/**
 * An application controller sets a state of synchronisation whenever it looks at an Application, whatever it finds. Argo CD's API
 * server stores an empty one.
 */
function hubNotice({ metadata, status }: Application): string | undefined {
  if ((status?.sync?.status ?? '') !== '' || metadata.annotations?.[wellKnown.skipReconcileAnnotation] === 'true') {
    return undefined;
  }
  return "no application controller of the hub's Argo CD has looked at this Application, so nobody deploys it: run one on the hub (chart value hubArgoCD.applicationController.enabled), or give the Application to an agent";
}

/** With destination-based mapping, of an Application whose destination has no name, or no URL that leads to one agent. */
function destinationNotice({ spec }: Application, { namespace, secretsWithUrl }: NoticeSources): string | undefined {
  const { name = '', server = '' } = spec.destination ?? {};
  if (name !== '') {
    // A mirror whose marks somebody has removed: they come back.
    return undefined;
  }
  if (server === '') {
    return 'spec.destination names no cluster: set spec.destination.name to an agent';
  }
  const secrets = secretsWithUrl(server);
  if (secrets.length === 0) {
    return `no cluster Secret of the hub has the URL in spec.destination.server, so no agent gets anything new of this Application: correct it, or set spec.destination.name to an agent and remove the server${kept}`;
  }
  if (secrets.length > 1) {
    const names = secrets.map((one) => `${namespace}/${one}`).join(', ');
    return `several cluster Secrets (${names}) have the URL in spec.destination.server, so no agent gets anything new of this Application: leave the URL to one of them, or set spec.destination.name to an agent and remove the server${kept}`;
  }
  return undefined;
}

const kept = '; a cluster that has it keeps it as it is';

/**
 * Why the hub's AppProject keeps an Application from a managed agent; undefined when it does not. A project of that name on the cluster
 * does not count. Where the hub has none of that name, the cluster's Argo CD is asked, and says at once that it is missing.
 */
export function projectRefusal(
  { spec }: Application,
  agent: string,
  { mapping, project: projectOf, excess: excessOfProject, isFor, sharesDefault }: NoticeSources,
): string | undefined {
  const name = spec.project || 'default';
  const project = projectOf(name);
  if (project === undefined) {
    return undefined;
  }
  const excess = excessOfProject(project);
  if (excess !== undefined) {
    return `AppProject ${name} goes to no agent, so ${agent} gets nothing new of this Application: ${excess}`;
  }
  if (sharesDefault && isUntouchedDefault(project)) {
    return undefined;
  }
  if (ownerOfMirror(project) !== undefined) {
    return `AppProject ${name} is a mirror of agent ${ownerOfMirror(project)}, so ${agent} gets nothing new of this Application`;
  }
  if (isFor(project, agent)) {
    return undefined;
  }
  return mapping === 'namespace' && !matchesAny(project.spec.sourceNamespaces ?? [], agent)
    ? `AppProject ${name} does not admit source namespace ${agent}, so ${agent} gets nothing new of this Application`
    : `AppProject ${name} does not allow destination ${agent}, so ${agent} gets nothing new of this Application${
        project.spec.permitOnlyProjectScopedClusters === true
          ? `; it permits only clusters whose Secret has project: ${name}`
          : ''
      }`;
}

/** Conditions with which Argo CD reports that it cannot read a source, among other things. */
const sourceErrors: ReadonlySet<string> = new Set(['ComparisonError', 'InvalidSpecError']);

/**
 * The cluster may have credentials of its own: only while Argo CD cannot compare, the hub's are missed. Nothing is said of a source that
 * the hub's AppProject does not permit: whoever writes an Application would learn which repositories the hub has credentials for.
 */
function repositoryNotice({ spec, status }: Application, agent: string, sources: NoticeSources): string | undefined {
  if (status?.conditions?.some(({ type }) => sourceErrors.has(type)) !== true) {
    return undefined;
  }
  const name = spec.project || 'default';
  const own = sources.project(name);
  const project = own && sources.virtual(own);
  if (project === undefined || excessOf(project) !== undefined) {
    return undefined;
  }
  const usable = sources.secrets().filter((secret) => {
    const its = projectOfRepository(secret);
    return (its === undefined || its === name) && hasCredentials(secret);
  });
  // Addresses may have credentials in them, and this text is logged: the Secrets' names must do.
  const permitted = repositoryUrls(spec).filter((url) => permitsSource(project, url));
  const texts = permitted.flatMap((url) => {
    const [first, ...others] = usable.filter((secret) => isForRepository(secret, url));
    return first === undefined || [first, ...others].some((secret) => sources.hasSecret(secret, agent))
      ? []
      : `the hub keeps credentials for its source: ${whyHeld(first, name, agent, sources)}, or add the repository on the cluster`;
  });
  return texts.length === 0 ? undefined : [...new Set(texts)].join('; ');
}

function whyHeld(
  secret: RepositorySecret,
  name: string,
  agent: string,
  { project: projectOf, isFor, shares }: NoticeSources,
): string {
  const what = `Secret ${secret.metadata.namespace}/${secret.metadata.name}`;
  if (isSkipped(secret)) {
    return `${what} has the label ${skipSyncLabel}; remove it`;
  }
  const project = projectOf(name);
  if (project === undefined || !isFor(project, agent)) {
    return `${what} needs the Application's project, and AppProject ${name} does not go to ${agent}; use another one for both`;
  }
  if (projectOfRepository(secret) === undefined) {
    return shares
      ? `${what} goes only to clusters with an Application whose AppProject permits source and namespace; look at AppProject ${name}, and at the principal's --label-selector`
      : `${what} has no project; set project: ${name} in it, share such repositories (--share-repositories of the principal)`;
  }
  return `${what} does not match the principal's --label-selector; give it these labels`;
}
