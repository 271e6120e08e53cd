import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import {
  configMaps,
  deployments,
  type KubeClient,
  type KubeObject,
  type ResourceType,
  statefulSets,
} from '../../lib/kube/index.ts';
import { argoCdSource } from './published-crds.ts';

const types: Readonly<Record<string, ResourceType>> = {
  ConfigMap: configMaps,
  Deployment: deployments,
  StatefulSet: statefulSets,
};

/**
 * Argo CD in a namespace as `kubectl apply -f install.yaml` of its project leaves it: its ConfigMaps and workloads. No pod
 * runs.
 * @param image of Argo CD, instead of the published one
 * @throws ToolError as {@link argoCdSource} does
 */
export async function applyPublishedArgoCd(client: KubeClient, namespace: string, image?: string): Promise<void> {
  const root = await argoCdSource();
  const text = await readFile(join(root, 'manifests/install.yaml'), 'utf8');
  const wanted = image === undefined ? text : text.replaceAll(/quay\.io\/argoproj\/argocd:\S+/g, image);
  for (const document of parseAllDocuments(wanted)) {
    const object = document.toJS() as KubeObject | null;
    const type = types[object?.kind ?? ''];
    if (object && type) {
      const metadata = { ...object.metadata, namespace };
      await client.apply(type, { ...object, metadata }, { fieldManager: 'kubectl', force: true });
    }
  }
}
