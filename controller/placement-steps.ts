import { isConflict, isNotFound } from '../lib/kube/index.ts';
import { fieldManager } from './names.ts';
import { placements, type Toleration } from './resources.ts';
import { failed, type Step, type StepResult, succeeded } from './steps.ts';

/** Taints that OCM puts on clusters that do not report; without a toleration they would leave the placement at once. */
const tolerated: readonly Toleration[] = [
  { key: 'cluster.open-cluster-management.io/unreachable', operator: 'Exists' },
  { key: 'cluster.open-cluster-management.io/unavailable', operator: 'Exists' },
];

/** Makes the Placement keep clusters that are out of reach for a while. */
export const tolerationStep: Step = {
  condition: 'PlacementTolerationConfigured',
  purpose: 'configure placement tolerations',
  run: async ({ spec, namespace, caches, client, signal }): Promise<StepResult> => {
    if (spec.placement.problem !== undefined)
      return failed(`Failed to configure placement tolerations: ${spec.placement.problem}`);
    const key = { namespace, name: spec.placement.value };
    const placement = caches.placements.get(key);
    if (placement === undefined) {
      return failed(`Failed to configure placement tolerations: Placement ${namespace}/${key.name} does not exist`);
    }
    const present = placement.spec?.tolerations ?? [];
    const missing = tolerated.filter(
      (wanted) => !present.some(({ key: name, operator }) => name === wanted.key && operator === wanted.operator),
    );
    if (missing.length > 0) {
      const { resourceVersion } = placement.metadata;
      const patch = { metadata: { resourceVersion }, spec: { tolerations: [...present, ...missing] } };
      try {
        await client.mergePatch(placements, key, patch, { fieldManager, signal });
      } catch (error) {
        // Somebody else just wrote it: the change comes by itself and leads here again.
        if (!isConflict(error) && !isNotFound(error)) throw error;
        return undefined;
      }
    }
    return succeeded('Placement tolerations configured successfully');
  },
};

/** Says what the Placement selects. The selection itself is worked out before the steps run. */
export const placementStep: Step = {
  condition: 'PlacementEvaluated',
  purpose: 'evaluate placement',
  run: ({ spec, selection, clusters }): StepResult => {
    if (spec.placement.problem !== undefined) return failed(`Failed to evaluate placement: ${spec.placement.problem}`);
    if (!selection.known) {
      const message = `Failed to evaluate placement: ${selection.problem}`;
      return selection.error
        ? failed(message)
        : { status: 'Unknown', reason: 'InProgress', message: selection.problem };
    }
    const notes = [
      ...clusters.skipped.map(({ cluster, why }) => `; ${cluster} is skipped: ${why}`),
      ...(clusters.lost.length > 0 ? [`; ${conflicts(clusters.lost)}`] : []),
    ].join('');
    if (selection.clusters.size === 0) return succeeded('No managed clusters selected by placement', 'NoClusters');
    return succeeded(`Evaluated ${selection.clusters.size} managed clusters${notes}`);
  },
};

function conflicts(lost: readonly { cluster: string; owner: string }[]): string {
  const byOwner = Map.groupBy(lost, ({ owner }) => owner);
  return [...byOwner]
    .map(([owner, list]) => {
      const names = list.map(({ cluster }) => cluster).sort();
      const shown =
        names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ');
      return `${shown} already belong${names.length === 1 ? 's' : ''} to the older GitOpsCluster ${owner} and ${names.length === 1 ? 'is' : 'are'} left to it`;
    })
    .join('; ');
}
