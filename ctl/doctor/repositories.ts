import {
  type AppProject,
  admitsNamespace,
  isForRepository,
  isProjectForAgent,
  isRepository,
  isRepositoryForAgent,
  isSkipped,
  isUntouchedDefault,
  ownerOfMirror,
  type ProjectSurroundings,
  permitsSource,
  projectOfRepository,
  projectScope,
  projectSurroundings,
  type RepositorySecret,
  readableGlobalProjects,
  repositoryUrls,
  virtualProject,
  withOwnRepositories,
} from '../../lib/argocd/index.ts';
import { isEqual, wellKnown } from '../../lib/base/index.ts';
import type { Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { applicationsOf, isSettled, mappingOf, modeOfAgent, selectorOf } from './applications.ts';
import type { Facts } from './facts.ts';
import { type Diagnosis, findingsAbout } from './finding.ts';
import { paramsOf, secretNamed } from './hub-checks.ts';
import { repositoryProblem } from './repository-form.ts';

type Repository = Secret & RepositorySecret;

/** Which repository Secrets of a hub go to agents. */
interface Delivery {
  /** Those that may go to an agent at all. */
  readonly candidates: readonly Repository[];
  readonly project: (name: string) => AppProject | undefined;
  readonly isFor: (secret: Repository, agent: string) => boolean;
}

/** What the hub's Argo CD adds to AppProjects. */
function surroundingsOf({ configMaps, appProjects, secrets }: Facts): ProjectSurroundings {
  const settings = configMaps.find(({ metadata }) => metadata.name === 'argocd-cm')?.data ?? {};
  return projectSurroundings({
    globalProjects: readableGlobalProjects(settings.globalProjects),
    project: (name) => appProjects.find(({ metadata }) => metadata.name === name),
    scopes: secrets.flatMap((secret) => projectScope(secret as Repository) ?? []),
  });
}

function deliveryOf(hub: Facts): Delivery {
  const { namespace } = hub;
  const params = paramsOf(hub);
  const shares = params['principal.share-repositories'] === 'true';
  const mapping = mappingOf(hub);
  const selects = selectorOf(hub);
  const project = (name: string) =>
    hub.appProjects.find((one) => one.metadata.name === name && ownerOfMirror(one) === undefined);
  const around = surroundingsOf(hub);
  const target = (agent: string) => {
    const own = hub.secrets.filter(({ metadata: { labels = {} } }) => labels[wellKnown.agentNameLabel] === agent);
    const clusters = own.map((secret) => {
      const { name = '', server = '' } = decodeSecret(secret);
      return { name: name || server, server: server.replace(/\/+$/, '') };
    });
    return { agent, clusters, projects: own.map((secret) => decodeSecret(secret).project ?? '') };
  };
  const applications = new Map<string, ReturnType<typeof applicationsOf>>();
  const applicationsFor = (agent: string) => {
    const known = applications.get(agent) ?? applicationsOf(hub, agent);
    applications.set(agent, known);
    return known;
  };
  /** As the principal decides it about a Secret without a project. */
  const isUsed = (secret: Repository, agent: string) =>
    applicationsFor(agent).some(({ metadata, spec = {} }) => {
      const own = project(spec.project || 'default');
      if (own === undefined) {
        return false;
      }
      const virtual = withOwnRepositories(virtualProject(own, around), around);
      return (
        (isProjectForAgent(virtual, target(agent), mapping) || isUntouchedDefault(own)) &&
        (metadata.namespace === namespace || admitsNamespace(own, metadata.namespace ?? '')) &&
        repositoryUrls(spec).some((url) => isForRepository(secret, url) && permitsSource(virtual, url))
      );
    });
  const candidates = (hub.secrets as readonly Repository[]).filter(
    (secret) =>
      isRepository(secret) &&
      !isSkipped(secret) &&
      selects(secret.metadata.labels ?? {}) &&
      (shares || projectOfRepository(secret) !== undefined),
  );
  return {
    candidates,
    project,
    isFor: (secret, agent) => {
      const name = projectOfRepository(secret);
      if (name === undefined) {
        return isUsed(secret, agent);
      }
      const own = project(name);
      return isRepositoryForAgent(secret, own, (one) =>
        isProjectForAgent(virtualProject(one, around), target(agent), mapping),
      );
    },
  };
}

/** What is wrong in the repository Secrets that a hub gives to its agents, or to one of them. */
export function repositoryFaults(hub: Facts, cluster: string): Diagnosis[] {
  const { namespace } = hub;
  const { candidates, project, isFor } = deliveryOf(hub);
  return candidates.flatMap((secret): Diagnosis[] => {
    const { name } = secret.metadata;
    const where = `Secret ${namespace}/${name}`;
    const finding = findingsAbout('');
    const named = projectOfRepository(secret);
    if (named !== undefined && project(named) === undefined && !hub.unknown.has('appprojects')) {
      const what = `the repository Secret ${name} is for AppProject ${named}, which does not exist: it goes to no cluster`;
      const mend = `kubectl --namespace ${namespace} get appprojects; then ${patchOf(namespace, name, 'project')}`;
      return [finding('repository-project-missing', what, where, mend)];
    }
    // Without its Applications it is not known who uses a Secret that is shared.
    if (cluster !== '' && !isFor(secret, cluster)) {
      return [];
    }
    const problem = repositoryProblem(secret, hub.secrets as readonly Repository[]);
    return problem === undefined
      ? []
      : [
          finding(
            problem.id,
            `the repository Secret ${name} ${problem.what}`,
            where,
            patchOf(namespace, name, problem.field),
          ),
        ];
  });
}

const patchOf = (namespace: string, name: string, field: string) =>
  `kubectl --namespace ${namespace} patch secret ${name} --type merge --patch '{"stringData":{"${field}":"VALUE"}}'`;

/** What is wrong with the repositories of an agent on its cluster. */
export function deliveredRepositoryFaults(facts: Facts, hub: Facts, agent: string): Diagnosis[] {
  const refused = refusedRepositories(facts, hub, agent);
  if (facts.unknown.has('secrets') || hub.unknown.has('secrets') || modeOfAgent(hub, facts, agent) === 'autonomous') {
    return refused;
  }
  const { namespace } = facts;
  const finding = findingsAbout(agent);
  const { candidates, isFor } = deliveryOf(hub);
  const restart = `kubectl --context ${facts.context} --namespace ${namespace} rollout restart deployment argocd-agent-agent`;
  const missing = candidates
    .filter((secret) => isFor(secret, agent) && isSettled(hub, secret))
    .flatMap((secret) => {
      const { name } = secret.metadata;
      const where = `Secret ${namespace}/${name}`;
      const own = secretNamed(facts, name);
      if (own === undefined) {
        const what = `the repository Secret ${name} of the hub has not arrived`;
        return finding('repository-not-delivered', what, where, `${restart}; its log says what it could not write`);
      }
      if (!isRepository(own as Repository) || isSkipped(own as Repository)) {
        const what = `the repository Secret ${name} of the hub cannot arrive: a Secret of this name is for something else`;
        const mend = `kubectl --context ${facts.context} --namespace ${namespace} get secret ${name} --show-labels; rename one of the two`;
        return finding('repository-name-taken', what, where, mend);
      }
      const what = `the repository Secret ${name} is not what the hub has now`;
      return isEqual(own.data ?? {}, secret.data ?? {})
        ? []
        : finding('repository-outdated', what, where, `${restart}; its log says what it could not write`);
    });
  return [...missing, ...refused];
}

/** What the cluster's Argo CD says when it cannot read a repository, and what is wrong then. */
const refusals: readonly (readonly [RegExp, 'credentials' | 'host key' | 'certificate' | 'network'])[] = [
  [/knownhosts|host key/i, 'host key'],
  [/x509|certificate/i, 'certificate'],
  [
    /authenticat|authorization|permission denied|could not read (username|password)|repository not found|access denied|\b40[13]\b/i,
    'credentials',
  ],
  [/no such host|dial tcp|i\/o timeout|connection refused|network is unreachable/i, 'network'],
];

/** Repositories that Argo CD on the cluster could not read when it last compared: it records that in Applications alone. */
function refusedRepositories(facts: Facts, hub: Facts, agent: string): Diagnosis[] {
  const finding = findingsAbout(agent);
  const byCause = new Map<string, { count: number; first: Diagnosis }>();
  for (const { metadata, spec = {}, status } of facts.applications) {
    const message = status?.conditions?.find(({ type }) => type === 'ComparisonError')?.message ?? '';
    // A repo server that is not there yet is no repository.
    const cause = /code = Unavailable/.test(message)
      ? undefined
      : refusals.find(([pattern]) => pattern.test(message))?.[1];
    if (cause === undefined) {
      continue;
    }
    const secret = facts.secrets.find(
      (one) =>
        isRepository(one as Repository) && repositoryUrls(spec).some((url) => isForRepository(one as Repository, url)),
    );
    const key = `${cause}/${secret?.metadata.name ?? repositoryUrls(spec).join()}`;
    const known = byCause.get(key);
    if (known !== undefined) {
      known.count += 1;
      continue;
    }
    const where = `Application ${metadata.namespace}/${metadata.name}`;
    const what = `Argo CD on the cluster cannot read the repository: ${withoutUsers(message)}`;
    const first = finding('repository-refused', what, where, mendOf(cause, secret, facts, hub));
    byCause.set(key, { count: 1, first });
  }
  return [...byCause.values()].map(({ count, first }) =>
    count === 1 ? first : { ...first, where: `${first.where} and ${count - 1} more` },
  );
}

function mendOf(cause: string, secret: Secret | undefined, facts: Facts, hub: Facts): string {
  const kubectl = `kubectl --context ${facts.context} --namespace ${facts.namespace}`;
  switch (cause) {
    case 'host key':
      return `${kubectl} edit configmap argocd-ssh-known-hosts-cm: ssh-keyscan HOST prints the line`;
    case 'certificate':
      return `${kubectl} edit configmap argocd-tls-certs-cm: the authority of the server, under its name`;
    case 'network':
      return `${kubectl} exec deployment/argocd-repo-server -- getent hosts HOST; look at DNS, firewalls and proxies of the cluster`;
    default:
      break;
  }
  if (secret === undefined) {
    return `argocd repo add URL --project PROJECT --username USER --password PASSWORD, on the hub: a repository of the Application's project`;
  }
  const { name, annotations = {} } = secret.metadata;
  const field = decodeSecret(secret).sshPrivateKey ? 'sshPrivateKey' : 'password';
  const isOfHub = secretNamed(hub, name) !== undefined && Object.keys(annotations).length > 0;
  return isOfHub
    ? `on the hub: ${patchOf(hub.namespace, name, field)}`
    : `${kubectl} patch secret ${name} --type merge --patch '{"stringData":{"${field}":"VALUE"}}'`;
}

/** A text without the users and passwords in its addresses, and not too long. */
function withoutUsers(text: string): string {
  const clean = text.replaceAll(/\/\/[^/@\s]*@/g, '//');
  return clean.length > 300 ? `${clean.slice(0, 300)}…` : clean;
}
