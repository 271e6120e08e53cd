import { expect, test } from 'vitest';
import type { KubeObject, PodSpec, PodTemplate } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import type { ClusterSettings } from '../spec/index.ts';
import { input } from '../testing/render-input.ts';
import { settingsChecksum, unreadParams } from './cluster-settings.ts';
import { renderWorks } from './works.ts';

const templates = new Templates();
type Rendered = KubeObject & {
  data?: Record<string, string>;
  spec?: { replicas?: number; template?: PodTemplate & { spec: PodSpec } };
};
function rendered(settings?: ClusterSettings) {
  const all = renderWorks(templates, { ...input, settings }).flatMap(({ spec }) => spec.workload.manifests);
  return (name: string, kind = 'ConfigMap') =>
    all.find((object) => object.kind === kind && object.metadata.name === name) as Rendered | undefined;
}
/** The workloads whose pods a setting replaces. */
function replacedBy(settings: ClusterSettings): string[] {
  const [before, after] = [rendered(), rendered(settings)];
  return [
    ['argocd-application-controller', 'StatefulSet'],
    ...['argocd-repo-server', 'argocd-redis', 'argocd-agent-agent'].map((name) => [name, 'Deployment']),
  ].flatMap(([name = '', kind]) => {
    const [one, other] = [before, after].map((find) => JSON.stringify(find(name, kind)?.spec?.template));
    return one === other ? [] : [name];
  });
}

test('nothing set changes nothing', () => {
  expect(replacedBy({})).toEqual([]);
  expect(renderWorks(templates, { ...input, settings: undefined })).toEqual(renderWorks(templates, input));
});

test('keys go into their ConfigMaps, beside those that are always there', () => {
  const find = rendered({
    config: { 'kustomize.buildOptions': '--enable-helm' },
    params: { 'redis.server': 'elsewhere:6379' },
    tlsCertificates: { 'git.example.com': 'PEM' },
    sshKnownHosts: 'git.example.com ssh-rsa AAAA',
    agentParams: { 'agent.log.level': 'debug' },
  });
  expect(find('argocd-cm')?.data).toMatchObject({
    'kustomize.buildOptions': '--enable-helm',
    'resource.exclusions': expect.any(String),
  });
  expect(find('argocd-cmd-params-cm')?.data).toMatchObject({
    'redis.server': 'elsewhere:6379',
    'repo.server': 'argocd-repo-server:8081',
  });
  expect(find('argocd-tls-certs-cm')?.data).toEqual({ 'git.example.com': 'PEM' });
  expect(find('argocd-ssh-known-hosts-cm')?.data?.ssh_known_hosts).toMatch(
    /github\.com ssh-\S+ \S+\n(.*\n)*git\.example\.com ssh-rsa AAAA$/,
  );
  expect(find('argocd-agent-params')?.data).toMatchObject({ 'agent.log.level': 'debug', 'agent.mode': 'managed' });
});

test('pods are replaced that read a changed key at their start, and no others', () => {
  expect(replacedBy({ config: { 'kustomize.buildOptions': '--enable-helm' } })).toEqual([]);
  expect(replacedBy({ config: { 'timeout.reconciliation': '60s' } })).toEqual([
    'argocd-application-controller',
    'argocd-repo-server',
  ]);
  expect(replacedBy({ params: { 'controller.status.processors': '50' } })).toEqual(['argocd-application-controller']);
  expect(replacedBy({ agentParams: { 'agent.log.level': 'debug' } })).toEqual(['argocd-agent-agent']);
  expect(replacedBy({ tlsCertificates: { h: 'PEM' }, sshKnownHosts: 'x' })).toEqual([]);
  const checksum = (value: string) =>
    rendered({ params: { 'reposerver.log.level': value } })('argocd-repo-server', 'Deployment')?.spec?.template
      ?.metadata?.annotations?.[settingsChecksum];
  expect(checksum('debug')).not.toBe(checksum('info'));
});

test('application controllers know how many they are, and wait for the repo server that they use', () => {
  const find = rendered({
    replicas: { applicationController: 3, repoServer: 0 },
    params: { 'repo.server': 'hub:8443' },
  });
  const controller = find('argocd-application-controller', 'StatefulSet')?.spec;
  expect(controller?.replicas).toBe(3);
  expect(controller?.template?.spec.containers[0]?.env).toContainEqual({
    name: 'ARGOCD_CONTROLLER_REPLICAS',
    value: '3',
  });
  expect(JSON.stringify(controller?.template?.spec.initContainers)).toContain('/dev/tcp/hub/8443');
  expect(find('argocd-repo-server', 'Deployment')?.spec?.replicas).toBe(0);
});

test('a plugin is a container of the repo server, and its change replaces the pod', () => {
  const plugin = (command: string) => ({ plugins: { hello: { spec: { generate: { command: [command] } } } } });
  const find = rendered(plugin('one'));
  const pod = find('argocd-repo-server', 'Deployment')?.spec?.template?.spec;
  const [main, sidecar] = pod?.containers ?? [];
  expect(sidecar).toMatchObject({ name: 'plugin-hello', image: main?.image, securityContext: { runAsUser: 999 } });
  expect(JSON.parse(find('argocd-cmp-cm')?.data?.['hello.yaml'] ?? '')).toEqual({
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'ConfigManagementPlugin',
    metadata: { name: 'hello' },
    spec: { generate: { command: ['one'] } },
  });
  expect(find('argocd-cmp-cm')?.metadata.namespace).toBe('argocd');
  const other = rendered(plugin('two'))('argocd-repo-server', 'Deployment')?.spec?.template?.metadata?.annotations;
  expect(other).not.toEqual(find('argocd-repo-server', 'Deployment')?.spec?.template?.metadata?.annotations);
});

test('what Argo CD 3.6 reads besides is read, by the programs that know it', () => {
  const both = {
    'redis.key.prefix': ['ARGOCD_REDIS_KEY_PREFIX', 'fleet:'],
    'redis.sentinel.hosts': ['REDIS_SENTINEL_HOSTS', 'sentinel:26379'],
    'redis.sentinel.master': ['REDIS_SENTINEL_MASTER', 'argocd'],
    'otlp.sample.ratio': ['_OTLP_SAMPLE_RATIO', '0.1'],
  } as const;
  const controllers = {
    'controller.metrics.application.labels': ['_METRICS_APPLICATION_LABELS', 'team'],
    'controller.metrics.application.conditions': ['_METRICS_APPLICATION_CONDITIONS', 'OrphanedResourceWarning'],
    'controller.metrics.cluster.labels': ['_METRICS_CLUSTER_LABELS', 'env'],
  } as const;
  const params = Object.fromEntries(
    Object.entries({ ...both, ...controllers }).map(([key, [, value]]) => [key, value]),
  );
  expect(unreadParams(templates, { params })).toEqual([]);
  const find = rendered({ params });
  expect(replacedBy({ params: { 'redis.key.prefix': 'fleet:' } })).toEqual([
    'argocd-application-controller',
    'argocd-repo-server',
    'argocd-agent-agent',
  ]);
  const read = (name: string, kind: string) =>
    (find(name, kind)?.spec?.template?.spec.containers[0]?.env ?? []).map(({ name: variable, valueFrom }) => {
      const { configMapKeyRef } = (valueFrom ?? {}) as { configMapKeyRef?: { key: string } };
      return [variable, configMapKeyRef?.key];
    });
  const wanted = (prefix: string, of: Readonly<Record<string, readonly [string, string]>>) =>
    Object.entries(of).map(([key, [name]]) => [name.startsWith('_') ? `${prefix}${name}` : name, key]);
  expect(read('argocd-application-controller', 'StatefulSet')).toEqual(
    expect.arrayContaining(wanted('ARGOCD_APPLICATION_CONTROLLER', { ...both, ...controllers })),
  );
  expect(read('argocd-repo-server', 'Deployment')).toEqual(expect.arrayContaining(wanted('ARGOCD_REPO_SERVER', both)));
});

test('parameters that no program reads are found', () => {
  const params = {
    'controller.status.processors': '1',
    'reposerver.paralelism.limit': '1',
    'server.insecure': 'true',
    'applicationsetcontroller.policy': 'sync',
  };
  const agentParams = { 'agent.log.level': 'info', 'agent.loglevel': 'info', 'agent.otlp.address': 'x:1' };
  expect(unreadParams(templates, { params, agentParams })).toEqual([
    'params.reposerver.paralelism.limit',
    'params.server.insecure',
    'agentParams.agent.loglevel',
  ]);
});
