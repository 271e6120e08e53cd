import { isLabelKey, isLabelValue } from '../../lib/base/index.ts';
import type { Secret } from '../../lib/kube/index.ts';
import { type AddOnCondition, keys, type ManagedCluster, quoted } from '../hub/index.ts';
import { type ClusterLabels, selects } from '../spec/index.ts';

/** Most labels that are copied to one Secret. */
const mostLabels = 64;
/** Most selected labels, and most selected claims, that are looked at. A ManagedCluster of 1.5 MiB may have 40,000. */
const mostSelected = 1_000;
/** Most labels and claims that a condition names. */
const mostNamed = 5;

/** What a ManagedCluster gives to its cluster Secret. */
export interface CopiedLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** The selected labels and claims that are not copied, each with the reason. */
  readonly skipped: readonly string[];
}

/**
 * The labels of a cluster Secret that come from labels and claims of its ManagedCluster. A label comes before a claim of the same
 * name. A label that somebody else gave to the Secret stays as it is.
 * @param live the Secret as it is
 */
export function copiedLabels(
  managed: ManagedCluster | undefined,
  selection: ClusterLabels,
  live: Secret | undefined,
): CopiedLabels {
  const { metadata, status } = managed ?? {};
  const claims = (status?.clusterClaims ?? []).map(({ name = '', value = '' }): [string, string] => [name, value]);
  const candidates = [
    ...candidatesOf('label', Object.entries(metadata?.labels ?? {}), selection.labels),
    ...candidatesOf('claim', claims, selection.claims),
  ];
  const foreign = foreignLabels(live);
  const seen = new Set<string>();
  const labels = new Map<string, string>();
  const skipped: string[] = [];
  for (const { kind, name, value } of candidates) {
    const existing = foreign.get(name);
    // An equal label stays foreign, too: a cluster could make it its own by its value, and then change it.
    if (seen.has(name) || existing === value) {
      continue;
    }
    seen.add(name);
    if (!isLabelKey(name)) {
      skipped.push(`${kind} ${quoted(name)}: its name is no label key`);
    } else if (!isLabelValue(value)) {
      skipped.push(`${kind} ${name}: ${quoted(value)} is no label value`);
    } else if (existing !== undefined) {
      skipped.push(`${kind} ${name}: somebody else labelled the Secret ${name}=${existing}`);
    } else if (labels.size === mostLabels) {
      skipped.push(`${kind} ${name}: at most ${mostLabels} labels are copied`);
    } else {
      labels.set(name, value);
    }
  }
  return { labels: Object.fromEntries(labels), skipped };
}

/** In the order of their names, so that the same ones are left out each time. */
function candidatesOf(kind: 'label' | 'claim', all: readonly [name: string, value: string][], list: readonly string[]) {
  return all
    .filter(([name]) => selects(list, name))
    .slice(0, mostSelected)
    .map(([name, value]) => ({ kind, name, value }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** The labels of a Secret that were not copied to it. */
function foreignLabels(live: Secret | undefined): ReadonlyMap<string, string> {
  const { labels = {}, annotations = {} } = live?.metadata ?? {};
  const copied = new Set(annotations[keys.copiedLabels]?.split(','));
  return new Map(Object.entries(labels).filter(([name]) => !copied.has(name)));
}

/** The record of the copied labels, as the value of annotation `keys.copiedLabels`. */
export function copiedLabelsRecord({ labels }: CopiedLabels): string {
  return Object.keys(labels).sort().join(',');
}

/** Type of the condition that names what could not become a label. An add-on has it only then. */
export const labelsCopiedType = 'ClusterLabelsCopied';

/** The condition ClusterLabelsCopied; undefined when everything that is selected is copied. */
export function labelsCopied(skipped: readonly string[]): AddOnCondition | undefined {
  if (skipped.length === 0) {
    return undefined;
  }
  const more = skipped.length > mostNamed ? `; and ${skipped.length - mostNamed} more` : '';
  const message = `not copied to the cluster Secret: ${skipped.slice(0, mostNamed).join('; ')}${more}`;
  return { type: labelsCopiedType, status: 'False', reason: 'NotCopied', message };
}
