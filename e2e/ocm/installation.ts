import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { type CustomResourceDefinition, crds, type KubeClient, type KubeObject } from '../../lib/kube/index.ts';
import { installCrds } from '../hub/index.ts';
import { toolPath } from '../tools/index.ts';

const run = promisify(execFile);

/** Where OCM's parts and their accounts are: the names that its operators use unless told otherwise. */
export const ocmNamespaces = {
  hub: 'open-cluster-management-hub',
  bootstrap: 'open-cluster-management',
  agent: 'open-cluster-management-agent',
  addOn: 'open-cluster-management-agent-addon',
} as const;

/** What OCM's operators install on a hub or a managed cluster: CRDs, accounts, rights, webhooks. */
export async function ocmManifests(where: 'hub' | 'managed'): Promise<KubeObject[]> {
  const { stdout } = await run(await toolPath('ocm'), ['manifests', where], { maxBuffer: 32 * 1024 * 1024 });
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object): object is KubeObject => Boolean(object?.kind));
}

/** Installs them: namespaces and CRDs first. A CRD that is there stays as it is. */
export async function installManifests(
  client: KubeClient,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<void> {
  const isCrd = (object: KubeObject) => object.kind === crds.kind;
  const there = new Set((await client.list(crds)).map(({ metadata }) => metadata.name));
  const missing = objects.filter(isCrd).filter(({ metadata }) => !there.has(metadata.name));
  const places = new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []));
  await Promise.all([
    installCrds(client, missing as CustomResourceDefinition[], signal),
    ...[...places].map((name) => applyObject(client, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
  ]);
  await Promise.all(objects.filter((object) => !isCrd(object)).map((object) => applyObject(client, object)));
}

/** Creates or updates an object of any kind, as OCM's operator does. */
export async function applyObject(client: KubeClient, object: KubeObject): Promise<void> {
  const { annotations, ...metadata } = object.metadata;
  // A key that ends with a dash tells the operator to take that annotation away.
  const kept = Object.entries(annotations ?? {}).filter(([key]) => !key.endsWith('-'));
  const type = await client.resolve(object.apiVersion ?? '', object.kind ?? '');
  if (!type) {
    throw new Error(`${client.server} does not serve ${object.apiVersion} ${object.kind}`);
  }
  const desired = { ...object, metadata: { ...metadata, annotations: Object.fromEntries(kept) } };
  await client.apply(type, desired, { fieldManager: 'ocm-operator', force: true });
}
