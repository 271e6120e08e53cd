import { keyOf } from '../../lib/kube/index.ts';
import { reasonItIsHub } from '../hub/index.ts';
import type { BasicDeps } from './basic-deps.ts';
import { agentNamesOf, placeOfWork } from './caches.ts';
import { pullKeys } from './names.ts';
import type { PullApplication } from './resources.ts';
import { type PullTarget, placeKey } from './target.ts';
import { applicationKeyOf } from './work.ts';

/** Why an Application cannot go where it asks to go, in words for its owner; undefined when it can. */
export function obstacleTo(
  application: PullApplication,
  target: PullTarget,
  deps: Pick<BasicDeps, 'caches' | 'hubId'>,
): string | undefined {
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
 * Why an Application is left to argocd-agent: its principal gives it to the agent that the destination names, or that is
 * called like the namespace. Two that write one Application would undo each other's work.
 */
export function claimOfAgent(application: PullApplication, { caches }: Pick<BasicDeps, 'caches'>): string | undefined {
  if (application.metadata.labels?.[pullKeys.ignoreSync] === 'true') {
    return undefined;
  }
  const agent = agentNamesOf(application).find((name) => caches.clusterSecrets.byIndex('agent', name).length > 0);
  if (agent === undefined) {
    return undefined;
  }
  return `argocd-agent has this Application for its agent ${agent}; take label ${pullKeys.pull} off, or set label ${pullKeys.ignoreSync} to "true"`;
}

/** Of the Applications that ask for one place: the one that has it, else the oldest. */
export function holderOf(target: PullTarget, { caches }: Pick<BasicDeps, 'caches'>): string | undefined {
  const place = placeKey(target);
  const claimants = caches.applications
    .byIndex('place', place)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .sort((a, b) => compare(ageOf(a), ageOf(b)));
  const [oldest] = claimants;
  if (claimants.length <= 1) {
    return oldest && keyOf(oldest);
  }
  const holders = caches.works
    .byIndex('place', place)
    .filter((work) => work.metadata.deletionTimestamp === undefined && placeOfWork(work) === place)
    .map(applicationKeyOf);
  const holder = claimants.find((one) => holders.includes(keyOf(one))) ?? oldest;
  return holder && keyOf(holder);
}

function ageOf({ metadata }: PullApplication): string {
  return `${metadata.creationTimestamp ?? ''} ${metadata.uid ?? ''}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
