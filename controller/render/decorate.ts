import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import type { ResourceRequirements } from '../hub/index.ts';
import type { AddOnConfig, Registry } from './addon-config.ts';

type Container = PodSpec['containers'][number];
type Workload = KubeObject & { spec: { template: { spec: PodSpec } } };

const plurals: Readonly<Record<string, string>> = {
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
  DaemonSet: 'daemonsets',
  Job: 'jobs',
};

/** The certificates of a proxy, as OCM's add-on manager delivers them. */
const proxyCa = {
  configMap: 'argocd-agent-addon-proxy-ca',
  key: 'ca-bundle.crt',
  volume: 'proxy-ca-bundle',
  folder: '/managed/proxy-ca',
} as const;

/**
 * What is never reached through a proxy: the pod itself, Services, the API server (Kubernetes fills in its address), and
 * the Services that Argo CD addresses by their short names.
 */
const direct = [
  'localhost',
  '127.0.0.1',
  '.svc',
  '.cluster.local',
  '$(KUBERNETES_SERVICE_HOST)',
  'argocd-redis',
  'argocd-repo-server',
];

/** Workloads as they were decorated last. Most clusters have the same settings: hundreds of copies would take time and room. */
const known = new WeakMap<KubeObject, { readonly settings: string; readonly workload: Workload }>();

/**
 * Applies an AddOnDeploymentConfig to rendered objects as OCM's add-on manager does it to a template's: node placement,
 * image registries, proxy settings and resources of containers. Objects that are no workloads come back as they are. What
 * comes back is shared between calls: do not change it.
 */
export function decorate(objects: readonly KubeObject[], config: AddOnConfig): KubeObject[] {
  const settings = JSON.stringify(config);
  const namespaces = new Set<string>();
  const decorated = objects.map((object) => {
    const plural = plurals[object.kind ?? ''];
    if (plural === undefined) {
      return object;
    }
    if (config.proxy.caBundle) {
      namespaces.add(object.metadata.namespace ?? '');
    }
    const before = known.get(object);
    if (before?.settings === settings) {
      return before.workload;
    }
    const workload = decorateWorkload(object, plural, config);
    known.set(object, { settings, workload });
    return workload;
  });
  return [...decorated, ...[...namespaces].map((namespace) => proxyCaMap(namespace, config.proxy.caBundle))];
}

function decorateWorkload(object: KubeObject, plural: string, config: AddOnConfig): Workload {
  const workload = structuredClone(object) as Workload;
  const pod = workload.spec.template.spec;
  if (Object.keys(config.nodeSelector).length > 0) {
    pod.nodeSelector = { ...(pod.nodeSelector as Record<string, string>), ...config.nodeSelector };
  }
  if (config.tolerations) {
    pod.tolerations = [...config.tolerations];
  }
  const containers = [...(pod.initContainers ?? []), ...pod.containers];
  for (const container of containers) {
    if (container.image) {
      container.image = mirrored(container.image, config.registries);
    }
    const proxy = proxyEnvironment(config);
    if (proxy.length > 0) {
      container.env = [...(container.env ?? []), ...proxy];
    }
    const resources = resourcesOf(config, plural, object.metadata.name, container.name);
    if (resources) {
      container.resources = resources;
    }
  }
  if (config.proxy.caBundle) {
    mountProxyCa(pod, containers);
  }
  return workload;
}

/**
 * An image from the mirror of its registry. Of several that match the last one counts, as everywhere in OCM; an empty
 * source matches every image and replaces everything but its last part.
 */
export function mirrored(image: string, registries: readonly Registry[]): string {
  const without = (text: string) => text.replace(/\/$/, '');
  const found = registries.findLast(({ source }) => {
    const rest = image.slice(without(source).length);
    return source === '' || (image.startsWith(without(source)) && (rest === '' || /^[/:@]/.test(rest)));
  });
  if (found === undefined) {
    return image;
  }
  if (found.source === '') {
    return `${without(found.mirror)}/${image.slice(image.lastIndexOf('/') + 1)}`;
  }
  return `${without(found.mirror)}${image.slice(without(found.source).length)}`;
}

/** The container IDs of a configuration that no container of these objects has: most likely a mistake. */
export function unmatchedContainers(objects: readonly KubeObject[], config: AddOnConfig): string[] {
  const containers = objects.flatMap((object) => {
    const plural = plurals[object.kind ?? ''];
    if (plural === undefined) {
      return [];
    }
    const { containers: main, initContainers = [] } = (object as Workload).spec.template.spec;
    return [...initContainers, ...main].map(({ name }) => [plural, object.metadata.name, name] as const);
  });
  return config.containers
    .filter(({ containerID }) => !containers.some((container) => matches(containerID, ...container)))
    .map(({ containerID }) => containerID);
}

function proxyEnvironment({ proxy }: AddOnConfig): { name: string; value: string }[] {
  const { httpProxy, httpsProxy, noProxy } = proxy;
  if (!httpProxy && !httpsProxy) {
    return [];
  }
  const values = {
    HTTP_PROXY: httpProxy,
    HTTPS_PROXY: httpsProxy,
    NO_PROXY: [...new Set([...noProxy, ...direct])].join(','),
  };
  return Object.entries(values).flatMap(([name, value]) =>
    value
      ? [
          { name, value },
          { name: name.toLowerCase(), value },
        ]
      : [],
  );
}

/** OCM's variable says where the certificates are; the two others make Go and Node.js trust them besides the system's. */
function mountProxyCa(pod: PodSpec, containers: readonly Container[]): void {
  const { configMap, key, volume, folder } = proxyCa;
  pod.volumes = [...((pod.volumes as object[]) ?? []), { name: volume, configMap: { name: configMap } }];
  for (const container of containers) {
    const mounts = (container.volumeMounts as object[]) ?? [];
    container.volumeMounts = [...mounts, { name: volume, mountPath: folder, readOnly: true }];
    container.env = [
      ...(container.env ?? []),
      { name: 'CA_BUNDLE_FILE_PATH', value: `${folder}/${key}` },
      { name: 'NODE_EXTRA_CA_CERTS', value: `${folder}/${key}` },
      { name: 'SSL_CERT_DIR', value: `/etc/ssl/certs:${folder}` },
    ];
  }
}

function proxyCaMap(namespace: string, caBundle: string): KubeObject {
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: proxyCa.configMap, namespace },
    data: { [proxyCa.key]: caBundle },
  };
  return object;
}

function matches(containerID: string, plural: string, workload: string, container: string): boolean {
  const [kinds = '', names = '', containers = ''] = containerID.split(':');
  return glob(kinds, plural) && glob(names, workload) && glob(containers, container);
}

function glob(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(text);
}

/** Of several that match, the last one counts. */
function resourcesOf(
  config: AddOnConfig,
  plural: string,
  workload: string,
  container: string,
): ResourceRequirements | undefined {
  return config.containers.findLast(({ containerID }) => matches(containerID, plural, workload, container))?.resources;
}
