import { findCondition, isConflict, isNotFound } from '../../lib/kube/index.ts';
import {
  type FleetReasons,
  failed,
  fieldManager,
  type GitOpsCluster,
  isGuest,
  type Placement,
  placements,
  type StepReport,
  type StepResult,
  succeeded,
  type Toleration,
} from '../hub/index.ts';
import type { ClusterSummary, LostCluster } from '../ownership/index.ts';
import type { Fleet, FleetDeps } from './fleet-deps.ts';

/** OCM's taints for clusters that do not report. Without a toleration the Placement would drop such clusters at once. */
const tolerated: readonly Toleration[] = [
  { key: 'cluster.open-cluster-management.io/unreachable', operator: 'Exists' },
  { key: 'cluster.open-cluster-management.io/unavailable', operator: 'Exists' },
];

/** Whether a toleration covers a taint. One without a key covers all, as in OCM. */
const covers = ({ key, operator }: Toleration, taint: Toleration) =>
  operator === taint.operator && (key === taint.key || !key);

/**
 * Gives a Placement without tolerations those that keep clusters which do not report for a while. A list that is there belongs to
 * whoever wrote it: Helm or a tool that applies it would be refused its next change of a list that the controller had written.
 * A Placement in a namespace without a principal is its users' alone. The report says what such Placements lack.
 */
export async function ensureTolerations(
  { caches, client }: Pick<FleetDeps, 'caches' | 'client'>,
  { spec, gitOpsCluster, namespace: principalNamespace, signal }: Fleet,
): Promise<StepReport> {
  if (spec.placement.problem !== undefined) {
    return { result: failed(`Failed to configure placement tolerations: ${spec.placement.problem}`) };
  }
  const { namespace = '' } = gitOpsCluster.metadata;
  const key = { namespace, name: spec.placement.value };
  const placement = caches.placements.get(key);
  if (placement === undefined) {
    const problem = `Placement ${namespace}/${key.name} does not exist`;
    return { result: failed(`Failed to configure placement tolerations: ${problem}`) };
  }
  const present = placement.spec?.tolerations;
  const missing = tolerated.filter((taint) => !present?.some((one) => covers(one, taint)));
  const isOthers = isGuest(gitOpsCluster, principalNamespace);
  if (missing.length > 0 && (present !== undefined || isOthers)) {
    const lacking = missing.map(({ key: name, operator }) => `{key: ${name}, operator: ${operator}}`).join(' and ');
    const whose = isOthers
      ? 'the controller does not change Placements of this namespace'
      : 'the controller does not change a list of others';
    const message = `Placement ${namespace}/${key.name} would drop a cluster that does not report, which is then detached; add ${lacking} to its spec.tolerations (${whose})`;
    return { result: failed(message) };
  }
  if (missing.length > 0) {
    const { resourceVersion } = placement.metadata;
    const patch = { metadata: { resourceVersion }, spec: { tolerations: missing } };
    try {
      await client.mergePatch(placements, key, patch, { fieldManager, signal });
    } catch (error) {
      // A concurrent change of the Placement triggers another reconcile.
      if (!isConflict(error) && !isNotFound(error)) {
        throw error;
      }
      return { result: undefined };
    }
  }
  return { result: succeeded('Placement tolerations configured successfully') };
}

/** Describes the selection of the Placement, which was read before the steps run. */
export function describePlacement(
  { caches }: Pick<FleetDeps, 'caches'>,
  { spec, selection, namespace: principalNamespace, gitOpsCluster }: Fleet,
  { skipped, lost }: Pick<ClusterSummary, 'skipped' | 'lost'>,
): StepResult<FleetReasons['PlacementEvaluated']> {
  const { namespace = '' } = gitOpsCluster.metadata;
  if (spec.placement.problem !== undefined) {
    return failed(`Failed to evaluate placement: ${spec.placement.problem}`);
  }
  const name = spec.placement.value;
  const placement = caches.placements.get({ namespace, name });
  if (!selection.known) {
    // A guest is told nothing about the namespaces of others.
    const visible = isGuest(gitOpsCluster, principalNamespace) ? principalNamespace : undefined;
    const elsewhere =
      placement === undefined ? caches.placements.list(visible).filter((one) => one.metadata.name === name) : [];
    const why = `${selection.problem}${hint(elsewhere, unusedNamespace(gitOpsCluster, namespace), namespace)}`;
    return selection.error
      ? failed(`Failed to evaluate placement: ${why}`)
      : { status: 'Unknown', reason: 'InProgress', message: why };
  }
  if (selection.clusters.size === 0) {
    const unused = unusedNamespace(gitOpsCluster, namespace);
    const note = unused === undefined ? '' : `; ${unused}`;
    return succeeded(`No managed clusters selected by placement${whyNone(placement)}${note}`, 'NoClusters');
  }
  const conflicts = conflictText(lost);
  const notes = [conflicts, unusedNamespace(gitOpsCluster, namespace), skippedText(skipped)].filter(
    (text) => text !== undefined,
  );
  const message = [`Evaluated ${selection.clusters.size} managed clusters`, ...notes].join('; ');
  return conflicts === undefined ? succeeded(message) : failed(message, 'Conflict');
}

const ownPlacement = (namespace: string) => `a GitOpsCluster uses a Placement of its own namespace, ${namespace}`;

/** A clause about `spec.placementRef.namespace` when it names another namespace; the field is part of every reference. */
function unusedNamespace({ spec }: GitOpsCluster, namespace: string): string | undefined {
  const { placementRef } = (spec ?? {}) as { placementRef?: { namespace?: unknown } };
  const named = placementRef?.namespace;
  return typeof named !== 'string' || named === '' || named === namespace
    ? undefined
    : `spec.placementRef.namespace (${named}) is not used: ${ownPlacement(namespace)}`;
}

/** A hint that the Placement is in another namespace, the most likely mistake: the reference has an unused field for it. */
function hint(elsewhere: readonly Placement[], unused: string | undefined, namespace: string): string {
  if (unused !== undefined) {
    return `; ${unused}`;
  }
  const [other] = elsewhere;
  return other ? `; there is one in namespace ${other.metadata.namespace}, but ${ownPlacement(namespace)}` : '';
}

/** OCM's reason for an empty selection. */
function whyNone(placement: Placement | undefined): string {
  const conditions = placement?.status?.conditions;
  const unsatisfied = findCondition(conditions, 'PlacementSatisfied');
  const misconfigured = findCondition(conditions, 'PlacementMisconfigured');
  const found = misconfigured?.status === 'True' ? misconfigured : unsatisfied;
  if (found === undefined || (found === unsatisfied && found.status !== 'False')) {
    return '';
  }
  const advice =
    found.reason === 'NoManagedClusterSetBindings'
      ? `; create a ManagedClusterSetBinding in namespace ${placement?.metadata.namespace}`
      : '';
  return `: ${found.reason}${found.message ? `: ${found.message}` : ''}${advice}`;
}

/** A clause about the skipped clusters and the reasons; undefined when there are none. */
export function skippedText(skipped: readonly { cluster: string; why: string }[]): string | undefined {
  if (skipped.length === 0) {
    return undefined;
  }
  const shown = skipped.slice(0, 3).map(({ cluster, why }) => `${cluster} is skipped: ${why}`);
  return [...shown, ...(skipped.length > 3 ? [`${skipped.length - 3} more are skipped`] : [])].join('; ');
}

/** The owner of a cluster that another GitOpsCluster selects, too. */
export function ownerText({ owner, isYounger }: LostCluster): string {
  return `${isYounger ? '' : 'the older '}GitOpsCluster ${owner}`;
}

/** A clause about the clusters that other GitOpsClusters own; undefined when there are none. */
export function conflictText(lost: readonly LostCluster[]): string | undefined {
  if (lost.length === 0) {
    return undefined;
  }
  const byOwner = Map.groupBy(lost, ownerText);
  return [...byOwner]
    .map(([owner, list]) => {
      const names = list.map(({ cluster }) => cluster).sort();
      const shown =
        names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ');
      return `${shown} already belong${names.length === 1 ? 's' : ''} to ${owner} and ${names.length === 1 ? 'is' : 'are'} left to it`;
    })
    .join('; ');
}
