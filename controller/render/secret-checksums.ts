import { createHmac } from 'node:crypto';
import type { KubeObject, PodTemplate, Secret } from '../../lib/kube/index.ts';

/** Prefix of the annotations on pod templates, as Helm charts use it: `checksum/<name of the Secret>`. */
const prefix = 'checksum/';

/**
 * Annotates the pod templates that read delivered Secrets at their start, so that a changed Secret replaces their pods.
 * Programs that read a Secret through the API follow its changes themselves and are not concerned.
 * @param secrets the delivered Secrets
 * @param key secret key of the checksums: without it nobody can use a checksum to guess a short password
 */
export function withSecretChecksums(
  objects: readonly KubeObject[],
  secrets: readonly Secret[],
  key: string,
): KubeObject[] {
  const checksums = new Map(
    secrets.map(({ metadata, data }) => [
      metadata.name,
      createHmac('sha256', key).update(JSON.stringify(data)).digest('hex'),
    ]),
  );
  return objects.map((object) => {
    const { spec } = object as { spec?: { template?: PodTemplate } };
    const used = secretsOf(spec?.template).flatMap((name) => {
      const checksum = checksums.get(name);
      return checksum === undefined ? [] : [[`${prefix}${name}`, checksum] as const];
    });
    if (used.length === 0) {
      return object;
    }
    const { metadata } = spec?.template ?? {};
    const annotations = { ...metadata?.annotations, ...Object.fromEntries(used) };
    return { ...object, spec: { ...spec, template: { ...spec?.template, metadata: { ...metadata, annotations } } } };
  });
}

/** Names of the Secrets in the environment of a pod's containers. */
function secretsOf(template: PodTemplate | undefined): string[] {
  const { containers = [], initContainers = [] } = template?.spec ?? {};
  const names = [...containers, ...initContainers].flatMap(({ env = [] }) =>
    env.flatMap(
      ({ valueFrom }) => (valueFrom as { secretKeyRef?: { name?: string } } | undefined)?.secretKeyRef?.name ?? [],
    ),
  );
  return [...new Set(names)];
}
