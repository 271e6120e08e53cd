import type { KubeObject } from '../../lib/kube/index.ts';

/** A ClusterRole; with a rule, it is one that the control plane puts together from others. */
export interface AggregatedRole extends KubeObject {
  aggregationRule?: { clusterRoleSelectors: { matchLabels: Record<string, string> }[] };
  rules?: unknown[] | null;
}

/**
 * Whether each aggregated role has the rules of all roles that it is made of. Those can be aggregated roles too (`admin` has
 * what `edit` has, and that what `view` has), so one that has some rules can still lack others.
 */
export function areAggregated(roles: readonly AggregatedRole[]): boolean {
  const rulesOf = (role: AggregatedRole) => (role.rules ?? []).map((rule) => JSON.stringify(rule));
  const aggregated = roles.filter(({ aggregationRule }) => aggregationRule);
  return (
    aggregated.length > 0 &&
    aggregated.every((role) => {
      const rules = new Set(rulesOf(role));
      const parts = roles.filter(
        (other) =>
          other !== role &&
          role.aggregationRule?.clusterRoleSelectors.some(({ matchLabels }) =>
            Object.entries(matchLabels).every(([label, value]) => other.metadata.labels?.[label] === value),
          ),
      );
      return rules.size > 0 && parts.flatMap(rulesOf).every((rule) => rules.has(rule));
    })
  );
}
