import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { type CustomResourceDefinition, crds, Informer, type KubeClient } from '../../lib/kube/index.ts';

const folders = {
  argocd: new URL('../../charts/argocd-agent-addon/charts/argocd-hub/files/crds', import.meta.url).pathname,
  hub: new URL('./crds/hub', import.meta.url).pathname,
  managed: new URL('./crds/managed', import.meta.url).pathname,
  original: new URL('./crds/original', import.meta.url).pathname,
};

/** Argo CD's kinds as the hub chart has them: Application, ApplicationSet, AppProject. */
export async function argoCdCrds(): Promise<CustomResourceDefinition[]> {
  return await readCrds(folders.argocd);
}

/** OCM's kinds on a hub, or on a managed cluster: compact, what this project does not touch is preserved. */
export async function ocmCrds(where: 'hub' | 'managed'): Promise<CustomResourceDefinition[]> {
  return await readCrds(folders[where]);
}

/** argocd-pull-integration's GitOpsCluster, compact: it refuses less than this project's own. */
export async function originalCrds(): Promise<CustomResourceDefinition[]> {
  return await readCrds(folders.original);
}

/** Reads every CRD in the YAML files of a folder, leaving out other kinds. */
export async function readCrds(folder: string): Promise<CustomResourceDefinition[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml')).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return texts
    .flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as CustomResourceDefinition | null))
    .filter((object): object is CustomResourceDefinition => object?.kind === 'CustomResourceDefinition');
}

/** Applies CRDs and resolves when the API server serves them. */
export async function installCrds(
  client: KubeClient,
  definitions: readonly CustomResourceDefinition[],
  signal?: AbortSignal,
): Promise<void> {
  await Promise.all(
    definitions.map((definition) => client.apply(crds, definition, { fieldManager: 'testbed', force: true })),
  );
  const waiting = new Set(definitions.map((definition) => definition.metadata.name));
  const ended = new AbortController();
  const informer = new Informer({ client, type: crds });
  const established = new Promise<void>((resolve) => {
    const look = (definition: CustomResourceDefinition) => {
      if (isEstablished(definition)) {
        waiting.delete(definition.metadata.name);
      }
      if (waiting.size === 0) {
        resolve();
      }
    };
    informer.subscribe({ added: look, updated: (_, now) => look(now) });
    if (signal?.aborted) {
      resolve();
    }
    signal?.addEventListener('abort', () => resolve(), { once: true });
  });
  const watching = informer.run(signal ? AbortSignal.any([signal, ended.signal]) : ended.signal);
  await established;
  ended.abort();
  await watching;
  signal?.throwIfAborted();
}

function isEstablished(definition: CustomResourceDefinition): boolean {
  return Boolean(
    definition.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True'),
  );
}
