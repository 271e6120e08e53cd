import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  clusterRoles,
  crds,
  deployments,
  type KubeObject,
  type ResourceType,
  resourceType,
  secrets,
  services,
} from '../../lib/kube/index.ts';
import { type ImageRecipe, type Node, projectImage, sourceImage, standardImages, startNode } from '../node/index.ts';
import { type Ocm, ocmPlacementDecisions, startOcm } from '../ocm/index.ts';
import { type Cluster, startCluster, waitForObject } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { addonChart, argoCdCrds, helm, installCrds, ocmCrds, readCrds } from './index.ts';

// The chart and the programs as they once were, upgraded to what they are now, on a hub whose node runs what the charts
// deliver.

const release = 'argocd-agent-addon';
const releaseNamespace = 'open-cluster-management-agent-addon';
const project = new URL('../..', import.meta.url).pathname;
/** The last commit before the chart brought its CRD up to date by itself. */
const earlier = '2adbb1e';
const earlierParts = 'package.json bin controller principal agent lib proto templates charts/argocd-agent-addon';
const hasHistory = has(earlier);
/** Programs start several times, and the machine may be busy. */
const slow = 420_000;
const crdName = 'gitopsclusters.apps.open-cluster-management.io';

const jobs = resourceType({ group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true });
const gitOpsClusters = resourceType<KubeObject & { status?: { conditions?: { type: string; status: string }[] } }>({
  group: 'apps.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'GitOpsCluster',
  plural: 'gitopsclusters',
  namespaced: true,
});

let hub: Cluster;
let node: Node;
let ocm: Ocm;
let folder: string;
let earlierChart = addonChart;

const values = {
  hubArgoCD: { install: 'false' },
  principal: { service: { port: process.getuid?.() === 0 ? 443 : 8443 } },
  removeClustersOnUninstall: false,
};
const onHub = (command: string, ...args: string[]) =>
  helm([command, release, ...args, '--namespace', releaseNamespace], { kubeconfig: hub.kubeconfig });
const given = (more: object = {}) =>
  Object.entries({ ...values, ...more }).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'upgrade-'));
  hub = await startCluster({ name: 'hub' });
  await installCrds(hub.client, [...(await ocmCrds('hub')), ...(await argoCdCrds())]);
  ocm = await startOcm(hub);
  const before = join(folder, 'before');
  if (hasHistory) {
    await mkdir(join(before, 'node_modules'), { recursive: true });
    execFileSync('sh', ['-c', `git archive ${earlier} ${earlierParts} | tar -x -C ${before}`], { cwd: project });
    earlierChart = join(before, 'charts/argocd-agent-addon');
  }
  const then = sourceImage(before);
  const own: ImageRecipe = (use) => (use.name.tag === 'earlier' ? then(use) : projectImage(use));
  const images = { ...standardImages(toolPath), 'quay.io/open-cluster-management/argocd-fleet': own };
  node = await startNode({ cluster: hub, dir: folder, images });
  const tag = hasHistory ? { tag: 'earlier' } : {};
  await onHub('install', earlierChart, '--create-namespace', ...given(tag));
  // The earlier version waits for the status of the decisions. OCM writes it when a cluster has come, even if it left since.
  const decision = { namespace: 'argocd', name: 'placement-decision-1' };
  await waitForObject(hub.client, ocmPlacementDecisions, decision, (found) => found !== undefined, {
    timeoutMs: 60_000,
  });
  await hub.client.mergePatch(
    ocmPlacementDecisions,
    decision,
    { status: { decisions: [] } },
    { subresource: 'status' },
  );
}, slow);
afterAll(async () => {
  await ocm?.stop();
  await node?.stop();
  await hub?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe(`helm upgrade of ${hasHistory ? `the chart at ${earlier}` : 'the chart itself, for lack of history'}`, {
  timeout: slow,
}, () => {
  it('brings everything up to date, the CRD too, and keeps what is the same', async () => {
    const one = { namespace: 'argocd', name: 'gitops-cluster' };
    const isReady = (found: { status?: { conditions?: { type: string; status: string }[] } } | undefined) =>
      found?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
    await waitForObject(hub.client, gitOpsClusters, one, isReady, { timeoutMs: 180_000 });
    const before = await lasting();
    // As an older version might have left it.
    const crd = await hub.client.get(crds, { name: crdName });
    const versions = crd?.spec?.versions.map((version) => ({ ...version, additionalPrinterColumns: [] }));
    await hub.client.mergePatch(crds, { name: crdName }, { spec: { versions } });

    await onHub('upgrade', addonChart, '--wait', '--timeout', '5m', ...given({ 'test.timeoutSeconds': 30 }));

    const [desired] = await readCrds(join(addonChart, 'crds'));
    const upgraded = await hub.client.get(crds, { name: crdName });
    expect(columns(upgraded?.spec)).toEqual(columns(desired?.spec));
    expect(await lasting()).toEqual(before);
    await waitForObject(hub.client, gitOpsClusters, one, isReady, { timeoutMs: 180_000 });
    expect(await hub.client.list(jobs, { namespace: releaseNamespace })).toEqual([]);
    expect(await hub.client.get(clusterRoles, { name: `${release}-crds` })).toBeUndefined();
  });

  it('can be rolled back', async () => {
    await onHub('rollback', '1', '--wait', '--timeout', '5m');
    await onHub('rollback', '2', '--wait', '--timeout', '5m');
  });
});

describe('helm test', { timeout: slow }, () => {
  it('says that controller and principal do their work', async () => {
    expect(await onHub('test', '--timeout', '4m')).toMatch(/TEST SUITE:\s+argocd-agent-addon-test[\s\S]*Succeeded/);
  });

  it('fails when one of them does not, and says which', async () => {
    await onHub(
      'upgrade',
      addonChart,
      '--no-hooks',
      '--wait',
      '--timeout',
      '3m',
      ...given({ 'test.timeoutSeconds': 2 }),
    );
    const controller = { namespace: releaseNamespace, name: 'argocd-agent-addon-controller' };
    await hub.client.mergePatch(deployments, controller, { spec: { replicas: 0 } });
    await waitForObject(hub.client, deployments, controller, (d) => !d?.status?.readyReplicas, {
      timeoutMs: 120_000,
    });
    await expect(onHub('test', '--timeout', '4m')).rejects.toThrow(
      /failed: the controller is ready[\s\S]*argocd-agent-addon-test.*failed/i,
    );
    const { body } = await hub.client.request('/api/v1/namespaces/argocd/pods/argocd-agent-addon-test/log');
    expect(await body.text()).toMatch(/failed: the controller is ready/);
  });
});

/** What an upgrade must not make anew: identities of objects that others depend on. */
async function lasting(): Promise<Record<string, string | undefined>> {
  const argocd = (name: string) => ({ namespace: 'argocd', name });
  const kept: [ResourceType, { namespace: string; name: string }][] = [
    [gitOpsClusters, argocd('gitops-cluster')],
    [secrets, argocd('argocd-agent-ca')],
    [secrets, argocd('argocd-agent-jwt')],
    [services, argocd('argocd-agent-principal')],
    [deployments, argocd('argocd-agent-principal')],
    [deployments, { namespace: releaseNamespace, name: 'argocd-agent-addon-controller' }],
  ];
  const entries = kept.map(async ([type, key]) => [
    `${type.kind} ${key.name}`,
    (await hub.client.get(type, key))?.metadata.uid,
  ]);
  return Object.fromEntries(await Promise.all(entries));
}

function columns(spec: { versions: object[] } | undefined): unknown {
  return spec?.versions.map((version) => (version as { additionalPrinterColumns?: unknown }).additionalPrinterColumns);
}

function has(commit: string): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: project, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
