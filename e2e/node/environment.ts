import type { ConfigMap, Secret } from '../../lib/kube/index.ts';
import { ContainerError } from './errors.ts';
import { expand } from './expand.ts';
import { fieldValue, type PodPlace, resourceValue } from './fields.ts';
import type { EnvVar, KeySelector, KubeletContainer, KubeletPod } from './types.ts';

/** What a pod's containers and volumes read from the API server, as the node last saw it. */
export interface ClusterObjects {
  secret(namespace: string, name: string): Secret | undefined;
  configMap(namespace: string, name: string): ConfigMap | undefined;
}

/**
 * The environment of a container: the image's, then the Services', then `envFrom`, then `env`, each overriding what
 * came before.
 *
 * @throws ContainerError `CreateContainerConfigError` when a Secret, ConfigMap or key is missing and not optional
 */
export function buildEnvironment(options: {
  pod: KubeletPod;
  container: KubeletContainer;
  place: PodPlace;
  objects: ClusterObjects;
  /** From the image. */
  image: Readonly<Record<string, string>>;
  /** The variables that announce Services. */
  services: Readonly<Record<string, string>>;
}): Map<string, string> {
  const { pod, container, objects } = options;
  const namespace = pod.metadata.namespace ?? '';
  const env = new Map([...Object.entries(options.image), ['HOSTNAME', pod.metadata.name] as const]);
  const known = new Map(Object.entries(options.services));

  for (const source of container.envFrom ?? []) {
    const isSecret = source.secretRef !== undefined;
    const reference = source.secretRef ?? source.configMapRef;
    if (!reference) {
      continue;
    }
    const data = isSecret
      ? decoded(objects.secret(namespace, reference.name)?.data)
      : objects.configMap(namespace, reference.name)?.data;
    const exists = isSecret
      ? objects.secret(namespace, reference.name) !== undefined
      : objects.configMap(namespace, reference.name) !== undefined;
    if (!exists) {
      if (reference.optional) {
        continue;
      }
      throw configError(`${isSecret ? 'secret' : 'configmap'} "${reference.name}" not found`);
    }
    for (const [key, value] of Object.entries(data ?? {})) {
      known.set(`${source.prefix ?? ''}${key}`, value);
    }
  }
  for (const variable of container.env ?? []) {
    const value = variableValue(variable, options, known);
    if (value !== undefined) {
      known.set(variable.name, value);
    }
  }
  for (const [name, value] of known) {
    env.set(name, value);
  }
  return env;
}

function variableValue(
  variable: EnvVar,
  options: { pod: KubeletPod; container: KubeletContainer; place: PodPlace; objects: ClusterObjects },
  known: ReadonlyMap<string, string>,
): string | undefined {
  const from = variable.valueFrom;
  const namespace = options.pod.metadata.namespace ?? '';
  if (!from) {
    return expand(variable.value ?? '', known);
  }
  if (from.fieldRef) {
    return fieldValue(options.pod, options.place, from.fieldRef.fieldPath);
  }
  if (from.resourceFieldRef) {
    return resourceValue(options.container.resources, from.resourceFieldRef.resource);
  }
  if (from.secretKeyRef) {
    const secret = options.objects.secret(namespace, from.secretKeyRef.name);
    return keyValue('Secret', namespace, from.secretKeyRef, secret && (decoded(secret.data) ?? {}));
  }
  if (from.configMapKeyRef) {
    const map = options.objects.configMap(namespace, from.configMapKeyRef.name);
    return keyValue('ConfigMap', namespace, from.configMapKeyRef, map && (map.data ?? {}));
  }
  throw configError(`environment variable ${variable.name} has a source that the node does not know`);
}

function keyValue(
  kind: 'Secret' | 'ConfigMap',
  namespace: string,
  selector: KeySelector,
  data: Record<string, string> | undefined,
): string | undefined {
  const value = data?.[selector.key];
  if (value !== undefined || selector.optional) {
    return value;
  }
  if (!data) {
    throw configError(`${kind.toLowerCase()} "${selector.name}" not found`);
  }
  throw configError(`couldn't find key ${selector.key} in ${kind} ${namespace}/${selector.name}`);
}

function decoded(data: Record<string, string> | undefined): Record<string, string> | undefined {
  return (
    data &&
    Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]))
  );
}

function configError(message: string): ContainerError {
  return new ContainerError('CreateContainerConfigError', message);
}
