import { routingUrl } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { keyOf } from '../../lib/kube/index.ts';
import { reasonItIsHub } from '../hub/index.ts';
import { type AdmissionDeps, objectionTo } from './admission.ts';
import type { BasicDeps } from './basic-deps.ts';
import { agentNamesOf, placeOfWork } from './caches.ts';
import { pullKeys } from './names.ts';
import type { PullApplication } from './resources.ts';
import { type PullTarget, placeKey } from './target.ts';
import { applicationKeyOf } from './work.ts';

/** Why an Application cannot be delivered to its target, as a message for its owner. Undefined when it can. */
export function obstacleTo(
  application: PullApplication,
  target: PullTarget,
  deps: AdmissionDeps & Pick<BasicDeps, 'hubId'>,
): string | undefined {
  const objection = objectionTo(application, target, deps);
  if (objection !== undefined) {
    return objection;
  }
  const { cluster, namespace } = target;
  const found = deps.caches.managedClusters.get({ name: cluster });
  if (found === undefined) {
    return `there is no ManagedCluster ${cluster}, which annotation ${pullKeys.cluster} names`;
  }
  if (found.metadata.deletionTimestamp) {
    return `ManagedCluster ${cluster} is being deleted`;
  }
  const isHub = reasonItIsHub(found, deps.hubId()) !== undefined;
  if (isHub && namespace === application.metadata.namespace) {
    return `ManagedCluster ${cluster} is the hub itself: the copy would overwrite this Application; set annotation ${pullKeys.appNamespace} to another namespace`;
  }
  const holder = holderOf(target, deps);
  if (holder !== undefined && holder !== keyOf(application)) {
    return `Application ${holder} is ${namespace}/${target.name} on managed cluster ${cluster} already; set annotation ${pullKeys.appNamespace} to another namespace`;
  }
  return undefined;
}

/**
 * Why an Application is left to argocd-agent: its destination or its namespace leads to an agent, so the principal delivers
 * it. Two controllers that write the same Application would undo each other's changes. Undefined when none claims it.
 */
export function claimOfAgent(application: PullApplication, { caches }: Pick<BasicDeps, 'caches'>): string | undefined {
  if (application.metadata.labels?.[wellKnown.ignoreSyncLabel] === 'true') {
    return undefined;
  }
  const url = routingUrl(application);
  const [byUrl, other] = url === undefined ? [] : caches.clusterSecrets.byIndex('url', url);
  const agent =
    agentNamesOf(application).find((name) => caches.clusterSecrets.byIndex('agent', name).length > 0) ??
    (other === undefined ? byUrl?.metadata.labels?.[wellKnown.agentNameLabel] || undefined : undefined);
  if (agent === undefined) {
    return undefined;
  }
  return `argocd-agent has this Application for its agent ${agent}; take label ${pullKeys.pull} off, or set label ${wellKnown.ignoreSyncLabel} to "true"`;
}

/**
 * Key of the Application that owns a place: the one whose work is there, else the oldest that claims it and is admitted.
 * An Application that the hub's rules refuse keeps nobody from a place.
 */
function holderOf(target: PullTarget, deps: AdmissionDeps): string | undefined {
  const { caches } = deps;
  const place = placeKey(target);
  const claimants = caches.applications
    .byIndex('place', place)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .sort((a, b) => compare(ageOf(a), ageOf(b)));
  const holders = caches.works
    .byIndex('place', place)
    .filter((work) => work.metadata.deletionTimestamp === undefined && placeOfWork(work) === place)
    .map(applicationKeyOf);
  const holder =
    claimants.find((one) => holders.includes(keyOf(one))) ??
    claimants.find((one) => objectionTo(one, target, deps) === undefined);
  return holder && keyOf(holder);
}

function ageOf({ metadata }: PullApplication): string {
  return `${metadata.creationTimestamp ?? ''} ${metadata.uid ?? ''}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
