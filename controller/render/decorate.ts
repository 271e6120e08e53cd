import { matchesGlob } from '../../lib/argocd/index.ts';
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

/** ConfigMap and volume for the certificates of a proxy, named as OCM's add-on manager names them. */
const proxyCa = {
  configMap: 'argocd-agent-addon-proxy-ca',
  key: 'ca-bundle.crt',
  volume: 'proxy-ca-bundle',
  folder: '/managed/proxy-ca',
} as const;

/**
 * Hosts that are never reached through a proxy: the pod itself, Services, the API server (Kubernetes fills in its
 * address), and the Services that Argo CD addresses by short names.
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

/** The last decorated workloads. Most clusters have the same settings: hundreds of copies would cost time and memory. */
const known = new WeakMap<KubeObject, { readonly settings: string; readonly workload: Workload }>();

/**
 * Applies an AddOnDeploymentConfig to rendered objects as OCM's add-on manager applies it to a template: node placement,
 * image registries, proxy settings and resources of containers. Objects that are not workloads stay as they are. The
 * result is shared between calls: do not change it.
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
    addEnvironment(container, proxyEnvironment(config));
    const resources = resourcesOf(config, plural, object.metadata.name, container.name);
    if (resources) {
      container.resources = resources;
    }
  }
  if (config.proxy.caBundle) {
    mountProxyCa(pod, containers);
  }
  decoratePod(pod, containers, config.pods);
  return workload;
}

function decoratePod(pod: PodSpec, containers: readonly Container[], settings: AddOnConfig['pods']): void {
  const { assignsIds, imagePullSecrets, podSecurityContext, containerSecurityContext } = settings;
  if (imagePullSecrets.length > 0) {
    pod.imagePullSecrets = imagePullSecrets.map((name) => ({ name }));
  }
  // An id is here for an image without a user of its own. Such a cluster gives it one.
  const base = assignsIds ? { runAsUser: null } : {};
  setContext(pod, { ...base, ...podSecurityContext });
  for (const container of containers) {
    setContext(container, { ...base, ...containerSecurityContext });
  }
}

/** Sets fields of a security context, and takes those away that are null. */
function setContext(of: PodSpec | Container, fields: Readonly<Record<string, unknown>>): void {
  if (Object.keys(fields).length === 0) {
    return;
  }
  const all = { ...(of.securityContext as Record<string, unknown> | undefined), ...fields };
  const set = Object.entries(all).filter(([, value]) => value !== null);
  if (set.length > 0 || of.securityContext !== undefined) {
    of.securityContext = Object.fromEntries(set);
  }
}

/**
 * An image with its registry replaced. Of several matching registries the last one counts, as in OCM. An empty source
 * matches every image and replaces everything except the last path segment.
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

/** The container IDs of a configuration that match no container of these objects, most likely by mistake. */
export function unmatchedContainers(objects: readonly KubeObject[], config: AddOnConfig): string[] {
  const containers = objects.flatMap((object) => {
    const plural = plurals[object.kind ?? ''];
    if (plural === undefined) {
      return [];
    }
    // An object of a user may lack them: the cluster's API server refuses it then, and says so.
    const { containers: main = [], initContainers = [] } = (object as Partial<Workload>).spec?.template?.spec ?? {};
    return [...initContainers, ...main].map(({ name }) => [plural, object.metadata.name, name] as const);
  });
  return config.containers
    .filter(({ containerID }) => !containers.some((container) => matches(containerID, ...container)))
    .map(({ containerID }) => containerID);
}

/** Adds variables that a container does not have. A plugin's own ones count, and none may be there twice. */
function addEnvironment(container: Container, variables: readonly { name: string; value: string }[]): void {
  const { env = [] } = container;
  const added = variables.filter(({ name }) => !env.some((own) => own.name === name));
  if (added.length > 0) {
    container.env = [...env, ...added];
  }
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

/** Mounts the certificates and sets OCM's variable; the other two variables make Node.js and Go trust them. */
function mountProxyCa(pod: PodSpec, containers: readonly Container[]): void {
  const { configMap, key, volume, folder } = proxyCa;
  pod.volumes = [...((pod.volumes as object[]) ?? []), { name: volume, configMap: { name: configMap } }];
  for (const container of containers) {
    const mounts = (container.volumeMounts as object[]) ?? [];
    container.volumeMounts = [...mounts, { name: volume, mountPath: folder, readOnly: true }];
    addEnvironment(container, [
      { name: 'CA_BUNDLE_FILE_PATH', value: `${folder}/${key}` },
      { name: 'NODE_EXTRA_CA_CERTS', value: `${folder}/${key}` },
      { name: 'SSL_CERT_DIR', value: `/etc/ssl/certs:${folder}` },
    ]);
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
  return matchesGlob(kinds, plural) && matchesGlob(names, workload) && matchesGlob(containers, container);
}

/** Of several matches the last one counts. */
function resourcesOf(
  config: AddOnConfig,
  plural: string,
  workload: string,
  container: string,
): ResourceRequirements | undefined {
  return config.containers.findLast(({ containerID }) => matches(containerID, plural, workload, container))?.resources;
}
