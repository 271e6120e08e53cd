import {
  ApiError,
  findCondition,
  hasFinalizer,
  isConditionTrue,
  isNotFound,
  leases,
  parseKey,
  rfc3339,
  secrets,
} from '../../lib/kube/index.ts';
import {
  addOnName,
  agentConnected,
  applicationsCrd,
  type Caches,
  cleanUpWork,
  fieldManager,
  finalizer,
  formerWork,
  type GitOpsCluster,
  type HubApplication,
  isDetaching,
  isForced,
  keys,
  labelValue,
  type ManagedCluster,
  type ManifestWork,
  managedClusterAddOns,
  manifestWorks,
  urlsIn,
} from '../hub/index.ts';
import { currentOwnerOf } from '../ownership/index.ts';
import { type AddOnConfig, cleanUpState, noConfig, renderCleanUp } from '../render/index.ts';
import { releaseAddOn } from './cluster-addon.ts';
import { configOf, NotDeliverableError } from './cluster-config.ts';
import type { ClusterDeps } from './cluster-deps.ts';
import { type DetachProgress, writeDetachStatus } from './detach-status.ts';
import { pendingDeletions } from './drain.ts';
import { formerNamespacesOf, namespacesOf } from './former-namespaces.ts';
import { workMetadata } from './owner-metadata.ts';

type DetachDeps = Pick<
  ClusterDeps,
  'applier' | 'caches' | 'client' | 'delivery' | 'drainMs' | 'events' | 'logger' | 'templates'
>;

/** A detached cluster in one reconcile. */
interface Detachment {
  readonly cluster: string;
  readonly now: Date;
  readonly signal: AbortSignal;
  /** The GitOpsCluster that owned the cluster, as `namespace/name`. */
  readonly owner: string | undefined;
  /** The namespace of the principal. */
  readonly namespace: string;
  readonly gitOpsCluster: GitOpsCluster | undefined;
  /** Whether each step waits until the cluster has carried it out. */
  readonly mustWait: boolean;
}

/** Whether a cluster can still carry out changes. One that leaves the hub and does not report cannot. */
function canAct(cluster: ManagedCluster | undefined): boolean {
  if (cluster?.metadata.deletionTimestamp === undefined) {
    return cluster !== undefined;
  }
  return isConditionTrue(cluster.status?.conditions, 'ManagedClusterConditionAvailable');
}

/**
 * Takes the next step of a detachment. The agent stays while deletions need it. Then the agent's work and Argo CD's work are
 * removed, so that nothing works against the clean-up Job, which runs next. The work with the CRDs (the CRDs stay), the
 * Secrets, the certificates, the add-on and the Job's work follow. Each step waits until the cluster has carried out the
 * previous one, unless the cluster is gone or a user forces the detachment.
 * @returns what the detachment waits for; undefined when it is complete
 */
export async function detachCluster(
  deps: DetachDeps,
  { cluster, now, signal }: Pick<Detachment, 'cluster' | 'now' | 'signal'>,
): Promise<DetachProgress | undefined> {
  const { caches, client } = deps;
  const owner = currentOwnerOf(cluster, caches);
  const ownerKey = parseKey(owner ?? '');
  const gitOpsCluster = caches.gitOpsClusters.get(ownerKey);
  // Without its GitOpsCluster, only the cluster's Secrets show where its principal is.
  const [secret] = caches.ownSecrets.byIndex('cluster', labelValue(cluster));
  const { namespace = '' } = gitOpsCluster
    ? { namespace: caches.principalNamespaceOf(gitOpsCluster) }
    : (secret?.metadata ?? ownerKey);
  const [addOn] = caches.addOns.list(cluster);
  const mustWait = canAct(caches.managedClusters.get({ name: cluster })) && !isForced(addOn, gitOpsCluster);
  const detachment: Detachment = { cluster, now, signal, owner, namespace, gitOpsCluster, mustWait };
  const drainUntil = await markDetaching(deps, detachment);
  const progress =
    drain(deps, detachment, drainUntil) ??
    (await removePart(deps, detachment, 'agent')) ??
    (await removePart(deps, detachment, 'argocd')) ??
    (await removePart(deps, detachment, formerWork.part)) ??
    (mustWait ? await runCleanUp(deps, detachment) : undefined) ??
    (await removePart(deps, detachment, 'crds')) ??
    (await removeFromHub(deps, detachment)) ??
    // Last, because its presence shows that the clean-up is done.
    (await removePart(deps, detachment, cleanUpWork.part));
  if (progress) {
    const isAgentGone = worksOf(caches, cluster, 'agent').length === 0;
    await writeDetachStatus(client, caches.addOns.list(cluster)[0], { ...progress, isAgentGone }, { now, signal });
  }
  return progress;
}

/**
 * Marks the add-on as detaching, once, and grants a connected agent time for deletions.
 * @returns until when (RFC 3339) the agent stays; undefined when it does not stay
 */
async function markDetaching(
  { caches, client, logger, drainMs }: DetachDeps,
  { cluster, now, signal, namespace }: Detachment,
): Promise<string | undefined> {
  const [addOn] = caches.addOns.list(cluster);
  const isHeld = addOn && (!addOn.metadata.deletionTimestamp || hasFinalizer(addOn, finalizer));
  if (!isHeld || isDetaching(addOn)) {
    return addOn?.metadata.annotations?.[keys.drainUntil];
  }
  logger.info({ cluster }, 'detaching the cluster');
  const [lease] = caches.connections.byIndex('agent', `${namespace}/${cluster}`);
  const canDrain = drainMs > 0 && agentConnected(lease).status === 'True';
  // The time is written in whole seconds and rounded up.
  const drainUntil = canDrain ? rfc3339(new Date(now.getTime() + drainMs + 999)) : undefined;
  // The namespaces can only be read while the works exist.
  const works = caches.works.list(cluster).filter(({ metadata }) => metadata.labels?.[keys.part] !== formerWork.part);
  const namespaces = [...new Set([...works.flatMap(namespacesOf), ...formerNamespacesOf(addOn)])].sort().join(',');
  const annotations = {
    [keys.detaching]: 'true',
    [keys.drainUntil]: drainUntil ?? null,
    [keys.namespaces]: namespaces || null,
  };
  const key = { namespace: cluster, name: addOnName };
  await client.mergePatch(managedClusterAddOns, key, { metadata: { annotations } }, { fieldManager, signal });
  return drainUntil;
}

/** The deletions that still need the agent; undefined when the agent can be removed. */
function drain(
  { caches, events, logger }: DetachDeps,
  { cluster, mustWait, now, gitOpsCluster }: Detachment,
  drainUntil: string | undefined,
): DetachProgress | undefined {
  const isThere = worksOf(caches, cluster, 'agent').some(({ metadata }) => !metadata.deletionTimestamp);
  if (!mustWait || !isThere || drainUntil === undefined) {
    return undefined;
  }
  const remaining = Date.parse(drainUntil) - now.getTime();
  const isUnselected = gitOpsCluster !== undefined && gitOpsCluster.metadata.deletionTimestamp === undefined;
  const isKnown = caches.applications.hasSynced;
  const pending = isKnown ? pendingDeletions(applicationsOf(caches, cluster), isUnselected) : [];
  if (isKnown ? pending.length === 0 : caches.crd(applicationsCrd) === undefined) {
    return undefined;
  }
  const more = pending.length > 3 ? ` and ${pending.length - 3} more` : '';
  const what = isKnown ? `${pending.slice(0, 3).join(', ')}${more}` : 'the Applications of the hub are not known yet';
  if (remaining > 0) {
    const waitingFor = `the agent of cluster ${cluster} stays until Applications are deleted, at most until ${drainUntil}: ${what}`;
    return { waitingFor, lookAgainMs: isKnown ? remaining : Math.min(remaining, 1_000) };
  }
  logger.warn({ cluster, applications: pending }, 'detaching the cluster although Applications are not deleted');
  if (gitOpsCluster) {
    const message = `the agent of cluster ${cluster} is removed although Applications are not deleted: ${what}`;
    events.warning(gitOpsCluster, 'DrainTimedOut', message);
  }
  return undefined;
}

/** Those that name the cluster, and those that have the URL of its cluster Secret. */
function applicationsOf({ applications, ownSecrets }: Caches, cluster: string): HubApplication[] {
  const urls = ownSecrets.byIndex('cluster', labelValue(cluster)).flatMap(urlsIn);
  return [...new Set([cluster, ...urls].flatMap((nameOrUrl) => applications.byIndex('cluster', nameOrUrl)))];
}

function worksOf(caches: Caches, cluster: string, part: string): ManifestWork[] {
  return caches.works.list(cluster).filter(({ metadata }) => metadata.labels?.[keys.part] === part);
}

async function removePart(
  { applier, caches }: Pick<DetachDeps, 'applier' | 'caches'>,
  { cluster, mustWait, signal }: Detachment,
  part: string,
): Promise<DetachProgress | undefined> {
  const works = worksOf(caches, cluster, part);
  for (const work of works) {
    await applier.remove(manifestWorks, work, signal);
  }
  if (!mustWait || works.length === 0) {
    return undefined;
  }
  return {
    waitingFor: `cluster ${cluster} must remove ManifestWork ${works[0]?.metadata.name}${silenceNote(caches, cluster)}`,
  };
}

function silenceNote(caches: Caches, cluster: string): string {
  const { conditions } = caches.managedClusters.get({ name: cluster })?.status ?? {};
  const available = findCondition(conditions, 'ManagedClusterConditionAvailable');
  return available && available.status !== 'True' ? ' (the cluster does not report)' : '';
}

/** Delivers the clean-up Job and waits until it is complete. */
async function runCleanUp(deps: DetachDeps, detachment: Detachment): Promise<DetachProgress | undefined> {
  const { caches, applier, templates, delivery, logger } = deps;
  const { cluster, owner, signal } = detachment;
  const { name, part } = cleanUpWork;
  const [addOn] = caches.addOns.list(cluster);
  const [work] = worksOf(caches, cluster, part);
  // The add-on is removed after the clean-up. Without work and add-on the clean-up is complete.
  if (work === undefined && addOn === undefined) {
    return undefined;
  }
  if (work === undefined && owner !== undefined) {
    const spec = renderCleanUp(templates, {
      namespace: addOn?.status?.namespace ?? 'argocd',
      otherNamespaces: addOn?.metadata.annotations?.[keys.namespaces]?.split(',') ?? [],
      image: delivery.cleanUpImage ?? delivery.agentImage,
      pullPolicy: delivery.pullPolicy,
      config: configOrNone(deps, cluster),
    });
    const metadata = { namespace: cluster, name, ...workMetadata(owner, cluster, part) };
    const desired: ManifestWork = { metadata, spec };
    try {
      await applier.ensure(manifestWorks, desired, undefined, { exact: ['spec.workload'], signal });
    } catch (error) {
      if (!isNamespaceDeleted(error)) {
        throw error;
      }
      logger.warn(
        { cluster },
        'the namespace of the cluster is being deleted: detaching the cluster without its clean-up',
      );
      return undefined;
    }
  }
  const state = work ? cleanUpState(work) : 'running';
  if (work?.metadata.deletionTimestamp) {
    return removePart(deps, detachment, part);
  }
  if (state === 'complete') {
    return undefined;
  }
  const waitingFor =
    state === 'failed'
      ? `the clean-up Job on cluster ${cluster} failed: see the logs of its pods in namespace argocd-agent-addon-cleanup; delete ManifestWork ${cluster}/${name} to run it again, or annotate the GitOpsCluster or the ManagedClusterAddOn with ${keys.forceDetach}=true to go on without`
      : `cluster ${cluster} must finish the clean-up Job of ManifestWork ${name}${silenceNote(caches, cluster)}`;
  return { waitingFor, cleanUp: state };
}

/** The workload settings of the cluster; none when they no longer exist or are invalid. */
function configOrNone({ caches, logger }: Pick<DetachDeps, 'caches' | 'logger'>, cluster: string): AddOnConfig {
  try {
    return configOf({ caches, cluster });
  } catch (error) {
    if (!(error instanceof NotDeliverableError)) {
      throw error;
    }
    logger.warn({ cluster, error }, 'cleaning up without the settings of the cluster');
    return noConfig;
  }
}

/** Whether a create failed because its namespace is being deleted or does not exist. */
function isNamespaceDeleted(error: unknown): boolean {
  if (isNotFound(error)) {
    return true;
  }
  return (
    error instanceof ApiError && (error.details?.causes ?? []).some(({ reason }) => reason === 'NamespaceTerminating')
  );
}

/** Removes the cluster's Secrets, the Lease of its agent's connection, and the add-on. */
async function removeFromHub(
  { caches, applier, client }: Pick<DetachDeps, 'caches' | 'applier' | 'client'>,
  { cluster, signal, owner, namespace }: Detachment,
): Promise<DetachProgress | undefined> {
  const own = caches.ownSecrets.byIndex('cluster', labelValue(cluster));
  for (const secret of own) {
    await applier.remove(secrets, secret, signal);
  }
  if (owner) {
    for (const lease of caches.connections.byIndex('agent', `${namespace}/${cluster}`)) {
      await client.delete(leases, lease.metadata, { signal });
    }
  }
  const [addOn] = caches.addOns.list(cluster);
  if (addOn) {
    await applier.remove(managedClusterAddOns, addOn, signal);
    await releaseAddOn(cluster, client, signal);
  }
  if (own.length === 0 && addOn === undefined) {
    return undefined;
  }
  return { waitingFor: `the objects of cluster ${cluster} on the hub are being deleted` };
}
