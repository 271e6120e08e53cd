import { pullKeys } from './names.ts';
import type { PullApplication } from './resources.ts';

/** Where an Application of the hub belongs. */
export interface PullTarget {
  readonly cluster: string;
  /** Namespace and name on the cluster. */
  readonly namespace: string;
  readonly name: string;
}

/** What an Application asks of the basic pull model: nothing, something that cannot be done, or a place on a cluster. */
export type PullIntent =
  | { readonly kind: 'none' }
  | { readonly kind: 'wrong'; readonly problem: string }
  | { readonly kind: 'wanted'; readonly target: PullTarget };

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const yes = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const no = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/** Reads the label and the annotations of an Application, as argocd-pull-integration does: words are those of Go's ParseBool. */
export function pullIntentOf({ metadata }: PullApplication): PullIntent {
  const { labels = {}, annotations = {} } = metadata;
  const pull = labels[pullKeys.pull];
  if (pull === undefined || no.has(pull)) {
    return { kind: 'none' };
  }
  if (!yes.has(pull)) {
    return {
      kind: 'wrong',
      problem: `label ${pullKeys.pull} is ${JSON.stringify(pull)}; it must be "true" or "false"`,
    };
  }
  const cluster = annotations[pullKeys.cluster] ?? '';
  if (cluster === '') {
    return { kind: 'none' };
  }
  if (!label.test(cluster)) {
    return wrong(pullKeys.cluster, cluster, 'the name of a ManagedCluster');
  }
  const namespace = annotations[pullKeys.appNamespace] || metadata.namespace || 'argocd';
  if (!label.test(namespace)) {
    return wrong(pullKeys.appNamespace, namespace, 'the name of a namespace');
  }
  return { kind: 'wanted', target: { cluster, namespace, name: metadata.name } };
}

function wrong(key: string, value: string, what: string): PullIntent {
  return { kind: 'wrong', problem: `annotation ${key} is ${JSON.stringify(value)}, which cannot be ${what}` };
}

/** One text for a place on a cluster. */
export function placeKey({ cluster, namespace, name }: PullTarget): string {
  return `${cluster}/${namespace}/${name}`;
}
