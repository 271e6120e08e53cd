import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { toolPath } from '../tools/index.ts';

const run = promisify(execFile);

/** Folder of the manifests of argocd-agent's principal and agent. */
export const manifestsFolder = (program: 'principal' | 'agent') =>
  new URL(`../../install/kubernetes/${program}`, import.meta.url).pathname;

/**
 * What `kustomize build` makes of a folder.
 * @throws Error with what kustomize says
 */
export async function kustomize(folder: string): Promise<KubeObject[]> {
  const options = { maxBuffer: 32 * 1024 * 1024 };
  // Bases outside the kustomization's own folder are this project's.
  const args = ['build', '--load-restrictor', 'LoadRestrictionsNone', folder];
  const { stdout } = await run(await toolPath('kustomize'), args, options);
  return parseAllDocuments(stdout).map((document) => document.toJS() as KubeObject);
}
