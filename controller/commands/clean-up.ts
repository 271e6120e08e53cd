import { setTimeout as delay } from 'node:timers/promises';
import { type Logger, wellKnown } from '../../lib/base/index.ts';
import {
  deployments,
  isNotFound,
  type KubeClient,
  type KubeObject,
  keyOf,
  namespaces,
  pods,
  type ResourceType,
  resourceType,
  services,
  statefulSets,
} from '../../lib/kube/index.ts';
import { argoApplicationSets, argoCdApplications, argoProjects, type ManagedApplication } from '../hub/index.ts';

/** Options of {@link cleanUp}. */
export interface CleanUpOptions {
  /** The managed cluster. */
  readonly client: KubeClient;
  /** Namespace of Argo CD and the agent. */
  readonly namespace: string;
  /** Other namespaces that the add-on has used: that of argocd-operator, and those of earlier settings. */
  readonly otherNamespaces?: readonly string[];
  readonly logger: Logger;
  /** Aborts the clean-up. It can be run again and continues. */
  readonly signal: AbortSignal;
  /** How long to wait until the agent's pods and other objects of the works are gone, in milliseconds. Default 60,000. */
  readonly agentGraceMs?: number;
  /**
   * The principal's namespace. Set only when the cluster stays enrolled and the add-on has moved away from these namespaces:
   * then copies in other namespaces stay.
   */
  readonly principalNamespace?: string | undefined;
}

/** The result of {@link cleanUp}. */
export interface CleanUpResult {
  /** Number of removed copies of the hub's Applications and AppProjects. */
  readonly removed: number;
  readonly namespace: 'deleted' | 'kept' | 'absent';
  /** Why the namespace was kept. */
  readonly reason?: string;
}

/** argocd-agent's annotation on a copy of an object on the hub. */
const sourceUid = 'argocd.argoproj.io/source-uid';

/** argocd-agent's annotation on a copy whose Application is in the principal's namespace on the hub. */
const remapped = 'argocd.argoproj.io/namespace-remapped';

/** Label on a namespace that the add-on created. A namespace that existed before does not have it. */
export const createdNamespace = {
  label: 'apps.open-cluster-management.io/argocd-addon',
  managedBy: [wellKnown.managedByLabel, 'argocd-agent-addon'],
} as const;

/**
 * Removes the objects on a managed cluster that the works do not remove: the copies of the hub's Applications and
 * AppProjects, and the namespace if the add-on made it and nobody else uses it. Deployed resources stay: the finalizers of
 * the Applications are removed first, so that no deletion cascades. Run it after the agent is gone, which would restore the
 * copies. It can be run again at any point.
 */
export async function cleanUp(options: CleanUpOptions): Promise<CleanUpResult> {
  const { client, otherNamespaces = [], logger, signal } = options;
  const others = otherNamespaces.map((namespace) => ({ ...options, namespace }));
  await waitForAgentToStop(options);
  const copies = (await listed<ManagedApplication>(client, argoCdApplications, undefined, signal)).filter(isCopy);
  for (const one of [options, ...others]) {
    const isDeployedInto = ({ status }: ManagedApplication) =>
      status?.resources?.some(({ namespace }) => namespace === one.namespace) ?? false;
    const deployed = copies.find(isDeployedInto);
    if (deployed) {
      await releaseNamespace(one, `Application ${keyOf(deployed)} deployed into it`);
    }
  }
  const projects = (await listed(client, argoProjects, undefined, signal)).filter(isCopy);
  const [oldCopies, oldProjects] = [copies.filter(isToRemove(options)), projects.filter(isToRemove(options, true))];
  for (const copy of oldCopies) {
    await release(argoCdApplications, copy, options);
  }
  for (const copy of oldProjects) {
    await release(argoProjects, copy, options);
  }
  const removed = oldCopies.length + oldProjects.length;
  const counts = { applications: oldCopies.length, appProjects: oldProjects.length };
  logger.info(counts, 'removed the copies of hub objects');
  const result = await removeNamespace(options);
  for (const one of others) {
    await removeNamespace(one);
  }
  return { removed, ...result };
}

/**
 * Selects the copies to remove. When the cluster is detached: all. When the agent has moved: those in its former namespaces,
 * except for Applications of a hub namespace with the same name, whose copies belong there by argocd-agent's rule.
 * AppProjects are always in the agent's own namespace.
 */
function isToRemove(
  { namespace, otherNamespaces = [], principalNamespace }: CleanUpOptions,
  isProject = false,
): (copy: KubeObject) => boolean {
  if (principalNamespace === undefined) {
    return () => true;
  }
  const former = new Set([namespace, ...otherNamespaces]);
  return ({ metadata: { namespace: own = '', annotations } }) =>
    former.has(own) && (isProject || own === principalNamespace || annotations?.[remapped] === 'true');
}

async function waitForAgentToStop({ client, namespace, logger, signal, agentGraceMs = 60_000 }: CleanUpOptions) {
  const deadline = Date.now() + agentGraceMs;
  const labelSelector = 'app.kubernetes.io/name=argocd-agent-agent';
  while ((await client.list(pods, { namespace, labelSelector, signal })).length > 0) {
    if (Date.now() > deadline) {
      logger.warn({ namespace }, 'pods of the agent are still running');
      return;
    }
    await delay(500, undefined, { signal });
  }
}

async function release(type: ResourceType, copy: KubeObject, { client, logger, signal }: CleanUpOptions) {
  const { namespace, name, uid } = copy.metadata;
  const key = { namespace, name };
  try {
    if (copy.metadata.finalizers) {
      await client.mergePatch(type, key, { metadata: { uid, finalizers: null } }, { fieldManager, signal });
    }
    await client.delete(type, key, { uid, signal });
    logger.info({ kind: type.kind, object: keyOf(copy) }, 'removed a copy; its deployed resources stay');
  } catch (error) {
    // A copy that was already being deleted is gone once its last finalizer is removed.
    if (!isNotFound(error)) {
      throw error;
    }
  }
}

const fieldManager = 'gitops-controller';

/** Removes the label from a namespace that must stay. A repeated clean-up could not find the reason any more. */
async function releaseNamespace({ client, namespace, logger, signal }: CleanUpOptions, reason: string): Promise<void> {
  const found = await client.get(namespaces, { name: namespace }, signal);
  if (!found || !isOwned(found)) {
    return;
  }
  const patch = { metadata: { labels: { [createdNamespace.label]: null } } };
  await client.mergePatch(namespaces, { name: namespace }, patch, { fieldManager, signal });
  logger.info({ namespace, reason }, 'removed the ownership label from a namespace that others use');
}

async function removeNamespace(options: CleanUpOptions): Promise<Pick<CleanUpResult, 'namespace' | 'reason'>> {
  const { client, namespace, logger, signal } = options;
  const keep = (reason: string) => {
    logger.info({ namespace, reason }, 'kept the namespace');
    return { namespace: 'kept', reason } as const;
  };
  const found = await client.get(namespaces, { name: namespace }, signal);
  if (found === undefined) {
    return { namespace: 'absent' };
  }
  if (!found.metadata.deletionTimestamp) {
    if (!isOwned(found)) {
      return keep('it was not created by the add-on, or is used by others');
    }
    const foreign = await foreignObject(options);
    if (foreign !== undefined) {
      return keep(`it holds ${foreign}`);
    }
    await client.delete(namespaces, { name: namespace }, { uid: found.metadata.uid, signal });
  }
  while ((await client.get(namespaces, { name: namespace }, signal))?.metadata.uid === found.metadata.uid) {
    await delay(250, undefined, { signal });
  }
  logger.info({ namespace }, 'deleted the namespace');
  return { namespace: 'deleted' };
}

const apps = { group: 'apps', version: 'v1', namespaced: true };
const batch = { group: 'batch', version: 'v1', namespaced: true };

/** Kinds that belong to somebody else when one exists in the namespace: the add-on's own are gone with the works. */
const workloads: readonly ResourceType[] = [
  argoApplicationSets,
  deployments,
  statefulSets,
  resourceType({ ...apps, kind: 'DaemonSet', plural: 'daemonsets' }),
  resourceType({ ...batch, kind: 'Job', plural: 'jobs' }),
  resourceType({ ...batch, kind: 'CronJob', plural: 'cronjobs' }),
  services,
  resourceType({
    group: '',
    version: 'v1',
    kind: 'PersistentVolumeClaim',
    plural: 'persistentvolumeclaims',
    namespaced: true,
  }),
];

/** An object of somebody else in the namespace, as a message. Objects of the works get time to disappear. */
async function foreignObject(options: CleanUpOptions): Promise<string | undefined> {
  const { client, namespace, signal, agentGraceMs = 60_000 } = options;
  const deadline = Date.now() + agentGraceMs;
  const [key, value] = createdNamespace.managedBy;
  const found = async (type: ResourceType, test: (object: KubeObject) => boolean) => {
    for (;;) {
      const object = (await listed(client, type, namespace, signal)).find(
        (one) => one.metadata.deletionTimestamp === undefined && test(one),
      );
      if (object === undefined) {
        return undefined;
      }
      const isGoing = object.metadata.labels?.[key] === value && Date.now() < deadline;
      if (!isGoing) {
        return `${type.kind} ${object.metadata.name}`;
      }
      await delay(500, undefined, { signal });
    }
  };
  // Argo CD makes the project `default` by itself.
  const first =
    (await found(argoCdApplications, () => true)) ??
    (await found(argoProjects, ({ metadata }) => metadata.name !== 'default')) ??
    (await found(pods, ({ metadata }) => !metadata.ownerReferences?.length));
  if (first !== undefined) {
    return first;
  }
  for (const type of workloads) {
    const object = await found(type, () => true);
    if (object !== undefined) {
      return object;
    }
  }
  return undefined;
}

/** All objects of a kind; empty when the cluster does not have the kind. */
async function listed<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<T[]> {
  try {
    return await client.list(type, { namespace, signal });
  } catch (error) {
    if (isNotFound(error)) {
      return [];
    }
    throw error;
  }
}

function isCopy({ metadata }: KubeObject): boolean {
  return Boolean(metadata.annotations?.[sourceUid]);
}

function isOwned({ metadata: { labels } }: KubeObject): boolean {
  const [key, value] = createdNamespace.managedBy;
  return labels?.[createdNamespace.label] === 'true' && labels[key] === value;
}
