import {
  ApiError,
  type EventRecorder,
  findCondition,
  hasFinalizer,
  isConditionTrue,
  isNotFound,
  leases,
  rfc3339,
  secrets,
} from '../../lib/kube/index.ts';
import type { Applier } from '../hub/applier.ts';
import { applicationsCrd, type Caches } from '../hub/caches.ts';
import { addOnName, cleanUpWork, fieldManager, finalizer, formerWork, keys, labelValue } from '../hub/names.ts';
import {
  type GitOpsCluster,
  type ManagedCluster,
  type ManifestWork,
  managedClusterAddOns,
  manifestWorks,
} from '../hub/resources.ts';
import { type AddOnConfig, noConfig } from '../render/addon-config.ts';
import { cleanUpState, renderCleanUp } from '../render/cleanup.ts';
import { releaseAddOn } from './cluster-addon.ts';
import { configOf, NotDeliverableError } from './cluster-config.ts';
import type { ClusterContext } from './cluster-context.ts';
import { ownerMetadataOf } from './cluster-context.ts';
import { connection, isDetaching, isForced } from './cluster-health.ts';
import { type Departure, sayDetaching } from './detach-status.ts';
import { pendingDeletions } from './drain.ts';
import { formerNamespacesOf, namespacesOf } from './former-namespaces.ts';

/** What leaving works with. */
export interface LeaveContext
  extends Pick<ClusterContext, 'cluster' | 'client' | 'logger' | 'now' | 'signal' | 'templates' | 'delivery'> {
  readonly caches: Caches;
  readonly applier: Applier;
  readonly events: EventRecorder;
  readonly drainMs: number;
}

/** The GitOpsCluster that a cluster belongs to, by what was made for it; undefined when there is nothing of ours. */
export function currentOwnerOf(cluster: string, caches: Caches): string | undefined {
  const marked = [
    ...caches.addOns.list(cluster),
    ...caches.works.list(cluster),
    ...caches.ownSecrets.byIndex('cluster', labelValue(cluster)),
  ];
  return marked.map(({ metadata }) => metadata.annotations?.[keys.owner]).find(Boolean);
}

/** A cluster that leaves the hub and does not report will not do anything any more. */
function canAnswer(cluster: ManagedCluster | undefined): boolean {
  if (cluster?.metadata.deletionTimestamp === undefined) {
    return cluster !== undefined;
  }
  return isConditionTrue(cluster.status?.conditions, 'ManagedClusterConditionAvailable');
}

/** What is known of a cluster that is being left. */
interface Leaving extends LeaveContext {
  readonly owner: string | undefined;
  /** Of its GitOpsCluster. */
  readonly namespace: string;
  readonly gitOpsCluster: GitOpsCluster | undefined;
  /** Whether the cluster is there to carry out what it is asked. */
  readonly mustWait: boolean;
}

/**
 * Takes the next step in leaving a cluster. The agent stays while deletions need it; then it goes, then Argo CD, so that
 * nobody sees half of it and nothing fights the clean-up Job, which is next; the CRDs' work (the CRDs stay), Secrets,
 * certificates and the add-on go last. Each step waits until the cluster has carried out the one before, unless the cluster
 * is gone or someone forces it.
 * @returns what is being waited for; undefined when nothing is left
 */
export async function leaveCluster(context: LeaveContext): Promise<Departure | undefined> {
  const { cluster, caches, now } = context;
  const owner = currentOwnerOf(cluster, caches);
  const [namespace = '', name = ''] = owner?.split('/') ?? [];
  const gitOpsCluster = caches.gitOpsClusters.get({ namespace, name });
  const [addOn] = caches.addOns.list(cluster);
  const mustWait = canAnswer(caches.managedClusters.get({ name: cluster })) && !isForced(addOn, gitOpsCluster);
  const leaving: Leaving = { ...context, owner, namespace, gitOpsCluster, mustWait };
  const drainUntil = await markDetaching(leaving);
  const departure =
    drain(leaving, drainUntil) ??
    (await removePart(leaving, 'agent')) ??
    (await removePart(leaving, 'argocd')) ??
    (await removePart(leaving, formerWork.part)) ??
    (mustWait ? await runCleanUp(leaving) : undefined) ??
    (await removePart(leaving, 'crds')) ??
    (await removeFromHub(leaving)) ??
    // Last of all: as long as it is there, everybody knows that the clean-up was done.
    (await removePart(leaving, cleanUpWork.part));
  if (departure) {
    await sayDetaching(context, caches.addOns.list(cluster)[0], departure, now);
  }
  return departure;
}

/**
 * Marks the add-on, once, and gives a connected agent its time.
 * @returns until when the agent stays for deletions, if it does
 */
async function markDetaching(context: Leaving): Promise<string | undefined> {
  const { caches, cluster, client, now, signal, logger, drainMs, namespace } = context;
  const [addOn] = caches.addOns.list(cluster);
  const isHeld = addOn && (!addOn.metadata.deletionTimestamp || hasFinalizer(addOn, finalizer));
  if (!isHeld || isDetaching(addOn)) {
    return addOn?.metadata.annotations?.[keys.drainUntil];
  }
  logger.info({ cluster }, 'leaving the cluster');
  const [lease] = caches.connections.byIndex('agent', `${namespace}/${cluster}`);
  const canDrain = drainMs > 0 && connection(lease).status === 'True';
  // Times here count in whole seconds; it may be a little longer, not shorter.
  const drainUntil = canDrain ? rfc3339(new Date(now.getTime() + drainMs + 999)) : undefined;
  // Known as long as the works are there.
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

/** While the agent is needed for deletions: what it still has to do. */
function drain(context: Leaving, drainUntil: string | undefined): Departure | undefined {
  const { cluster, caches, mustWait, now, gitOpsCluster, events, logger } = context;
  const isThere = worksOf(context, 'agent').some(({ metadata }) => !metadata.deletionTimestamp);
  if (!mustWait || !isThere || drainUntil === undefined) {
    return undefined;
  }
  const remaining = Date.parse(drainUntil) - now.getTime();
  const isUnselected = gitOpsCluster !== undefined && gitOpsCluster.metadata.deletionTimestamp === undefined;
  const isKnown = caches.applications.hasSynced;
  const pending = isKnown ? pendingDeletions(caches.applications.byIndex('cluster', cluster), isUnselected) : [];
  if (isKnown ? pending.length === 0 : caches.crd(applicationsCrd) === undefined) {
    return undefined;
  }
  const more = pending.length > 3 ? ` and ${pending.length - 3} more` : '';
  const what = isKnown ? `${pending.slice(0, 3).join(', ')}${more}` : 'the Applications of the hub are not known yet';
  if (remaining > 0) {
    const waitingFor = `the agent of cluster ${cluster} stays until Applications are deleted, at most until ${drainUntil}: ${what}`;
    return { waitingFor, lookAgainMs: isKnown ? remaining : Math.min(remaining, 1_000) };
  }
  logger.warn({ cluster, applications: pending }, 'leaving the cluster although Applications are not deleted');
  if (gitOpsCluster) {
    const message = `the agent of cluster ${cluster} is removed although Applications are not deleted: ${what}`;
    events.warning(gitOpsCluster, 'DrainTimedOut', message);
  }
  return undefined;
}

function worksOf({ caches, cluster }: Leaving, part: string): ManifestWork[] {
  return caches.works.list(cluster).filter(({ metadata }) => metadata.labels?.[keys.part] === part);
}

async function removePart(context: Leaving, part: string): Promise<Departure | undefined> {
  const { applier, signal, mustWait, cluster } = context;
  const works = worksOf(context, part);
  for (const work of works) {
    await applier.remove(manifestWorks, work, signal);
  }
  if (!mustWait || works.length === 0) {
    return undefined;
  }
  return {
    waitingFor: `cluster ${cluster} must remove ManifestWork ${works[0]?.metadata.name}${silenceNote(context)}`,
  };
}

function silenceNote({ caches, cluster }: Leaving): string {
  const { conditions } = caches.managedClusters.get({ name: cluster })?.status ?? {};
  const available = findCondition(conditions, 'ManagedClusterConditionAvailable');
  return available && available.status !== 'True' ? ' (the cluster does not report)' : '';
}

/** Delivers the clean-up Job and waits for its end. */
async function runCleanUp(context: Leaving): Promise<Departure | undefined> {
  const { cluster, caches, applier, templates, delivery, owner, signal, logger } = context;
  const { name, part } = cleanUpWork;
  const [addOn] = caches.addOns.list(cluster);
  const [work] = worksOf(context, part);
  // The add-on goes after the clean-up: without it, and without the work, it is over.
  if (work === undefined && addOn === undefined) {
    return undefined;
  }
  if (work === undefined && owner !== undefined) {
    const base = ownerMetadataOf(owner, cluster)('manifestwork');
    const spec = renderCleanUp(templates, {
      namespace: addOn?.status?.namespace ?? 'argocd',
      otherNamespaces: addOn?.metadata.annotations?.[keys.namespaces]?.split(',') ?? [],
      image: delivery.agentImage,
      pullPolicy: delivery.pullPolicy,
      config: settingsOf(context),
    });
    const labels = { ...base.labels, [keys.gitOpsCluster]: 'true', [keys.addOnName]: addOnName, [keys.part]: part };
    const desired: ManifestWork = { metadata: { namespace: cluster, name, ...base, labels }, spec };
    try {
      await applier.ensure(manifestWorks, desired, undefined, { exact: ['spec.workload'], signal });
    } catch (error) {
      if (!isNamespaceGoing(error)) {
        throw error;
      }
      logger.warn(
        { cluster },
        'the namespace of the cluster is being deleted: leaving the cluster without its clean-up',
      );
      return undefined;
    }
  }
  const state = work ? cleanUpState(work) : 'running';
  if (work?.metadata.deletionTimestamp) {
    return removePart(context, part);
  }
  if (state === 'complete') {
    return undefined;
  }
  const waitingFor =
    state === 'failed'
      ? `the clean-up Job on cluster ${cluster} failed: see the logs of its pods in namespace argocd-agent-addon-cleanup; delete ManifestWork ${cluster}/${name} to run it again, or annotate the GitOpsCluster or the ManagedClusterAddOn with ${keys.forceDetach}=true to go on without`
      : `cluster ${cluster} must finish the clean-up Job of ManifestWork ${name}${silenceNote(context)}`;
  return { waitingFor, cleanUp: state };
}

/** The settings of the cluster's workloads; when they are gone or wrong by now, the clean-up runs without. */
function settingsOf(context: Leaving): AddOnConfig {
  try {
    return configOf(context);
  } catch (error) {
    if (!(error instanceof NotDeliverableError)) {
      throw error;
    }
    context.logger.warn({ cluster: context.cluster, err: error }, 'cleaning up without the settings of the cluster');
    return noConfig;
  }
}

/** Whether nothing can be made in a namespace any more, because it is being deleted or is gone. */
function isNamespaceGoing(error: unknown): boolean {
  if (isNotFound(error)) {
    return true;
  }
  return (
    error instanceof ApiError && (error.details?.causes ?? []).some(({ reason }) => reason === 'NamespaceTerminating')
  );
}

/** Secrets and certificates, the record of the agent's connection, and the add-on. */
async function removeFromHub(context: Leaving): Promise<Departure | undefined> {
  const { cluster, caches, applier, client, signal, owner, namespace } = context;
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
