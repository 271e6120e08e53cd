import {
  projectOfRepository,
  projectScope,
  projectSurroundings,
  type RepositorySecret,
  readableGlobalProjects,
  sameNamespaces,
  versionOfImage,
  virtualProject,
} from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { kubeClient } from '../../lib/bridge/index.ts';
import {
  configMaps,
  deployments,
  type KubeClient,
  keyOf,
  leases,
  type ObjectKey,
  parseKey,
  type Secret,
  secrets,
  statefulSets,
} from '../../lib/kube/index.ts';
import { FatalError, type FlagValues, InterruptedError } from '../../lib/ops/index.ts';
import { explained, principalParams } from '../hub/hub-access.ts';
import { checkAgent, checkApplication, checkTracking, type Finding, type TrackingSettings } from './checks.ts';
import { agentOnCluster, clusterClient, directCluster, hubClusters, type KnownCluster } from './direct-cluster.ts';
import type { migrateFlags } from './migrate-flags.ts';
import { type MoveResult, Mover } from './move.ts';
import { type MovingApplication, movingApplications, movingProjects, stateOf } from './objects.ts';
import { MoveRecords } from './records.ts';

type Flags = FlagValues<typeof migrateFlags>;
type Say = (line: string) => void;

/** What a migration is between. */
interface Sides {
  readonly hub: KubeClient;
  readonly cluster: KubeClient;
  readonly direct: KnownCluster;
  readonly clusters: readonly KnownCluster[];
  readonly agent: string;
  readonly flags: Flags;
  readonly signal: AbortSignal;
}

/**
 * Moves the Applications of a cluster to its agent, or back.
 * @throws FatalError when something has to be done first, or something was re-created
 * @throws InterruptedError when aborted
 */
export async function migrate(flags: Flags, { signal, say }: { signal: AbortSignal; say: Say }): Promise<void> {
  const hub = kubeClient(flags);
  try {
    await explained(hub, () => run(hub, flags, say, signal));
  } catch (error) {
    if (signal.aborted) {
      const hint = 'run the same command again to go on, or with --undo to go back';
      throw new InterruptedError(`interrupted: no resource was touched; ${hint}`, { cause: error });
    }
    throw error;
  } finally {
    await hub.close();
  }
}

async function run(hub: KubeClient, flags: Flags, say: Say, signal: AbortSignal): Promise<void> {
  const { namespace } = flags;
  const clusters = await hubClusters(hub, namespace, signal);
  const direct = directCluster(clusters, flags.cluster);
  const cluster = clusterClient(direct, flags);
  try {
    const found = await agentOnCluster(cluster, flags['agent-namespace'], signal);
    const agent = flags.agent || found;
    if (agent === undefined) {
      throw new FatalError(
        `cluster ${direct.name} has no agent with a client certificate in namespace ${flags['agent-namespace']}: enroll it (argocd-agent enroll), or give --agent`,
      );
    }
    if (found !== undefined && found !== agent) {
      throw new FatalError(`the agent on cluster ${direct.name} is ${found}, not ${agent}: correct --agent`);
    }
    if (direct.name === agent) {
      const { name } = direct.secret.metadata;
      throw new FatalError(
        `the cluster has the agent's name, ${agent}, so Argo CD cannot tell them apart. Give it another one: kubectl -n ${namespace} patch secret ${name} --type merge -p '{"stringData":{"name":"${agent}-direct"}}', and use it in Applications with this destination.name`,
      );
    }
    say(`Cluster ${direct.name} (${direct.server}), agent ${agent}`);
    const sides = { hub, cluster, direct, clusters, agent, flags, signal };
    const records = new MoveRecords(hub, { namespace, agent, signal });
    await records.load();
    await (flags.undo ? giveBack(sides, records, say) : takeOver(sides, records, say));
  } finally {
    await cluster.close();
  }
}

async function takeOver(sides: Sides, records: MoveRecords, say: Say): Promise<void> {
  const { hub, direct, flags, signal } = sides;
  const all = await hub.list(movingApplications, { signal });
  const isChosen = chosen(flags);
  const begun = records.list().filter(({ phase }) => phase !== 'moved');
  const returning = begun.find(({ phase }) => phase === 'returning');
  if (returning !== undefined) {
    throw new FatalError(`Application ${keyOf(returning)} is on its way back: finish that first with --undo`);
  }
  const candidates = all.filter(
    (one) => isOf(one, direct) && records.get(keyObject(one)) === undefined && isChosen(one.metadata),
  );
  const keys = [...begun.filter(isChosen), ...candidates.map(keyObject)];
  if (keys.length === 0) {
    say('Nothing to do: no Application deploys to the cluster directly');
    return;
  }
  const findings = await check(sides, all, candidates);
  report(findings, say);
  const blocks = findings.filter(({ level }) => level === 'blocked').length;
  if (blocks > 0) {
    throw new FatalError(`nothing was changed: ${blocks} of the findings must be corrected first`);
  }
  await each(keys, 'to the agent', sides, records, say, (mover, key) => mover.toAgent(key));
}

async function giveBack(sides: Sides, records: MoveRecords, say: Say): Promise<void> {
  const { hub, agent, clusters, flags, signal } = sides;
  const keys = records.list().filter(chosen(flags));
  if (keys.length === 0) {
    say('Nothing to do: no Application was moved to the agent by this command');
    return;
  }
  const lease = await hub.get(leases, { namespace: flags.namespace, name: `argocd-agent-${agent}` }, signal);
  const findings = checkAgent(agent, clusters, lease);
  report(findings, say);
  if (findings.some(({ level }) => level === 'blocked')) {
    throw new FatalError('nothing was changed: only a connected agent removes the copies on the cluster');
  }
  await each(keys, 'back to the hub', sides, records, say, (mover, key) => mover.toHub(key));
}

/** Moves one after the other, and stops when a resource was re-created. */
async function each(
  keys: readonly ObjectKey[],
  where: string,
  sides: Sides,
  records: MoveRecords,
  say: Say,
  move: (mover: Mover, key: ObjectKey) => Promise<MoveResult>,
): Promise<void> {
  const { hub, cluster, agent, flags, signal } = sides;
  if (flags['dry-run']) {
    for (const key of keys) {
      say(`would move ${keyOf(key)} ${where}`);
    }
    return;
  }
  const { toLocal } = sameNamespaces(flags.namespace, flags['agent-namespace']);
  const copyOf = ({ namespace = '', name }: ObjectKey) => ({ namespace: toLocal(namespace), name });
  const mover = new Mover({ hub, cluster, agent, copyOf, records, timeoutMs: flags.timeout, say, signal });
  const results: MoveResult[] = [];
  for (const key of keys) {
    signal.throwIfAborted();
    const result = await move(mover, { namespace: key.namespace, name: key.name });
    results.push(result);
    if (result.recreated.length > 0) {
      break;
    }
  }
  say(table(results));
  const [bad] = results.filter(({ recreated }) => recreated.length > 0);
  if (bad !== undefined) {
    throw new FatalError(
      `Application ${keyOf(bad.application)}: these are not the objects of before: ${bad.recreated.join(', ')}. Find out who replaced them, then run the command again for the others`,
    );
  }
}

function table(results: readonly MoveResult[]): string {
  const rows = [
    ['APPLICATION', 'STATE', 'KEPT', 'RE-CREATED', 'SECONDS'],
    ...results.map(({ application, resources, recreated, seconds }) => [
      keyOf(application),
      stateOf({ ...application, status: { ...application.status, conditions: [] } }),
      `${resources - recreated.length}/${resources}`,
      `${recreated.length}`,
      seconds.toFixed(1),
    ]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n');
}

function report(findings: readonly Finding[], say: Say): void {
  for (const { level, text } of findings) {
    say(`  ${level.padEnd(7)}  ${text}`);
  }
}

/** All findings about both sides, and about the Applications that are to be moved. */
async function check(
  sides: Sides,
  all: readonly MovingApplication[],
  candidates: readonly MovingApplication[],
): Promise<Finding[]> {
  const { hub, cluster, clusters, agent, flags, signal } = sides;
  const { namespace, 'agent-namespace': far } = flags;
  const [lease, onHub, onCluster, params] = await Promise.all([
    hub.get(leases, { namespace, name: `argocd-agent-${agent}` }, signal),
    trackingOf(hub, namespace, signal),
    trackingOf(cluster, far, signal),
    principalParams({ client: hub }, namespace, signal),
  ]);
  const findings = [...checkAgent(agent, clusters, lease), ...checkTracking(onHub, onCluster)];
  if (!flags['destination-based-mapping'] && params['principal.destination-based-mapping'] !== 'true') {
    findings.push({
      level: 'blocked',
      text: 'the principal gives Applications to agents by namespace: set principal.destination-based-mapping (and agent.destination-based-mapping), or move them by hand',
    });
  }
  const target = clusters.find((one) => one.agent === agent);
  if (target === undefined) {
    return findings;
  }
  const [hubRepositories, clusterRepositories, hubProjects, clusterProjects, copies] = await Promise.all([
    repositoriesOf(hub, namespace, signal),
    repositoriesOf(cluster, far, signal),
    hub.list(movingProjects, { namespace, signal }),
    cluster.list(movingProjects, { namespace: far, signal }),
    cluster.list(movingApplications, { signal }),
  ]);
  // The agent gets a shared one with the Application.
  const isShared = (secret: Secret) =>
    params['principal.share-repositories'] === 'true' && projectOfRepository(secret) === undefined;
  const { toLocal } = sameNamespaces(namespace, far);
  const hubProject = (name: string) => hubProjects.find(({ metadata }) => metadata.name === name);
  const surroundings = projectSurroundings({
    globalProjects: readableGlobalProjects(onHub.settings.globalProjects),
    project: hubProject,
    scopes: clusters.flatMap(({ secret }) => projectScope(secret as RepositorySecret) ?? []),
  });
  const projectNamed = (name: string) => {
    const project = hubProject(name);
    return project && virtualProject(project, surroundings);
  };
  for (const application of candidates) {
    const { name } = application.metadata;
    const local = toLocal(application.metadata.namespace ?? '');
    const project = application.spec.project || 'default';
    findings.push(
      ...checkApplication(application, {
        agent: target,
        project: projectNamed(project),
        isProjectOnCluster: clusterProjects.some((one) => one.metadata.name === project),
        occupant: copies.find(({ metadata }) => metadata.namespace === local && metadata.name === name),
        repositories: { hub: hubRepositories.filter((one) => !isShared(one)), cluster: clusterRepositories },
        names: new Set(all.map(({ metadata }) => metadata.name)),
        labelKey: onHub.settings['application.instanceLabelKey'] || 'app.kubernetes.io/instance',
      }),
    );
  }
  return findings;
}

async function trackingOf(client: KubeClient, namespace: string, signal: AbortSignal): Promise<TrackingSettings> {
  const key = { namespace, name: 'argocd-application-controller' };
  const [settings, stateful, deployed] = await Promise.all([
    client.get(configMaps, { namespace, name: 'argocd-cm' }, signal),
    client.get(statefulSets, key, signal),
    client.get(deployments, key, signal),
  ]);
  const image = (stateful ?? deployed)?.spec?.template?.spec?.containers[0]?.image ?? '';
  return { settings: settings?.data ?? {}, version: versionOfImage(image) };
}

function repositoriesOf(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Secret[]> {
  return client.list(secrets, {
    namespace,
    labelSelector: `${wellKnown.secretTypeLabel} in (repository,repo-creds)`,
    signal,
  });
}

/** Whether an Application deploys to a cluster. */
function isOf({ spec }: MovingApplication, { name, server }: KnownCluster): boolean {
  const { destination = {} } = spec;
  return destination.server?.replace(/\/+$/, '') === server || destination.name === name;
}

const keyObject = ({ metadata: { namespace, name } }: MovingApplication): ObjectKey => ({ namespace, name });

/** Whether an Application is one of those that the flags name. */
function chosen({ application: names, namespace }: Flags): (key: ObjectKey) => boolean {
  const keys = new Set(names.map((one) => keyOf(one.includes('/') ? parseKey(one) : { namespace, name: one })));
  return (key) => keys.size === 0 || keys.has(keyOf(key));
}
