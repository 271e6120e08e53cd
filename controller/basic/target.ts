import { isDnsLabel } from '../../lib/base/index.ts';
import { pullKeys } from './names.ts';
import type { PullApplication } from './resources.ts';

/** Where an Application is delivered to. */
export interface PullTarget {
  readonly cluster: string;
  /** Namespace and name on the cluster. */
  readonly namespace: string;
  readonly name: string;
}

/** What an Application requests: no delivery, delivery with invalid settings, or delivery to a target. */
export type PullIntent =
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid'; readonly problem: string }
  | { readonly kind: 'valid'; readonly target: PullTarget };

const yes = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const no = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/** Reads an Application's label and annotations as argocd-pull-integration does: booleans as in Go's ParseBool. */
export function pullIntentOf({ metadata }: PullApplication): PullIntent {
  const { labels = {}, annotations = {} } = metadata;
  const pull = labels[pullKeys.pull];
  if (pull === undefined || no.has(pull)) {
    return { kind: 'none' };
  }
  if (!yes.has(pull)) {
    return {
      kind: 'invalid',
      problem: `label ${pullKeys.pull} is ${JSON.stringify(pull)}; it must be "true" or "false"`,
    };
  }
  const cluster = annotations[pullKeys.cluster] ?? '';
  if (cluster === '') {
    return { kind: 'none' };
  }
  if (!isDnsLabel(cluster)) {
    return invalid(pullKeys.cluster, cluster, 'the name of a ManagedCluster');
  }
  const namespace = annotations[pullKeys.appNamespace] || metadata.namespace || 'argocd';
  if (!isDnsLabel(namespace)) {
    return invalid(pullKeys.appNamespace, namespace, 'the name of a namespace');
  }
  return { kind: 'valid', target: { cluster, namespace, name: metadata.name } };
}

function invalid(key: string, value: string, what: string): PullIntent {
  return { kind: 'invalid', problem: `annotation ${key} is ${JSON.stringify(value)}, which cannot be ${what}` };
}

/** A target as one text: `cluster/namespace/name`. */
export function placeKey({ cluster, namespace, name }: PullTarget): string {
  return `${cluster}/${namespace}/${name}`;
}
