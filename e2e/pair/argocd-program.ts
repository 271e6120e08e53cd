import { randomUUID } from 'node:crypto';
import { configMaps } from '../../lib/kube/index.ts';
import { Program, type SharedCluster } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { namespace, put } from './material.ts';

/** The names under which Argo CD's one executable is another program. */
export type ArgoCdProgramName = 'argocd-applicationset-controller' | 'argocd-notifications' | 'argocd-server';

/** One of Argo CD's own programs for a cluster, as a process of this machine, not started. */
export async function argoCdProgram(
  name: ArgoCdProgramName,
  { kubeconfig }: SharedCluster,
  args: readonly string[],
): Promise<Program> {
  // The one of application sets looks for its cluster in the environment only.
  const environment = { ARGOCD_BINARY_NAME: name, KUBECONFIG: kubeconfig };
  return new Program([`--namespace=${namespace}`, ...args], environment, await toolPath('argocd'));
}

/** Gives a hub the settings that Argo CD's programs do not work without. */
export async function putArgoCdSettings({ client }: SharedCluster): Promise<void> {
  const labels = { 'app.kubernetes.io/part-of': 'argocd' };
  await put(client, 'argocd-secret', { 'server.secretkey': randomUUID() }, { labels });
  for (const name of ['argocd-cm', 'argocd-rbac-cm', 'argocd-tls-certs-cm', 'argocd-ssh-known-hosts-cm']) {
    await client.create(configMaps, { metadata: { namespace, name, labels }, data: {} });
  }
}
