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
 * @throws ToolError as {@link argoCdSource} does
 */
export async function applyPublishedArgoCd(client: KubeClient, namespace: string): Promise<void> {
  const root = await argoCdSource();
  const text = await readFile(join(root, 'manifests/install.yaml'), 'utf8');
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as KubeObject | null;
    const type = types[object?.kind ?? ''];
    if (object && type) {
      const metadata = { ...object.metadata, namespace };
      await client.apply(type, { ...object, metadata }, { fieldManager: 'kubectl', force: true });
    }
  }
}
