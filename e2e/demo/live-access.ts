import { setTimeout as sleep } from 'node:timers/promises';
import { type KubeClient, type KubeObject, resourceType } from '../../lib/kube/index.ts';
import type { ArgoCdApi } from '../argocd/index.ts';
import { guestbookRepository } from '../fleet/index.ts';
import type { Progress } from './progress.ts';

interface ResourceNode {
  kind: string;
  name: string;
  uid: string;
}

const pods = resourceType<KubeObject>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true });

/** The hub's Argo CD shows what runs on a cluster: its tree, from the cluster's own Argo CD, and the live manifest of a pod. */
export async function showsLive(
  api: ArgoCdApi,
  of: { app: string; cluster: string; client: KubeClient },
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const pod = await progress.step(
    `the hub's Argo CD shows the resource tree of ${of.app}, down to its pod on ${of.cluster}`,
    async (waitsFor) => {
      for (;;) {
        const { nodes = [] } = await api.get<{ nodes?: ResourceNode[] }>(
          `/api/v1/applications/${of.app}/resource-tree`,
        );
        const found = nodes.find(({ kind }) => kind === 'Pod');
        if (found) {
          return found;
        }
        waitsFor(`the tree has ${nodes.map(({ kind }) => kind).join(', ') || 'nothing'} so far`);
        await sleep(200, undefined, { signal });
      }
    },
  );
  const begin = performance.now();
  const query = `namespace=${guestbookRepository}&resourceName=${pod.name}&version=v1&kind=Pod`;
  const { manifest } = await api.get<{ manifest: string }>(`/api/v1/applications/${of.app}/resource?${query}`);
  progress.measured("the pod's live manifest, through principal and agent", performance.now() - begin);
  const there = await of.client.get(pods, { namespace: guestbookRepository, name: pod.name });
  if ((JSON.parse(manifest) as KubeObject).metadata.uid !== there?.metadata.uid) {
    throw new Error(`Argo CD shows another pod ${pod.name} than ${of.cluster} has`);
  }
}
