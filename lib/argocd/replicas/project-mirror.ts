import { z } from 'zod';
import type { AppProject, Destination, DestinationServiceAccount, SyncWindow } from '../application.ts';
import { matchesGlob } from '../glob.ts';
import { annotations } from '../names.ts';
import { absent, longList, withoutUndefined } from '../object.ts';
import { type ArgoCluster, inCluster, literalGlob, matchesCluster, windowsForCluster } from '../project-clusters.ts';
import { mostPatternCharacters } from '../project-size.ts';
import { type ProjectRole, rolesForHub } from './mirror-roles.ts';
import { Unacceptable } from './replica-rules.ts';

/** Longest name of a Kubernetes object. */
export const longestName = 253;

/** What the hub calls an autonomous agent's project. Two agents may yield the same name, so it proves nothing. */
export function projectMirrorName(agent: string, project: string): string {
  return `${agent}-${project}`;
}

/** The agent's name of what the hub calls so; a name without the agent's prefix is taken for its own. */
export function mirroredProjectName(agent: string, name: string): string {
  const prefix = `${agent}-`;
  return name.length > prefix.length && name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

/** Where a mirror stands, and what it may hold. */
export interface ProjectMirrorPlace {
  readonly agent: string;
  /** The agent's cluster in the hub's Argo CD; undefined while it has none. */
  readonly cluster: ArgoCluster | undefined;
  /** Whether groups of users keep their roles on the hub. */
  readonly keepsGroups: boolean;
}

/**
 * The hub's mirror of an autonomous agent's project. Whoever owns the cluster wrote the project, and Argo CD on the hub obeys
 * the mirror, so it is built anew of the fields that are known. It gives no right beyond the agent's own Applications:
 * - It admits Applications in the agent's namespace alone, and the agent's cluster alone as their destination.
 * - Its roles act on these Applications alone ({@link rolesForHub}).
 * - It has no labels: by them it would inherit destinations of a global project (`globalProjects` of `argocd-cm`).
 * `permitOnlyProjectScopedClusters` is left out: it is about the cluster Secrets of the agent's own Argo CD.
 * @throws Unacceptable for a field that has not the form of Argo CD's CRD
 */
export function projectForHub(project: AppProject, place: ProjectMirrorPlace): AppProject {
  const { name } = project.metadata;
  return rebuild(project, place, {
    project: name,
    applications: name,
    mirror: projectMirrorName(place.agent, name),
    cluster: inCluster,
  });
}

/**
 * The mirror that takes the place of one that is on the hub, without knowledge of the agent's own project: an older version
 * or argocd-agent's principal may have made it, or the cluster's URL was another one.
 * @param isOwn {@link projectForHub} made it, so all clusters in it are the agent's
 */
export function renewedMirror(mirror: AppProject, place: ProjectMirrorPlace, isOwn: boolean): AppProject {
  const { name } = mirror.metadata;
  return rebuild(mirror, place, {
    project: name,
    mirror: name,
    applications: `${name}/${place.agent}`,
    cluster: isOwn ? undefined : inCluster,
  });
}

/**
 * Which autonomous agent's mirror a project of the hub is; undefined for the hub's own. Mirrors that argocd-agent's
 * principal made bear no name of an agent, but only they have a source UID, one source namespace and its name as a prefix.
 */
export function ownerOfMirror({ metadata, spec }: AppProject): string | undefined {
  const { [annotations.sourceUid]: source, [annotations.mirrorOf]: owner } = metadata.annotations ?? {};
  if (owner !== undefined) {
    return owner;
  }
  const [agent, ...others] = spec.sourceNamespaces ?? [];
  return source && agent && others.length === 0 && metadata.name.startsWith(`${agent}-`) ? agent : undefined;
}

/** How the object that a mirror is built of speaks. */
interface Terms {
  /** The project that its role policies name. */
  readonly project: string;
  /** What stands before the name of an Application in its role policies. */
  readonly applications: string;
  /** The mirror's name. */
  readonly mirror: string;
  /** The agent's cluster as its patterns mean it; undefined: all patterns mean this cluster. */
  readonly cluster: ArgoCluster | undefined;
}

function rebuild(project: AppProject, { agent, cluster, keepsGroups }: ProjectMirrorPlace, terms: Terms): AppProject {
  const parsed = mirrorSpec.safeParse(project.spec);
  if (!parsed.success) {
    const { path = [], message = '' } = parsed.error.issues[0] ?? {};
    throw new Unacceptable(`spec.${path.join('.')}: ${message}`);
  }
  const { destinations, roles, syncWindows, destinationServiceAccounts, ...spec } = parsed.data;
  const { labels: _, ...metadata } = project.metadata;
  checkPatterns(parsed.data);
  const { cluster: here } = terms;
  const isHere = (pattern: string) => here === undefined || matchesCluster(pattern, here);
  const isServerHere = (pattern: string) => here === undefined || matchesGlob(pattern, here.server);
  return {
    ...project,
    metadata,
    spec: {
      ...spec,
      sourceNamespaces: [agent],
      ...(destinations && { destinations: destinationsForHub(destinations, cluster) }),
      ...(syncWindows && {
        syncWindows: windowsForCluster(syncWindows, isHere, literalGlob(cluster?.name ?? agent)),
      }),
      ...(destinationServiceAccounts && {
        destinationServiceAccounts: destinationServiceAccounts.flatMap((account) =>
          cluster !== undefined && cluster.server !== '' && isServerHere(account.server)
            ? [{ ...account, server: literalGlob(cluster.server) }]
            : [],
        ),
      }),
      ...(roles && { roles: rolesForHub(roles, { ...terms, agent, keepsGroups }) }),
    },
  };
}

/**
 * The denied destinations, sync windows and service accounts: an autonomous cluster names itself there.
 * @throws Unacceptable for too many
 */
function checkPatterns({ destinations = [], syncWindows = [], destinationServiceAccounts = [] }: MirrorSpec): void {
  const patterns = [
    ...destinations.flatMap(({ name = '', server = '' }) => [name, server].filter((one) => one.startsWith('!'))),
    ...syncWindows.flatMap(({ clusters = [] }) => clusters),
    ...destinationServiceAccounts.map(({ server }) => server),
  ];
  const characters = patterns.reduce((sum, { length }) => sum + length, 0);
  if (characters > mostPatternCharacters) {
    throw new Unacceptable(
      `spec: its patterns for clusters have ${characters} characters; ${mostPatternCharacters} are accepted`,
    );
  }
}

/**
 * All destinations become the agent's cluster, as those of its Applications do on the hub. A project that denies its own
 * cluster admits none: on the hub a negation would admit all other clusters.
 */
function destinationsForHub(destinations: readonly Destination[], cluster: ArgoCluster | undefined): Destination[] {
  const deniesItself = destinations.some(
    ({ name = '', server = '' }) =>
      (name.startsWith('!') && matchesGlob(name.slice(1), inCluster.name)) ||
      (server.startsWith('!') && matchesGlob(server.slice(1), inCluster.server)),
  );
  if (cluster === undefined || deniesItself) {
    return [];
  }
  const here = {
    ...(cluster.name === '' ? {} : { name: literalGlob(cluster.name) }),
    // Argo CD obeys a negated namespace only where the server matches.
    ...(cluster.server === '' ? {} : { server: literalGlob(cluster.server) }),
  };
  const namespaces = destinations
    .filter(({ name = '', server = '' }) => name !== '' || server !== '')
    .map(({ namespace = '' }) => namespace);
  return [...new Set(namespaces)].map((namespace) => ({ ...here, namespace }));
}

const text = z.string();
const list = <S extends z.ZodType>(item: S) => absent(longList(item));
const texts = list(text);
const groupKinds = list(z.object({ group: text, kind: text }));
const clusterResources = list(z.object({ group: text, kind: text, name: absent(text) }));

interface MirrorSpec {
  readonly destinations?: readonly Destination[];
  readonly syncWindows?: readonly SyncWindow[];
  readonly destinationServiceAccounts?: readonly DestinationServiceAccount[];
  readonly roles?: readonly ProjectRole[];
  readonly [other: string]: unknown;
}

/** The fields of Argo CD's AppProjectSpec that a mirror may have. Others are dropped. */
const mirrorSpec = withoutUndefined<MirrorSpec>(
  z.object({
    sourceRepos: texts,
    description: absent(text),
    destinations: list(z.object({ server: absent(text), name: absent(text), namespace: absent(text) })),
    clusterResourceWhitelist: clusterResources,
    clusterResourceBlacklist: clusterResources,
    namespaceResourceWhitelist: groupKinds,
    namespaceResourceBlacklist: groupKinds,
    orphanedResources: absent(
      z.object({
        warn: absent(z.boolean()),
        ignore: list(z.object({ group: absent(text), kind: absent(text), name: absent(text) })),
      }),
    ),
    syncWindows: list(
      z.object({
        kind: absent(text),
        schedule: absent(text),
        duration: absent(text),
        applications: texts,
        namespaces: texts,
        clusters: texts,
        manualSync: absent(z.boolean()),
        timeZone: absent(text),
        andOperator: absent(z.boolean()),
        description: absent(text),
        syncOverrun: absent(z.boolean()),
      }),
    ),
    signatureKeys: list(z.object({ keyID: text })),
    sourceIntegrity: absent(
      z.object({
        git: absent(
          z.object({
            policies: list(
              z.object({
                repos: list(z.object({ url: text })),
                gpg: absent(z.object({ mode: absent(text), keys: texts })),
              }),
            ),
          }),
        ),
      }),
    ),
    destinationServiceAccounts: list(z.object({ server: text, namespace: absent(text), defaultServiceAccount: text })),
    roles: list(z.object({ name: text, description: absent(text), policies: texts, groups: texts })),
  }),
);
