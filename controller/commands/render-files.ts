import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import { UsageError } from '../../lib/ops/index.ts';
import { type AddOnDeploymentConfig, deliverableCrd, type GitOpsCluster, gitOpsClusters } from '../hub/index.ts';
import type { HubState } from '../spec/index.ts';

/** Reads a GitOpsCluster from a file. */
export async function readGitOpsCluster(file: string, namespace: string): Promise<GitOpsCluster> {
  const object = await only(file, gitOpsClusters.kind, '--gitopscluster');
  return { ...object, metadata: { namespace, ...object.metadata } };
}

/** Reads an AddOnDeploymentConfig from a file. */
export async function readConfig(file: string, cluster: string): Promise<AddOnDeploymentConfig> {
  const object = await only(file, 'AddOnDeploymentConfig', '--config');
  return { ...object, metadata: { namespace: cluster, ...object.metadata } };
}

/** The state of a hub that has the CRDs of some files and runs nothing, so that the default images apply. */
export async function hubOfFiles(path: string): Promise<HubState> {
  const crds = new Map<string, CustomResourceDefinition>();
  for (const object of path ? await objectsOf(path) : []) {
    if (object.kind !== 'CustomResourceDefinition') {
      continue;
    }
    crds.set(object.metadata.name, deliverableCrd(object as CustomResourceDefinition));
  }
  return { crd: (name) => crds.get(name), hubImage: () => undefined, principalImage: () => undefined };
}

async function only(file: string, kind: string, flag: string): Promise<KubeObject> {
  const found = (await objectsOf(file)).filter((object) => object.kind === kind);
  const [object] = found;
  if (object === undefined || found.length > 1) {
    throw new UsageError(`${flag}: ${file} must hold one ${kind}, not ${found.length}`);
  }
  return object;
}

async function objectsOf(path: string): Promise<KubeObject[]> {
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    (error: Error) => {
      throw new UsageError(`${path} cannot be read: ${error.message}`);
    },
  );
  const files = isFolder ? (await readdir(path)).filter((name) => /\.(ya?ml|json)$/.test(name)).sort() : [''];
  const texts = await Promise.all(files.map((name) => readFile(join(path, name), 'utf8')));
  return texts.flatMap((text) =>
    parseAllDocuments(text).flatMap((document) => {
      const [error] = document.errors;
      if (error) {
        throw new UsageError(`${path} is no YAML: ${error.message}`);
      }
      const object = document.toJS() as (KubeObject & { items?: KubeObject[] }) | null;
      return object?.kind === 'List' ? (object.items ?? []) : (object ?? []);
    }),
  );
}
