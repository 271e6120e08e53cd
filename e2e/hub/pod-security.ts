import { isForbidden, type KubeClient, namespaces, type PodSpec } from '../../lib/kube/index.ts';

/** A pod as something would make it: what to call it in a message, and its specification. */
export interface PodOf {
  of: string;
  spec: PodSpec;
}

/**
 * What the Pod Security Standard `restricted` has against pods, in the API server's words; nothing is created. The
 * namespace enforces the standard from now on.
 */
export async function restrictedRefusals(client: KubeClient, namespace: string, pods: readonly PodOf[]) {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  await client.mergePatch(namespaces, { name: namespace }, { metadata: { labels } });
  const refusals: string[] = [];
  for (const { of, spec } of pods) {
    // The account need not exist for a pod that is not made.
    const { serviceAccountName: _, ...rest } = spec;
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'try' }, spec: rest };
    try {
      const made = await client.request(`/api/v1/namespaces/${namespace}/pods?dryRun=All`, { method: 'POST', body });
      await made.body.text();
    } catch (error) {
      if (!isForbidden(error)) {
        throw error;
      }
      refusals.push(`${of}: ${(error as Error).message}`);
    }
  }
  return refusals;
}
