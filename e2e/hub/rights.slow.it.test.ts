import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ConfigMap,
  configMaps,
  type Deployment,
  deployments,
  endpointSlices,
  type KubeObject,
  namespaces,
  resourceType,
  roles,
  type StatefulSet,
  secrets,
  statefulSets,
} from '../../lib/kube/index.ts';
import {
  managedClusterSetBindings,
  type Ocm,
  ocmManagedClusters,
  ocmManifestWorks,
  ocmPlacements,
  startOcm,
} from '../ocm/index.ts';
import { freePort } from '../pair/index.ts';
import { requestsOf } from '../rights/index.ts';
import { type Cluster, Program, startCluster, waitForObjects } from '../testbed/index.ts';
import { addonChart, applyPublishedArgoCd, argoCdCrds, helm, installCrds, ocmCrds } from './index.ts';

const releaseNamespace = 'open-cluster-management-agent-addon';
interface GitOpsCluster extends KubeObject {
  spec?: object;
  status?: { conditions?: { type: string; status: string }[] };
}

const gitOpsClusters = resourceType<GitOpsCluster>({
  group: 'apps.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'GitOpsCluster',
  plural: 'gitopsclusters',
  namespaced: true,
});

let hub: Cluster;

/** Installs or changes the release. No node runs hooks here. */
async function onHub(command: 'install' | 'upgrade', ...args: string[]): Promise<void> {
  const all = [command, 'argocd-agent-addon', addonChart, '--namespace', releaseNamespace, '--no-hooks', ...args];
  await helm(all, { kubeconfig: hub.kubeconfig });
}
let ocm: Ocm | undefined;
const programs: Program[] = [];

/** Starts a program as its pod would: with the environment of its Deployment and the rights of its service account. */
async function start(namespace: string, deployment: string, entry: string, args: string[] = []): Promise<Program> {
  const { spec } = (await hub.client.get(deployments, { namespace, name: deployment })) ?? {};
  const [container] = spec?.template?.spec?.containers ?? [];
  const name = spec?.template?.spec?.serviceAccountName;
  if (!container || !name) {
    throw new Error(`Deployment ${deployment} is incomplete`);
  }
  const env: Record<string, string> = { POD_NAMESPACE: namespace, POD_NAME: deployment };
  for (const { name: variable, value, valueFrom } of container.env ?? []) {
    const { name: map = '', key = '' } = (valueFrom?.configMapKeyRef ?? {}) as { name?: string; key?: string };
    const found = value ?? (map && (await hub.client.get(configMaps, { namespace, name: map }))?.data?.[key]);
    if (found !== undefined && found !== '') {
      env[variable] = found;
    }
  }
  const file = new URL(`../../bin/${entry}`, import.meta.url).pathname;
  const kubeconfig = await hub.kubeconfigFor({ serviceAccount: { namespace, name } });
  const words = args.length > 0 ? args : (container.args ?? []);
  const program = new Program([file, ...words], { ...env, KUBECONFIG: kubeconfig }, process.execPath);
  program.start();
  programs.push(program);
  return program;
}

/** Resolves when the objects of a kind satisfy a condition. */
function satisfied<T extends KubeObject>(type: ReturnType<typeof resourceType<T>>, accept: (objects: T[]) => boolean) {
  const details = () => programs.map(({ output }) => output.slice(-3000)).join('\n---\n');
  return waitForObjects(hub.client, type, { details }, accept);
}

/** The specification of a Placement that selects clusters by a label. */
const selecting = (expression: { key: string; operator: 'Exists' | 'DoesNotExist' }) => ({
  predicates: [{ requiredClusterSelector: { labelSelector: { matchExpressions: [expression] } } }],
});

const hasCondition = ({ status }: GitOpsCluster, type: string, value: string) =>
  status?.conditions?.some((one) => one.type === type && one.status === value) ?? false;

/** Registers a cluster, and waits until it has its works. */
async function join(name: string, labels: Record<string, string> = {}): Promise<void> {
  const spec = { hubAcceptsClient: true, leaseDurationSeconds: 60 };
  await hub.client.create(ocmManagedClusters, { metadata: { name, labels }, spec });
  await satisfied(ocmManifestWorks, (works) => works.filter(({ metadata }) => metadata.namespace === name).length >= 2);
}

/** Waits for the clean-up Job. The cluster does not exist: what its work agent would report of the Job is written here. */
async function endCleanUp(cluster: string): Promise<void> {
  const cleanUp = { namespace: cluster, name: 'addon-argocd-agent-addon-pre-delete' };
  const isThere = ({ metadata }: KubeObject) => metadata.namespace === cluster && metadata.name === cleanUp.name;
  await satisfied(ocmManifestWorks, (works) => works.some(isThere));
  const values = [{ name: 'JobComplete', fieldValue: { type: 'String', string: 'True' } }];
  const resourceMeta = { ordinal: 4, kind: 'Job', name: 'argocd-agent-addon-cleanup' };
  const status = { resourceStatus: { manifests: [{ resourceMeta, conditions: [], statusFeedback: { values } }] } };
  await hub.client.mergePatch(ocmManifestWorks, cleanUp, { status }, { subresource: 'status' });
}

beforeAll(async () => {
  hub = await startCluster({ audit: true });
  await installCrds(hub.client, [...(await ocmCrds('hub')), ...(await argoCdCrds())]);
  // The hub has an Argo CD of its own.
  await hub.client.create(namespaces, { metadata: { name: 'argocd' } });
  await applyPublishedArgoCd(hub.client, 'argocd');
  ocm = await startOcm(hub);
  const [port, health, controllerHealth] = [await freePort(), await freePort(), await freePort()];
  const values = {
    gitOpsCluster: {
      principalServerAddress: '127.0.0.1',
      principalServerPort: String(port),
      placement: { spec: selecting({ key: 'team', operator: 'DoesNotExist' }) },
    },
    controller: {
      additionalArgs: [`--health-probe-bind-address=127.0.0.1:${controllerHealth}`, '--metrics-bind-address=0'],
    },
    principal: {
      env: ['RESOURCE', 'REDIS'].map((proxy) => ({
        name: `ARGOCD_PRINCIPAL_${proxy}_PROXY_LISTEN`,
        value: '127.0.0.1:0',
      })),
      params: {
        'principal.listen.host': '127.0.0.1',
        'principal.listen.port': port,
        'principal.healthz.port': health,
        'principal.metrics.port': 0,
      },
    },
  };
  const sets = Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
  await onHub('install', '--create-namespace', ...sets);
});
afterAll(async () => {
  await Promise.all(programs.map((program) => program.stop()));
  await ocm?.stop();
  await hub?.stop();
});

describe("the chart's rights", { timeout: 600_000 }, () => {
  it('ocm defect M10: are enough for controller and principal to enroll a cluster and to let it go', async () => {
    const principal = await start('argocd', 'argocd-agent-principal', 'argocd-agent.ts', ['principal']);
    const run = () => start(releaseNamespace, 'argocd-agent-addon-controller', 'gitops-controller.ts');
    let controller = await run();
    await join('cluster1');
    // There is no Redis here, which it bears and says.
    const complaints = principal.output.split('\n').filter((line) => /"level":"(warning|error)"/.test(line));
    expect(complaints.filter((line) => !line.includes('Redis cannot be used'))).toEqual([]);
    // With hubArgoCD.configure the controller may restart what reads its settings; without, until it has given them back.
    const mayRestart = async () => (await hub.client.list(roles, { namespace: 'argocd' })).some(isForRestarts);
    const isForRestarts = ({ metadata }: KubeObject) => metadata.name === 'argocd-agent-addon-controller-configure';
    const redisOf = (all: ConfigMap[]) =>
      all.find(({ metadata }) => metadata.name === 'argocd-cmd-params-cm')?.data?.['redis.server'];
    const restarted = (all: (Deployment | StatefulSet)[]) =>
      all.filter(({ spec }) => spec?.template?.metadata?.annotations?.['checksum/argocd-cmd-params-cm']).length;
    expect(await mayRestart()).toBe(false);
    // The principal runs, but in no pod.
    const labels = { 'kubernetes.io/service-name': 'argocd-agent-principal' };
    await hub.client.create(endpointSlices, {
      metadata: { namespace: 'argocd', name: 'argocd-agent-principal-1', labels },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'] }],
      ports: [],
    });
    // A GitOpsCluster in a namespace in which the controller has no right on Secrets uses the same principal.
    const namespace = 'open-cluster-management';
    await hub.client.create(managedClusterSetBindings, {
      metadata: { namespace, name: 'global' },
      spec: { clusterSet: 'global' },
    });
    await hub.client.create(ocmPlacements, {
      metadata: { namespace, name: 'placement' },
      // OCM taints a cluster that does not report, as this one never does. The controller changes no Placement of this namespace.
      spec: {
        ...selecting({ key: 'team', operator: 'Exists' }),
        tolerations: [{ key: 'cluster.open-cluster-management.io/unreachable', operator: 'Exists' }],
      },
    });
    await hub.client.create(gitOpsClusters, {
      metadata: { namespace, name: 'gitops-cluster' },
      spec: { placementRef: { kind: 'Placement', name: 'placement' }, argoCDAgentAddon: { mode: 'managed' } },
    });
    await join('cluster2', { team: 'a' });
    await satisfied(
      gitOpsClusters,
      (all) => all.length === 2 && all.every((one) => hasCondition(one, 'Ready', 'True')),
    );
    expect(await hub.client.get(secrets, { namespace: 'argocd', name: 'cluster-cluster2' })).toBeDefined();
    expect(await hub.client.list(secrets, { namespace })).toEqual([]);
    await hub.client.delete(gitOpsClusters, { namespace, name: 'gitops-cluster' });
    await endCleanUp('cluster2');
    await satisfied(gitOpsClusters, (left) => left.every(({ metadata }) => metadata.namespace === 'argocd'));
    for (const configure of [true, false]) {
      await controller.stop();
      await onHub('upgrade', '--reuse-values', '--set', `hubArgoCD.configure=${configure}`);
      expect(await mayRestart()).toBe(true);
      controller = await run();
      await satisfied(configMaps, (all) => redisOf(all) === (configure ? 'argocd-agent-redis-proxy:6379' : undefined));
      await satisfied(deployments, (all) => restarted(all) > 0 === configure);
      await satisfied(statefulSets, (all) => restarted(all) > 0 === configure);
    }
    await onHub('upgrade', '--reuse-values');
    expect(await mayRestart()).toBe(false);
    const uninstall = await start(releaseNamespace, 'argocd-agent-addon-controller', 'gitops-controller.ts', [
      'uninstall',
      '--namespace=argocd',
      '--name=gitops-cluster',
      '--timeout=200s',
    ]);
    await endCleanUp('cluster1');
    expect(await uninstall.exited(), uninstall.output + controller.output).toBe(0);
    await satisfied(gitOpsClusters, (left) => left.length === 0);
    await satisfied(ocmManifestWorks, (left) => left.length === 0);
    const accounts = [`${releaseNamespace}:argocd-agent-addon-controller`, 'argocd:argocd-agent-principal'];
    for (const account of accounts) {
      const requests = await requestsOf(hub.auditLog, `system:serviceaccount:${account}`);
      expect(requests.length, account).toBeGreaterThan(10);
      expect(
        requests.filter(({ allowed }) => !allowed),
        account,
      ).toEqual([]);
    }
  });
});
