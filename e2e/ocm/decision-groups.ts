import { isSelected } from './schedule.ts';
import type { OcmManagedCluster, OcmPlacement } from './types.ts';

/** Some of the clusters that a Placement selects. */
export interface OcmDecisionGroup {
  /** Empty for clusters that no group of the Placement asks for. */
  name: string;
  /** Sorted by name. */
  clusters: string[];
}

/**
 * Divides the clusters that a Placement selects by the rules of OCM's placement controller: each goes to the first of the
 * Placement's groups that asks for it, the others to a group without name, and a group that is larger than
 * `clustersPerDecisionGroup` is cut into several of the same name. Their position is their index. There is at least one,
 * which may be empty.
 */
export function decisionGroups(
  { spec }: OcmPlacement,
  selected: readonly string[],
  clusters: readonly OcmManagedCluster[],
): OcmDecisionGroup[] {
  const { decisionGroups: asked = [], clustersPerDecisionGroup = '100%' } = spec?.decisionStrategy?.groupStrategy ?? {};
  const length = groupLength(clustersPerDecisionGroup, selected.length);
  const left = new Map(
    clusters.filter(({ metadata }) => selected.includes(metadata.name)).map((one) => [one.metadata.name, one]),
  );
  const groups: OcmDecisionGroup[] = [];
  const divide = (name: string, members: string[]) => {
    for (let from = 0; from < members.length; from += length) {
      groups.push({ name, clusters: members.slice(from, from + length) });
    }
  };
  for (const { groupName, groupClusterSelector } of asked) {
    const members = [...left.values()].filter((one) => isSelected(one, groupClusterSelector));
    for (const { metadata } of members) {
      left.delete(metadata.name);
    }
    divide(groupName, members.map(({ metadata }) => metadata.name).sort());
  }
  divide('', [...left.keys()].sort());
  return groups.length > 0 ? groups : [{ name: '', clusters: [] }];
}

function groupLength(wanted: number | string, total: number): number {
  const percent = /^(\d+)%$/.exec(String(wanted))?.[1];
  const length = percent === undefined ? Number(wanted) : Math.ceil((Number(percent) / 100) * total);
  return length > 0 && length <= total ? length : Math.max(1, total);
}
