import { deployments, statefulSets } from '../../lib/kube/index.ts';
import type { Side } from '../ctl-command.ts';

/** @throws Error unless the components of Argo CD that must run are there, and those that must not are not */
export async function checkComponents(
  side: Side,
  wanted: { readonly present: readonly string[]; readonly absent: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  const { client, namespace } = side;
  const labelSelector = 'app.kubernetes.io/part-of=argocd,app.kubernetes.io/component';
  const options = { namespace, labelSelector, signal };
  const found = new Map<string, string>();
  for (const { metadata } of [
    ...(await client.list(deployments, options)),
    ...(await client.list(statefulSets, options)),
  ]) {
    found.set(metadata.labels?.['app.kubernetes.io/component'] ?? '', metadata.name);
  }
  const missing = wanted.present.filter((component) => !found.has(component));
  const stray = wanted.absent
    .filter((component) => found.has(component))
    .map((component) => `${component} (${found.get(component)})`);
  const problems = [
    ...(missing.length > 0 ? [`the following components were missing: ${missing.join(', ')}`] : []),
    ...(stray.length > 0 ? [`the following invalid components were found: ${stray.join(', ')}`] : []),
  ];
  if (problems.length > 0) {
    throw new Error(problems.join('\n'));
  }
}
