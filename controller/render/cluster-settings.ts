import { createHash } from 'node:crypto';
import type { ConfigMap, KubeObject, PodSpec, PodTemplate } from '../../lib/kube/index.ts';
import type { Templates } from '../../lib/manifests/index.ts';
import type { ClusterSettings, Plugin } from '../spec/index.ts';

type Container = PodSpec['containers'][number];
type Workload = KubeObject & { readonly spec: { readonly replicas?: number; readonly template: PodTemplate } };

/** ConfigMap with the plugins, named as Argo CD's Helm chart names it. */
const pluginsName = 'argocd-cmp-cm';
const repoServer = 'argocd-repo-server';
const applicationController = 'argocd-application-controller';

/** Annotation of pod templates: a hash of the settings that the pods read at their start, so that a change replaces them. */
export const settingsChecksum = 'checksum/settings';

/** Puts settings into rendered objects: keys of ConfigMaps, replicas, and plugins of the repo server. */
export function withSettings(
  objects: readonly KubeObject[],
  settings: ClusterSettings | undefined,
  argoCDImage: string | undefined,
): KubeObject[] {
  if (settings === undefined) {
    return [...objects];
  }
  const data = dataOf(settings);
  return objects.flatMap((object): KubeObject[] => {
    const { kind, metadata } = object;
    const own = kind === 'ConfigMap' ? data[metadata.name] : undefined;
    if (own !== undefined) {
      return [withData(object as ConfigMap, own)];
    }
    if (kind !== 'Deployment' && kind !== 'StatefulSet') {
      return [object];
    }
    const workload = scaled(object as Workload, settings);
    if (metadata.name !== repoServer || settings.plugins === undefined) {
      return [withChecksum(workload, data)];
    }
    const configMap = pluginsMap(metadata, settings.plugins);
    const extended = withPlugins(workload, settings.plugins, argoCDImage ?? '');
    return [configMap, withChecksum(extended, { ...data, [pluginsName]: configMap.data ?? {} })];
  });
}

/** The settings by ConfigMap. */
function dataOf(settings: ClusterSettings): Record<string, Readonly<Record<string, string>> | undefined> {
  const { config, params, tlsCertificates, sshKnownHosts, agentParams } = settings;
  return {
    'argocd-cm': config,
    'argocd-cmd-params-cm': params,
    'argocd-tls-certs-cm': tlsCertificates,
    'argocd-ssh-known-hosts-cm': sshKnownHosts === undefined ? undefined : { ssh_known_hosts: sshKnownHosts },
    'argocd-agent-params': agentParams,
  };
}

function withData(object: ConfigMap, own: Readonly<Record<string, string>>): ConfigMap {
  const { data = {} } = object;
  // Argo CD's own hosts stay known.
  const hosts = data.ssh_known_hosts;
  const added = own.ssh_known_hosts;
  const both = hosts === undefined || added === undefined ? {} : { ssh_known_hosts: `${hosts.trimEnd()}\n${added}` };
  return { ...object, data: { ...data, ...own, ...both } };
}

function scaled(workload: Workload, { replicas = {} }: ClusterSettings): Workload {
  const { spec } = workload;
  if (workload.metadata.name === repoServer && replicas.repoServer !== undefined) {
    return { ...workload, spec: { ...spec, replicas: replicas.repoServer } };
  }
  if (workload.metadata.name !== applicationController || replicas.applicationController === undefined) {
    return workload;
  }
  // The controllers share the clusters by this number.
  const value = String(replicas.applicationController);
  const env = (container: Container) =>
    container.env?.map((one) => (one.name === 'ARGOCD_CONTROLLER_REPLICAS' ? { ...one, value } : one));
  const pod = spec.template.spec as PodSpec;
  const containers = pod.containers.map((one) => ({ ...one, ...(one.env && { env: env(one) }) })) as Container[];
  const template = { ...spec.template, spec: { ...pod, containers } };
  return { ...workload, spec: { ...spec, replicas: replicas.applicationController, template } };
}

/** The plugins as files `<name>.yaml`, which the plugins' containers read. */
function pluginsMap(
  { namespace, labels }: KubeObject['metadata'],
  plugins: Readonly<Record<string, Plugin>>,
): ConfigMap {
  const files = Object.entries(plugins).map(([name, { spec }]) => {
    const plugin = { apiVersion: 'argoproj.io/v1alpha1', kind: 'ConfigManagementPlugin', metadata: { name }, spec };
    return [`${name}.yaml`, `${JSON.stringify(plugin, undefined, 2)}\n`];
  });
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: pluginsName, ...(namespace && { namespace }), ...(labels && { labels }) },
    data: Object.fromEntries(files),
  };
}

/** The repo server with one container for each plugin, as Argo CD's documentation describes them. */
function withPlugins(workload: Workload, plugins: Readonly<Record<string, Plugin>>, argoCDImage: string): Workload {
  const pod = workload.spec.template.spec as PodSpec;
  const main = pod.containers[0];
  const names = Object.keys(plugins);
  const containers = Object.entries(plugins).map(([name, { image, env }]) => ({
    name: `plugin-${name}`,
    image: image ?? argoCDImage,
    ...(main?.imagePullPolicy === undefined ? {} : { imagePullPolicy: main.imagePullPolicy }),
    command: ['/var/run/argocd/argocd-cmp-server'],
    ...(env && { env }),
    resources: { requests: { cpu: '10m', memory: '32Mi' } },
    // The repo server opens the plugin's socket: both have the user of Argo CD's image. The tools of the plugin may need
    // places to write to that nobody knows here.
    securityContext: { ...(main?.securityContext as object), runAsUser: 999, readOnlyRootFilesystem: false },
    volumeMounts: [
      { name: 'var-files', mountPath: '/var/run/argocd' },
      { name: 'plugins', mountPath: '/home/argocd/cmp-server/plugins' },
      { name: pluginsName, mountPath: '/home/argocd/cmp-server/config/plugin.yaml', subPath: `${name}.yaml` },
      { name: `tmp-${name}`, mountPath: '/tmp' },
    ],
  })) as unknown as Container[];
  const volumes = [
    ...((pod.volumes as object[] | undefined) ?? []),
    { name: pluginsName, configMap: { name: pluginsName } },
    ...names.map((name) => ({ name: `tmp-${name}`, emptyDir: {} })),
  ];
  const spec = { ...pod, containers: [...pod.containers, ...containers], volumes } as PodSpec;
  return { ...workload, spec: { ...workload.spec, template: { ...workload.spec.template, spec } } };
}

/** Keys that are read once, at the start of the pod. Programs follow the other ones themselves. */
function withChecksum(workload: Workload, data: ReturnType<typeof dataOf>): Workload {
  const { template } = workload.spec;
  const read = refsOf(template).flatMap(({ name, key }) => {
    const value = data[name]?.[key];
    return value === undefined ? [] : [[name, key, value]];
  });
  const files = data[pluginsName] ? [data[pluginsName]] : [];
  if (read.length + files.length === 0) {
    return workload;
  }
  const checksum = createHash('sha256')
    .update(JSON.stringify([read.sort(), files]))
    .digest('hex')
    .slice(0, 16);
  const annotations = { ...template.metadata?.annotations, [settingsChecksum]: checksum };
  const metadata = { ...template.metadata, annotations };
  return { ...workload, spec: { ...workload.spec, template: { ...template, metadata } } };
}

/** Keys of ConfigMaps in the environment of a pod's containers. */
function refsOf(template: PodTemplate): { name: string; key: string }[] {
  const { containers = [], initContainers = [] } = template.spec ?? {};
  return [...initContainers, ...containers].flatMap(({ env = [] }) =>
    env.flatMap(({ valueFrom }) => {
      const { configMapKeyRef } = (valueFrom ?? {}) as { configMapKeyRef?: { name: string; key: string } };
      return configMapKeyRef ? [configMapKeyRef] : [];
    }),
  );
}

const known = new WeakMap<Templates, ReadonlySet<string>>();

/** The parameters of settings that no program reads that clusters get, most likely by mistake, as `params.<key>`. */
export function unreadParams(templates: Templates, { params = {}, agentParams = {} }: ClusterSettings): string[] {
  const read = known.get(templates) ?? readParams(templates);
  known.set(templates, read);
  return [
    ...Object.keys(params)
      .filter((key) => !read.has(`argocd-cmd-params-cm/${key}`))
      .map((key) => `params.${key}`),
    ...Object.keys(agentParams)
      .filter((key) => !read.has(`argocd-agent-params/${key}`))
      .map((key) => `agentParams.${key}`),
  ];
}

function readParams(templates: Templates): ReadonlySet<string> {
  const texts = [...templates.sources('argocd'), ...templates.sources('agent')];
  const refs = texts.flatMap((text) => [
    ...text.matchAll(/\{\{> param name="[^"]+" key="([^"]+)"(?: from="([^"]+)")?/g),
  ]);
  return new Set(refs.map(([, key, from = 'argocd-cmd-params-cm']) => `${from}/${key}`));
}
