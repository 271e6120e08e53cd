import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { parseFlags } from '../../lib/ops/index.ts';
import { kindsOf, type ManifestWork, operatorKinds } from '../hub/index.ts';
import { hubCrd } from '../testing/render-input.ts';
import { renderFlags } from './flags.ts';
import { renderCommand } from './render.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'render-'));
  const crds = operatorKinds.map((name) => ({ kind: 'CustomResourceDefinition', ...hubCrd(name) }));
  await writeFile(join(folder, 'crds.yaml'), stringify({ kind: 'List', items: crds }));
  const config = { nodePlacement: { nodeSelector: { role: 'infra' } } };
  await writeFile(
    join(folder, 'config.yaml'),
    stringify({ kind: 'AddOnDeploymentConfig', metadata: { name: 'c' }, spec: config }),
  );
});
afterAll(() => rm(folder, { recursive: true }));

const server = { principalServerAddress: 'principal.example.com', principalServerPort: '443' };

async function render(addOn: object, ...more: string[]): Promise<KubeObject[]> {
  const file = join(folder, 'gitopscluster.yaml');
  const spec = { placementRef: { kind: 'Placement', name: 'p' }, argoCDAgentAddon: addOn };
  await writeFile(file, stringify({ kind: 'GitOpsCluster', metadata: { name: 'fleet' }, spec }));
  const args = ['--offline', '--cluster=c1', `--gitopscluster=${file}`, `--crds=${join(folder, 'crds.yaml')}`, ...more];
  const parsed = parseFlags(renderFlags, { args, env: { CONTROLLER_IMAGE: 'agent:1' } });
  let text = '';
  await renderCommand.run(parsed.values, {
    signal: new AbortController().signal,
    parsed,
    ignored: [],
    env: {},
    stdout: (part) => {
      text += part;
    },
    stderr: () => undefined,
    stdin: process.stdin,
  });
  const [objects, asKubectl] = (['1.2', '1.1'] as const).map((version) =>
    parseAllDocuments(text, { version }).map((document) => document.toJS() as KubeObject),
  );
  expect(asKubectl, 'kubectl reads YAML 1.1').toEqual(objects);
  return objects ?? [];
}

test.each([
  ['Install', 'managed', ['crds', 'argocd', 'agent']],
  ['Install', 'autonomous', ['crds', 'argocd', 'agent']],
  ['Existing', 'managed', ['agent']],
  ['Existing', 'autonomous', ['agent']],
  ['Operator', 'managed', ['crds', 'argocd', 'agent']],
  ['Operator', 'autonomous', ['crds', 'argocd', 'agent']],
])('%s, %s is rendered from files', async (argoCD, mode, parts) => {
  const works = await render({ ...server, argoCD, mode });
  expect(works.map(({ apiVersion, kind, metadata }) => [apiVersion, kind, metadata])).toEqual(
    parts.map((part) => [
      'work.open-cluster-management.io/v1',
      'ManifestWork',
      { namespace: 'c1', name: `argocd-agent-addon-${part}` },
    ]),
  );
  expect(JSON.stringify(works)).toContain(mode);
});

test('a configuration applies, objects can be printed without their works, and secret values are hidden', async () => {
  const objects = await render(server, `--config=${join(folder, 'config.yaml')}`, '--manifests');
  const agent = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'argocd-agent-agent');
  expect(JSON.stringify(agent)).toContain('"role":"infra"');
  const secrets = objects.filter(({ kind }) => kind === 'Secret') as (KubeObject & { data: object })[];
  expect(secrets.map(({ metadata }) => metadata.name).sort()).toEqual([
    'argocd-agent-ca',
    'argocd-redis',
    'argocd-secret',
  ]);
  for (const { data } of secrets) {
    for (const value of Object.values(data)) {
      expect(Buffer.from(value, 'base64').toString()).toBe('(hidden)');
    }
  }
  const shown = JSON.stringify((await render(server, '--show-secrets')) as ManifestWork[]);
  expect(shown).toContain(Buffer.from('(generated)').toString('base64'));
  expect(shown).not.toContain('"tls.key":');
  expect(JSON.stringify(await render({ ...server, clientCertificate: 'Generated' }))).toContain('"tls.key":');
});

test('a missing input is reported', async () => {
  await expect(render({})).rejects.toThrow(
    'without a hub the GitOpsCluster must say spec.argoCDAgentAddon.principalServerAddress and principalServerPort',
  );
  await expect(render({ ...server, mode: 'fancy' })).rejects.toThrow('spec.argoCDAgentAddon.mode must be');
  await expect(render(server, '--crds=')).rejects.toThrow(
    'the hub has no CustomResourceDefinition applications.argoproj.io, appprojects.argoproj.io to copy to c1',
  );
  await expect(render(server, `--config=${join(folder, 'gitopscluster.yaml')}`)).rejects.toThrow(
    /--config: .* must hold one AddOnDeploymentConfig, not 0/,
  );
  await expect(render(server, '--gitopscluster=/nowhere')).rejects.toThrow('/nowhere cannot be read');
  await expect(render({ ...server, argoCDCRManifestWork: { manifests: [] } })).rejects.toThrow(
    'spec.argoCDAgentAddon.argoCDCRManifestWork.manifests must hold an ArgoCD',
  );
});

test('labels of the cluster Secret change nothing on the cluster, and a wrong one is named', async () => {
  const clusterLabels = { labels: ['env', 'topology.kubernetes.io/*'], claims: ['id.k8s.io'] };
  expect(await render({ ...server, clusterLabels })).toEqual(await render(server));
  await expect(render({ ...server, clusterLabels: { labels: ['a/b/c'] } })).rejects.toThrow(
    /spec\.argoCDAgentAddon\.clusterLabels\.labels\.0 must be a label key such as env/,
  );
});

test('settings of the controller and the GitOpsCluster are merged key by key, and shown as the cluster gets them', async () => {
  const everywhere = JSON.stringify({ config: { 'timeout.reconciliation': '60s', 'kustomize.buildOptions': '--a' } });
  const clusterSettings = {
    config: { 'kustomize.buildOptions': '--b' },
    replicas: { applicationController: 2 },
    plugins: { hello: { spec: { generate: { command: ['hello'] } } } },
  };
  const crds = kindsOf('managed').map((name) => ({ kind: 'CustomResourceDefinition', ...hubCrd(name) }));
  await writeFile(join(folder, 'argocd.yaml'), stringify({ kind: 'List', items: crds }));
  const flags = [`--cluster-settings=${everywhere}`, '--manifests', `--crds=${join(folder, 'argocd.yaml')}`];
  const objects = await render({ ...server, clusterSettings }, ...flags);
  const named = (name: string, kind = 'ConfigMap') =>
    objects.find((object) => object.kind === kind && object.metadata.name === name);
  expect(named('argocd-cm')).toMatchObject({
    data: {
      'timeout.reconciliation': '60s',
      'kustomize.buildOptions': '--b',
      'resource.exclusions': expect.stringContaining('Lease'),
    },
  });
  expect(named('argocd-application-controller', 'StatefulSet')).toMatchObject({ spec: { replicas: 2 } });
  expect(JSON.stringify(named('argocd-cmp-cm'))).toContain('ConfigManagementPlugin');
  await expect(render(server, '--cluster-settings={"config":{"admin.password":"x"}}')).rejects.toThrow(
    '--cluster-settings (or CLUSTER_SETTINGS): config.admin.password looks like a credential',
  );
});
