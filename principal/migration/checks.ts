import {
  type AppProject,
  hasCredentials,
  isForRepository,
  isProjectForAgent,
  isUntouchedDefault,
  permitsDestination,
  repositoryUrls,
  skipSyncLabel,
} from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { keyOf, type Lease, type Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import type { KnownCluster } from './direct-cluster.ts';
import { isBusy, type MovingApplication, stateOf } from './objects.ts';

/** Something that was checked, and what to do about it unless it is all right. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'blocked';
  readonly text: string;
}

const ok = (text: string): Finding => ({ level: 'ok', text });
const warning = (text: string): Finding => ({ level: 'warning', text });
const blocked = (text: string): Finding => ({ level: 'blocked', text });

/** Whether the hub has the agent, and it is connected. */
export function checkAgent(agent: string, clusters: readonly KnownCluster[], lease: Lease | undefined): Finding[] {
  const [enrolled] = clusters.filter((one) => one.agent === agent);
  const { annotations = {} } = lease?.metadata ?? {};
  if (enrolled === undefined) {
    return [blocked(`agent ${agent} is not enrolled: no cluster Secret names it. Run argocd-agent enroll ${agent}`)];
  }
  const findings: Finding[] = [];
  const mode = annotations[wellKnown.agentModeAnnotation];
  if (annotations[wellKnown.connectedAnnotation] !== 'true') {
    const why = lease === undefined ? 'the principal has not recorded a connection' : 'the principal recorded its end';
    findings.push(
      blocked(`agent ${agent} is not connected (Lease argocd-agent-${agent}: ${why}). Look at the log of the agent`),
    );
  } else if (mode === 'autonomous') {
    findings.push(
      blocked(`agent ${agent} is autonomous: it takes no Applications of the hub. Run it with --agent-mode=managed`),
    );
  } else {
    findings.push(ok(`agent ${agent} is enrolled and connected`));
  }
  return findings;
}

/** What of an Argo CD decides whether it takes resources for its own. */
export interface TrackingSettings {
  /** Argo CD's ConfigMap `argocd-cm`. */
  readonly settings: Readonly<Record<string, string>>;
  readonly version: readonly [number, number] | undefined;
}

/** Keys of `argocd-cm` that change what is rendered or compared. */
const comparison = /^(resource\.|kustomize\.|helm\.)/;

/** Whether the cluster's Argo CD takes what the hub's has deployed for its own. */
export function checkTracking(hub: TrackingSettings, cluster: TrackingSettings): Finding[] {
  const findings: Finding[] = [];
  const settings = [
    ['application.resourceTrackingMethod', trackingMethod],
    [
      'application.instanceLabelKey',
      (one: TrackingSettings) => one.settings['application.instanceLabelKey'] || 'app.kubernetes.io/instance',
    ],
    ['installationID', (one: TrackingSettings) => one.settings.installationID ?? ''],
  ] as const;
  for (const [key, read] of settings) {
    const [wanted, found] = [read(hub), read(cluster)];
    findings.push(
      wanted === found
        ? ok(`${key} is the same on both sides${wanted === '' ? '' : `: ${wanted}`}`)
        : blocked(
            `${key} is ${JSON.stringify(wanted)} on the hub and ${JSON.stringify(found)} on the cluster, whose Argo CD would not know the resources. Set it in ConfigMap argocd-cm of the cluster as on the hub`,
          ),
    );
  }
  const keys = [...new Set([...Object.keys(hub.settings), ...Object.keys(cluster.settings)])];
  const different = keys.filter((key) => comparison.test(key) && hub.settings[key] !== cluster.settings[key]);
  if (different.length > 0) {
    findings.push(
      warning(`ConfigMap argocd-cm differs in ${different.join(', ')}: Applications may be OutOfSync on the cluster`),
    );
  }
  const [from, to] = [hub.version?.join('.'), cluster.version?.join('.')];
  findings.push(
    from !== undefined && from === to
      ? ok(`Argo CD is of version ${from} on both sides`)
      : warning(`Argo CD is of version ${from ?? 'unknown'} on the hub and ${to ?? 'unknown'} on the cluster`),
  );
  return findings;
}

function trackingMethod({ settings, version }: TrackingSettings): string {
  return settings['application.resourceTrackingMethod'] || ((version?.[0] ?? 3) < 3 ? 'label' : 'annotation');
}

/** What the checks of one Application look at. */
export interface ApplicationFacts {
  readonly agent: KnownCluster;
  /** The hub's project of the Application, as Argo CD uses it. */
  readonly project: AppProject | undefined;
  /** Whether the cluster has a project of this name. */
  readonly isProjectOnCluster: boolean;
  /** What stands on the cluster where the copy would be. */
  readonly occupant: MovingApplication | undefined;
  /** Repositories and credentials of hub and cluster. */
  readonly repositories: { readonly hub: readonly Secret[]; readonly cluster: readonly Secret[] };
  /** Names of all Applications of the hub. */
  readonly names: ReadonlySet<string>;
  readonly labelKey: string;
}

/** Why an Application cannot be moved, or what is to be known. */
export function checkApplication(application: MovingApplication, facts: ApplicationFacts): Finding[] {
  const what = `Application ${keyOf(application)}`;
  const { metadata, spec, status } = application;
  const findings: Finding[] = [];
  const block = (text: string) => findings.push(blocked(`${what}: ${text}`));
  const set = metadata.ownerReferences?.find(({ kind }) => kind === 'ApplicationSet');
  const parent = parentOf(application, facts);
  const target = `destination.name: ${facts.agent.name}, and annotation argocd.argoproj.io/skip-reconcile: "true"`;
  if (set !== undefined) {
    block(`ApplicationSet ${metadata.namespace}/${set.name} owns it: change its template instead (${target})`);
  } else if (parent !== undefined) {
    block(`Application ${parent} deploys it: change its manifest in the source of ${parent} instead (${target})`);
  }
  if (metadata.deletionTimestamp !== undefined) {
    block('it is being deleted: wait until it is gone');
  }
  if (metadata.labels?.[skipSyncLabel] === 'true') {
    block(`label ${skipSyncLabel} keeps it from the agent: remove it`);
  }
  // Argo CD's API server stores an empty one.
  const sync = status?.sync?.status || 'Unknown';
  if (sync === 'Unknown') {
    block(`the hub's Argo CD does not know its state (${stateOf(application)}): correct that first`);
  } else if (sync !== 'Synced' && spec.syncPolicy?.automated != null) {
    block(
      'it is OutOfSync and its automated sync would run on the cluster: synchronise it, or turn automated sync off',
    );
  }
  if (isBusy(application)) {
    findings.push(warning(`${what}: an operation is running, the move waits for its end`));
  }
  findings.push(...projectFindings(application, facts).map((text) => blocked(`${what}: ${text}`)));
  if (facts.occupant !== undefined) {
    block(`the cluster has another Application ${keyOf(facts.occupant)}: rename or delete it`);
  }
  for (const url of repositoryUrls(spec)) {
    const needs = facts.repositories.hub.find((secret) => isForRepository(secret, url) && hasCredentials(secret));
    if (needs !== undefined && !facts.repositories.cluster.some((secret) => isForRepository(secret, url))) {
      block(
        `the cluster has no credentials for ${url}: set project in Secret ${keyOf(needs)} of the hub, so that the agent gets it, or add the repository on the cluster`,
      );
    }
  }
  return findings;
}

function parentOf({ metadata }: MovingApplication, { names, labelKey }: ApplicationFacts): string | undefined {
  const tracked = metadata.annotations?.['argocd.argoproj.io/tracking-id']?.split(':')[0];
  const candidates = [tracked, metadata.labels?.[labelKey]];
  return candidates.find((one) => one !== undefined && one !== metadata.name && names.has(one));
}

function projectFindings(
  { spec }: MovingApplication,
  { project, agent, isProjectOnCluster }: ApplicationFacts,
): string[] {
  const name = spec.project || 'default';
  if (project === undefined) {
    return [`the hub has no AppProject ${name}`];
  }
  const destination = { name: agent.name, server: agent.server, namespace: spec.destination?.namespace ?? '' };
  const target = {
    agent: agent.agent,
    clusters: [{ name: agent.name, server: agent.server }],
    projects: [decodeSecret(agent.secret).project ?? ''],
  };
  if (!permitsDestination(project, destination)) {
    return [
      `AppProject ${name} does not permit the destination: add {name: ${agent.name}, namespace: ${destination.namespace || "'*'"}} to its destinations`,
    ];
  }
  if (!isUntouchedDefault(project) && !isProjectForAgent(project, target, 'destination')) {
    return [
      project.spec.permitOnlyProjectScopedClusters === true && !target.projects.includes(name)
        ? `AppProject ${name} permits only clusters of its own: set project: ${name} in Secret ${keyOf(agent.secret.metadata)}`
        : `AppProject ${name} does not go to the agent: a destination must have name: ${agent.name}`,
    ];
  }
  return isProjectOnCluster ? [] : [`AppProject ${name} is not on the cluster: look at the log of the agent`];
}
