import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import type { AddOnDeploymentConfig, ResourceRequirements } from '../resources.ts';

type Config = NonNullable<AddOnDeploymentConfig['spec']>;
type Workload = KubeObject & { spec: { template: { spec: PodSpec } } };

const plurals: Readonly<Record<string, string>> = {
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
  Job: 'jobs',
};

/**
 * Applies an AddOnDeploymentConfig to rendered objects as OCM's add-on manager does it to a template's: node placement,
 * image registries, proxy settings and resources of containers. Objects that are no workloads come back as they are.
 */
export function decorate(objects: readonly KubeObject[], config: Config | undefined): KubeObject[] {
  if (config === undefined) return [...objects];
  return objects.map((object) => {
    const plural = plurals[object.kind ?? ''];
    if (plural === undefined) return object;
    const workload = structuredClone(object) as Workload;
    const pod = workload.spec.template.spec;
    const { nodeSelector, tolerations } = config.nodePlacement ?? {};
    if (nodeSelector) pod.nodeSelector = { ...(pod.nodeSelector as Record<string, string>), ...nodeSelector };
    if (tolerations) pod.tolerations = tolerations;
    for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
      if (container.image) container.image = mirrored(container.image, config.registries ?? []);
      const proxy = proxyEnvironment(config);
      if (proxy.length > 0) container.env = [...(container.env ?? []), ...proxy];
      const resources = resourcesOf(config, plural, object.metadata.name, container.name);
      if (resources) container.resources = resources;
    }
    return workload;
  });
}

/** An image from the mirror of its registry: the longest matching source wins, an empty source matches every image. */
export function mirrored(image: string, registries: readonly { source?: string; mirror: string }[]): string {
  const [best] = registries
    .filter(({ source }) => !source || image === source || image.startsWith(`${source.replace(/\/$/, '')}/`))
    .sort((a, b) => (b.source?.length ?? 0) - (a.source?.length ?? 0));
  if (best === undefined) return image;
  const mirror = best.mirror.replace(/\/$/, '');
  if (!best.source) return `${mirror}/${image.slice(image.lastIndexOf('/') + 1)}`;
  return `${mirror}${image.slice(best.source.replace(/\/$/, '').length)}`;
}

function proxyEnvironment({ proxyConfig }: Config): { name: string; value: string }[] {
  const { httpProxy, httpsProxy, noProxy } = proxyConfig ?? {};
  if (!httpProxy && !httpsProxy) return [];
  const values = { HTTP_PROXY: httpProxy, HTTPS_PROXY: httpsProxy, NO_PROXY: noProxy };
  return Object.entries(values).flatMap(([name, value]) =>
    value
      ? [
          { name, value },
          { name: name.toLowerCase(), value },
        ]
      : [],
  );
}

function resourcesOf(
  config: Config,
  plural: string,
  workload: string,
  container: string,
): ResourceRequirements | undefined {
  const matches = (pattern: string) => {
    const [kinds, names, containers] = pattern.split(':');
    return (
      (kinds === '*' || kinds === plural) &&
      (names === '*' || names === workload) &&
      (containers === '*' || containers === container)
    );
  };
  return config.resourceRequirements?.findLast(({ containerID }) => matches(containerID))?.resources;
}
