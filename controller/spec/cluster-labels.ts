import { z } from 'zod';
import { isReservedClusterLabel } from '../../lib/argocd/index.ts';
import { listOf, quoted } from '../hub/index.ts';

/**
 * Which labels and cluster claims of a ManagedCluster become labels of its Argo CD cluster Secret. An entry is a name, or the
 * beginning of names and a `*`.
 */
export interface ClusterLabels {
  readonly labels: readonly string[];
  readonly claims: readonly string[];
}

/** Most entries of one list, as in the CRD. */
const mostEntries = 64;
/** The longest label key: a prefix of 253 characters, a slash and a name of 63. */
const longestEntry = 317;

const form =
  /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?|([A-Za-z0-9][-A-Za-z0-9_.]*)?\*)$/;

const entry = z
  .string({ error: ({ input }) => `must be a text, not ${quoted(input)}` })
  .refine((text) => text.length <= longestEntry && form.test(text), {
    error: ({ input }) =>
      `must be a label key such as env, or the beginning of one and a * such as topology.kubernetes.io/*, not ${quoted(input)}`,
  })
  .refine((text) => !isReservedClusterLabel(text), {
    error: ({ input }) =>
      `is ${quoted(input)}; labels of Argo CD, argocd-agent, this add-on and app.kubernetes.io are reserved`,
  });
const entries = listOf(entry, mostEntries, ({ input }) => `must be a list of label keys, not ${quoted(input)}`).default(
  [],
);

/** Parses `clusterLabels`. Empty: nothing is copied. */
export const clusterLabelsSchema: z.ZodType<ClusterLabels> = z.object(
  { labels: entries, claims: entries },
  { error: ({ input }) => `must have the lists labels and claims, not ${quoted(input)}` },
);

/**
 * The ManagedClusterSet alone: OCM lets only those who may add clusters to a set change this label. A cluster can write its other
 * labels and all its claims itself.
 */
export const defaultClusterLabels: ClusterLabels = {
  labels: ['cluster.open-cluster-management.io/clusterset'],
  claims: [],
};

/** Whether one of the entries selects a label or claim of this name. No entry selects a reserved one. */
export function selects(list: readonly string[], name: string): boolean {
  const isSelected = list.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));
  return isSelected && !isReservedClusterLabel(name);
}
