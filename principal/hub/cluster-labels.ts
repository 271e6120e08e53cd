import { isReservedClusterLabel } from '../../lib/argocd/index.ts';
import { isLabelKey, isLabelValue } from '../../lib/base/index.ts';

/** Labels of a cluster from `key=value`. The last one of a key counts. */
export function parseClusterLabels(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(entries.map(split));
}

/** What is wrong with labels of a cluster; undefined when nothing is. */
export function clusterLabelsProblem(entries: readonly string[]): string | undefined {
  for (const entry of entries) {
    const [key, value] = split(entry);
    const quoted = JSON.stringify(entry);
    if (!entry.includes('=') || !isLabelKey(key)) {
      return `must be key=value with the key of a label, such as env=prod, not ${quoted}`;
    }
    if (!isLabelValue(value)) {
      return `${quoted} has a value that no label can have: at most 63 letters, digits, "-", "_" or ".", first and last a letter or digit`;
    }
    if (isReservedClusterLabel(key)) {
      return `${quoted}: labels of Argo CD, argocd-agent and app.kubernetes.io are reserved`;
    }
  }
  return undefined;
}

function split(entry: string): [string, string] {
  const at = entry.indexOf('=');
  return at < 0 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)];
}
