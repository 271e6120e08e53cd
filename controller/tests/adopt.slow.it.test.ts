import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { stringify } from 'yaml';
import { addonChart, helm, installCrds, originalCrds, publishedCrds } from '../../e2e/hub/index.ts';
import { type Ocm, startOcm } from '../../e2e/ocm/index.ts';
import {
  borrowCluster,
  type SharedCluster,
  type SupervisedProcess,
  spawnSupervised,
  startCluster,
} from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type CustomResourceDefinition,
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  crds,
  deployments,
  Informer,
  isForbidden,
  KubeClient,
  type KubeObject,
  keyOf,
  namespaces,
  type ResourceType,
  resourceType,
  secrets,
  services,
} from '../../lib/kube/index.ts';
import {
  type CertificateInfo,
  createAuthority,
  inspectCertificate,
  isIssuedBy,
  issueCertificate,
  secretText,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import {
  agentSubject,
  clientSecretName,
  clusterManagementAddOns,
  gitOpsClusters,
  managedClusterAddOns,
  manifestWorks,
  operatorKinds,
} from '../hub/index.ts';
import { adopt, release, type TakeoverScope } from '../takeover/index.ts';
import { HubFixture, type RunningController, runController } from '../testing/fixture.ts';
import { chartCrds, installHubCrds } from '../testing/hub.ts';

// A hub of argocd-pull-integration with one cluster is adopted, goes on with our controller and is given back. With the
// original's executable and source tree it is the real one, else its objects are written as it leaves them.
const { PULL_INTEGRATION_BIN: binary, PULL_INTEGRATION_SOURCE: source } = process.env;
const isReal = binary !== undefined && source !== undefined;

const ns = 'argocd';
const name = 'cluster1';
const ours = { name: 'argocd-agent-addon', namespace: 'open-cluster-management-agent-addon' };
/** Where the registration agent of the cluster puts the original's certificate. */
const addOnNamespace = 'open-cluster-management-agent-addon';
/** The add-on's program on the cluster. */
const addOnDeployment = 'argocd-agent-addon';
const theirs = { name: 'fleet', namespace: 'gitops' };
const argoCds = resourceType<KubeObject>({
  group: 'argoproj.io',
  version: 'v1beta1',
  kind: 'ArgoCD',
  plural: 'argocds',
  namespaced: true,
});
const addOnTemplates = resourceType<KubeObject & { spec: unknown }>({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'AddOnTemplate',
  plural: 'addontemplates',
  namespaced: false,
});
const principal = { namespace: ns, name: 'argocd-agent-principal' };
const controllerKey = { namespace: ns, name: 'argocd-pull-integration-controller' };

let hub: SharedCluster;
let managed: SharedCluster;
let ocm: Ocm;
let fixture: HubFixture;
let folder: string;
let controller: RunningController | undefined;
let original: SupervisedProcess | undefined;
const ended = new AbortController();

beforeAll(async () => {
  [hub, managed] = await Promise.all([borrowCluster({ name: 'hub' }), startCluster({ name })]);
  await installHubCrds(hub);
  const operator = await publishedCrds('argocd-operator');
  await Promise.all([installCrds(hub.client, operatorCrds(operator)), installCrds(managed.client, operator)]);
  folder = await mkdtemp(join(tmpdir(), 'adopt-'));
  fixture = new HubFixture(hub.client);
  await fixture.namespace(ns);
  await managed.client.create(namespaces, { metadata: { name: ns } });
  await managed.client.create(namespaces, { metadata: { name: addOnNamespace } });
  ocm = await startOcm(hub, { statusSyncIntervalMs: 500 });
  await ocm.join(managed);
});
afterAll(async () => {
  ended.abort();
  await controller?.stop();
  await original?.kill();
  await ocm?.stop();
  await Promise.all([hub?.stop(), managed?.stop()]);
  await rm(folder, { recursive: true, force: true });
});

/** With the operator's other kinds, which are only copied to the cluster. */
function operatorCrds(published: readonly CustomResourceDefinition[]): CustomResourceDefinition[] {
  const there = new Set([...published.map(({ metadata }) => metadata.name), ...installedByTheHub]);
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const made = operatorKinds
    .filter((crd) => !there.has(crd))
    .map((crd) => {
      const [plural = '', ...group] = crd.split('.');
      const kind = plural.slice(0, -1);
      return {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: crd },
        spec: {
          group: group.join('.'),
          scope: 'Namespaced',
          names: { plural, kind, listKind: `${kind}List`, singular: kind },
          versions: [{ name: 'v1alpha1', served: true, storage: true, schema }],
        },
      } as unknown as CustomResourceDefinition;
    });
  return [...published, ...made];
}
const installedByTheHub = ['applications', 'applicationsets', 'appprojects'].map((one) => `${one}.argoproj.io`);

const onHub = (...args: string[]) => helm(args, { kubeconfig: hub.kubeconfig });
const address = { principalServerAddress: 'principal.example.com', principalServerPort: '443' };

/** Both charts take them. */
const values = Object.entries(address).flatMap(([key, value]) => ['--set-string', `gitOpsCluster.${key}=${value}`]);

/** The chart of the original: the real one, or one with the objects that matter here. */
async function installOriginal(): Promise<void> {
  const chart = isReal ? join(source, 'charts/argocd-agent-addon') : await smallChart();
  await onHub(
    'install',
    theirs.name,
    chart,
    '--namespace',
    theirs.namespace,
    '--create-namespace',
    ...values,
    '--skip-crds',
  );
  if (isReal) {
    original = await spawnSupervised(binary, ['--health-probe-bind-address=0'], {
      logFile: join(folder, 'original.log'),
      env: { ...process.env, KUBECONFIG: hub.kubeconfig, CONTROLLER_IMAGE: 'example.com/original:test' },
    });
    return;
  }
  await writeOriginal();
}

async function smallChart(): Promise<string> {
  const chart = join(folder, 'original');
  await mkdir(join(chart, 'templates'), { recursive: true });
  await writeFile(join(chart, 'Chart.yaml'), stringify({ apiVersion: 'v2', name: 'original', version: '1.0.0' }));
  const labels = { 'app.kubernetes.io/name': controllerKey.name };
  const objects = [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { ...controllerKey, labels },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: 'manager', image: 'example.com/original:test' }] },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace: ns, name: 'argocd-pull-integration-controller-manager' },
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'argocd-pull-integration-manager-role' },
      rules: [],
    },
    {
      apiVersion: 'apps.open-cluster-management.io/v1alpha1',
      kind: 'GitOpsCluster',
      metadata: { namespace: ns, name: 'gitops-cluster' },
      spec: {
        placementRef: {
          apiVersion: 'cluster.open-cluster-management.io/v1beta1',
          kind: 'Placement',
          name: 'placement',
        },
        argoCDAgentAddon: { ...address, mode: 'managed' },
      },
    },
    {
      apiVersion: 'cluster.open-cluster-management.io/v1beta1',
      kind: 'Placement',
      metadata: { namespace: ns, name: 'placement' },
      spec: {},
    },
    {
      apiVersion: 'cluster.open-cluster-management.io/v1beta2',
      kind: 'ManagedClusterSetBinding',
      metadata: { namespace: ns, name: 'global' },
      spec: { clusterSet: 'global' },
    },
    {
      apiVersion: 'addon.open-cluster-management.io/v1alpha1',
      kind: 'ClusterManagementAddOn',
      metadata: { name: ours.name },
      spec: { supportedConfigs: [{ group: 'addon.open-cluster-management.io', resource: 'addontemplates' }] },
    },
    { apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', metadata: { namespace: ns, name: 'argocd' }, spec: {} },
  ];
  await writeFile(join(chart, 'templates/all.yaml'), objects.map((one) => stringify(one)).join('---\n'));
  return chart;
}

/** The objects that the original's controller makes for a cluster. */
async function writeOriginal(): Promise<void> {
  const { client } = hub;
  const make = <T extends KubeObject>(type: ResourceType<T>, object: T) =>
    client.apply(type, object, { fieldManager: 'original', force: true });
  const key = { namespace: ns, name: 'argocd-agent-ca' };
  const authority =
    keyPairOf(await client.get(secrets, key)) ?? (await createAuthority({ commonName: 'argocd-agent-ca@1' }));
  const tls = (secret: string, data: Record<string, string>) =>
    make(secrets, { metadata: { namespace: ns, name: secret }, type: 'kubernetes.io/tls', data });
  await tls('argocd-agent-ca', tlsSecretData(authority));
  for (const secret of ['argocd-agent-principal-tls', 'argocd-agent-resource-proxy-tls']) {
    const request = { commonName: secret, hosts: ['localhost', 'principal.example.com'], usages: ['server'] as const };
    await tls(secret, tlsSecretData(await issueCertificate({ ...request, authority })));
  }
  const client1 = await issueCertificate({ commonName: name, usages: ['client'], authority });
  await tls(`argocd-cluster-client-${name}`, tlsSecretData(client1));
  const encode = (text: string) => Buffer.from(text).toString('base64');
  await make(configMaps, {
    metadata: { namespace: ns, name: 'argocd-agent-ca-bundle' },
    data: { 'ca-bundle.crt': authority.certificate },
  });
  await make(secrets, {
    metadata: {
      namespace: ns,
      name: `cluster-${name}`,
      labels: {
        'argocd.argoproj.io/secret-type': 'cluster',
        'apps.open-cluster-management.io/cluster-name': name,
        'argocd-agent.argoproj-labs.io/agent-name': name,
      },
    },
    data: { name: encode(name), server: encode(`https://${name}-control-plane`), config: encode('{}') },
  });
  const labels = { 'app.kubernetes.io/managed-by': 'argocd-pull-integration' };
  const template = `argocd-agent-addon-${ns}-gitops-cluster`;
  await make(addOnTemplates, {
    metadata: { name: template, labels },
    spec: {
      addonName: ours.name,
      agentSpec: { workload: { manifests: addOnManifests() } },
      registration: [
        {
          type: 'CustomSigner',
          customSigner: {
            signerName: 'open-cluster-management.io/argocd-agent-addon',
            signingCA: { namespace: ns, name: 'argocd-agent-ca' },
          },
        },
      ],
    },
  });
  await make(managedClusterAddOns, {
    metadata: { namespace: name, name: ours.name, labels },
    spec: { configs: [{ group: 'addon.open-cluster-management.io', resource: 'addontemplates', name: template }] },
  });
  const marked = { 'apps.open-cluster-management.io/gitopscluster': 'true' };
  const manifest = (object: object) => ({ workload: { manifests: [object as KubeObject] } });
  await make(manifestWorks, {
    metadata: { namespace: name, name: 'argocd-agent-ca-mw', labels: marked },
    spec: manifest({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: ns, name: 'argocd-agent-ca' },
      type: 'Opaque',
      data: { 'ca.crt': encode(authority.certificate) },
    }),
  });
  await make(manifestWorks, {
    metadata: { namespace: name, name: `argocd-agent-cr-${ns}-gitops-cluster`, labels: { ...marked, ...labels } },
    spec: manifest({
      apiVersion: 'argoproj.io/v1beta1',
      kind: 'ArgoCD',
      metadata: { namespace: ns, name: 'argocd' },
      spec: { server: { enabled: false } },
    }),
  });
}

function keyPairOf(secret: { data?: Record<string, string> } | undefined) {
  const text = (key: string) => Buffer.from(secret?.data?.[key] ?? '', 'base64').toString();
  return secret && { certificate: text('tls.crt'), key: text('tls.key') };
}

/** What the original has OCM's add-on manager put on the cluster: the add-on's program, and the right that it gives to the work agent. */
function addOnManifests(): KubeObject[] {
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: {
      name: 'work-agent-argocd-of-the-original',
      labels: { 'open-cluster-management.io/aggregate-to-work': 'true' },
    },
    rules: [{ apiGroups: ['argoproj.io'], resources: ['argocds'], verbs: ['*'] }],
  } as KubeObject;
  const labels = { app: addOnDeployment };
  const containers = [{ name: addOnDeployment, image: 'example.com/original:test' }];
  const program = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace: addOnNamespace, name: addOnDeployment },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  } as KubeObject;
  return [role, program];
}

/** What argocd-operator makes for the principal. */
async function actAsOperator(): Promise<void> {
  const argoCd = await hub.client.get(argoCds, { namespace: ns, name: 'argocd' });
  const { uid = '' } = argoCd?.metadata ?? {};
  const owner = { apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', name: 'argocd', uid, controller: true };
  await fixture.put(services, {
    metadata: { ...principal, ownerReferences: [owner] },
    spec: { ports: [{ name: 'https', port: 443 }] },
  });
  const labels = { app: 'principal' };
  const containers = [{ name: 'principal', image: 'quay.io/argoprojlabs/argocd-agent:v0.9.0' }];
  await fixture.put(deployments, {
    metadata: { ...principal, ownerReferences: [owner] },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  });
}

/** The original's pod ends when its Deployment is scaled to 0. */
function actAsKubelet(client: KubeClient): void {
  const informer = new Informer({ client, type: deployments, namespace: ns });
  const look = ({ metadata, spec }: KubeObject & { spec?: { replicas?: number } }) => {
    if (metadata.name === controllerKey.name && spec?.replicas === 0) {
      void original?.kill();
    }
  };
  informer.subscribe({ added: look, updated: (_, now) => look(now) });
  void informer.run(ended.signal).catch(() => undefined);
}

/**
 * The original's add-on on the cluster, as long as its Deployment is there: it writes the certificate that OCM's registration
 * agent has requested to where the agent reads it. The real one writes argocd-operator too.
 */
async function actAsAddOnProgram(): Promise<void> {
  const { client } = managed;
  const issued = await issueCertificate({
    ...agentSubject(name),
    usages: ['client'],
    authority: await createAuthority({ commonName: 'test' }),
  });
  const data = tlsSecretData(issued);
  const type = 'kubernetes.io/tls';
  const copy = { metadata: { namespace: ns, name: clientSecretName }, type, data };
  let program: SupervisedProcess | undefined;
  let isThere = false;
  const write = async () => {
    if (isThere && !isReal) {
      await client.apply(secrets, copy, { fieldManager: 'original', force: true });
    }
  };
  const copies = new Informer({
    client,
    type: secrets,
    namespace: ns,
    fieldSelector: `metadata.name=${clientSecretName}`,
  });
  copies.subscribe({ added: write, updated: write, deleted: write });
  const fieldSelector = `metadata.name=${addOnDeployment}`;
  const own = new Informer({ client, type: deployments, namespace: addOnNamespace, fieldSelector });
  own.subscribe({
    added: async () => {
      isThere = true;
      await write();
      program = isReal
        ? await spawnSupervised(binary, ['--mode=addon', '--sync-interval=1', '--health-probe-bind-address=0'], {
            logFile: join(folder, 'add-on.log'),
            env: { ...process.env, KUBECONFIG: managed.kubeconfig },
          })
        : undefined;
    },
    deleted: async () => {
      isThere = false;
      await program?.kill();
    },
  });
  for (const informer of [copies, own]) {
    void informer.run(ended.signal).catch(() => undefined);
  }
  ended.signal.addEventListener('abort', () => void program?.kill());
}

/** Follows the content of what both sides deliver to the cluster. */
class Changes {
  /** Each content since the last reset, by kind and key. */
  readonly #contents = new Map<string, string[]>();

  constructor(client: KubeClient) {
    const content = ({ metadata: _, status: __, ...rest }: KubeObject & { status?: unknown }) => JSON.stringify(rest);
    for (const type of [argoCds, secrets, deployments] as ResourceType[]) {
      const informer = new Informer({ client, type });
      informer.subscribe({
        updated: (old, now) => {
          const key = `${type.kind} ${keyOf(now)}`;
          if (content(old) !== content(now)) {
            this.#contents.set(key, [...(this.#contents.get(key) ?? []), content(now)]);
          }
        },
      });
      void informer.run(ended.signal).catch(() => undefined);
    }
  }

  reset(): void {
    this.#contents.clear();
  }

  has(key: string): boolean {
    return this.#contents.has(key);
  }

  /** What changed more than once, which it does when two write it, with its contents. */
  repeated(): string[] {
    return [...this.#contents].flatMap(([key, all]) => (all.length > 1 ? [`${key}:\n${all.join('\n')}`] : []));
  }
}

/** A user who may read everything and change nothing. */
async function readerOfHub(): Promise<KubeClient> {
  const user = 'reader';
  const rule = { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] };
  await fixture.put(clusterRoles, { metadata: { name: user }, rules: [rule] } as KubeObject);
  await fixture.put(clusterRoleBindings, {
    metadata: { name: user },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: user },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  } as KubeObject);
  const reader = KubeClient.fromKubeconfig(await hub.kubeconfigFor({ user }));
  // The authorizer follows the rights with a delay.
  await until('the rights of the reader', () =>
    reader.list(crds).catch((error) => (isForbidden(error) ? undefined : Promise.reject(error))),
  );
  return reader;
}

async function take(run: (scope: TakeoverScope) => Promise<void>, options: Partial<TakeoverScope> = {}) {
  let output = '';
  const stdout = (text: string) => {
    output += text;
  };
  const scope = { client: hub.client, namespace: ns, release: ours, dryRun: false, timeoutMs: 120_000 };
  await run({ ...scope, signal: ended.signal, stdout, ...options });
  return output;
}

/** Runs a command again and again until it ends, each time interrupted before its second change. */
async function takeInterrupted(run: (scope: TakeoverScope) => Promise<void>): Promise<string> {
  let output = '';
  for (;;) {
    const interrupt = new AbortController();
    const said: string[] = [];
    const stdout = (text: string) => {
      if (!text.startsWith('waiting')) {
        said.push(text);
      }
      if (said.length === 2 && !text.startsWith('next')) {
        interrupt.abort();
      }
    };
    await take(run, { signal: interrupt.signal, stdout }).catch((error) => {
      if (!interrupt.signal.aborted) {
        throw error;
      }
    });
    if (!interrupt.signal.aborted) {
      return output + said.join('');
    }
    const [first = ''] = said;
    expect(output).not.toContain(first);
    output += first;
  }
}

type Leaf = CertificateInfo & { pem: string };

/** The certificates by which principal, Argo CD and agent know each other. */
async function leaves(): Promise<Record<string, Leaf>> {
  const leaf = (data: Record<string, string> | undefined) => {
    const pem = secretText(data, 'tls.crt') ?? '';
    return { ...inspectCertificate(pem), pem };
  };
  const agent = await managed.client.get(secrets, { namespace: ns, name: clientSecretName });
  return {
    principal: leaf(await secret('argocd-agent-principal-tls')),
    proxy: leaf(await secret('argocd-agent-resource-proxy-tls')),
    argoCd: leaf(await secret(`argocd-cluster-client-${name}`)),
    agent: leaf(agent?.data),
  };
}

const secret = async (key: string) => (await hub.client.get(secrets, { namespace: ns, name: key }))?.data;
const work = (key: string) => hub.client.get(manifestWorks, { namespace: name, name: key });
const onCluster = async () => (await managed.client.get(argoCds, { namespace: ns, name: 'argocd' }))?.metadata.uid;
const specOf = async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'gitops-cluster' }))?.spec;
const records = (where: string) => hub.client.list(secrets, { namespace: where, labelSelector: 'owner=helm' });
const crWork = `argocd-agent-cr-${ns}-gitops-cluster`;

async function versions(): Promise<string[]> {
  const types = [secrets, configMaps, deployments, gitOpsClusters, managedClusterAddOns, clusterManagementAddOns];
  const all = await Promise.all(types.map((type) => hub.client.list(type as ResourceType)));
  return all.flat().map(({ metadata }) => `${metadata.uid} ${metadata.generation} ${JSON.stringify(metadata.labels)}`);
}

/** The original's fleet in another namespace is taken over after its controller has gone with the first one. */
async function expectSecondNamespace(): Promise<void> {
  const namespace = 'elsewhere';
  const authority = { namespace, name: 'argocd-agent-ca' };
  await fixture.gitOpsCluster(namespace, 'fleet', 'placement');
  await fixture.put(secrets, { metadata: authority, data: (await secret('argocd-agent-ca')) ?? {} });
  const said = await take(adopt, { namespace });
  expect(said).toContain('Secret elsewhere/argocd-agent-ca: taken over as it is');
  expect(said).toContain('GitOpsCluster elsewhere/fleet: argoCD: Operator');
  await hub.client.delete(gitOpsClusters, { namespace, name: 'fleet' });
  await hub.client.delete(secrets, authority);
}

test('a hub without the original, or another namespace, is said', async () => {
  await expect(take(adopt)).rejects.toThrow(`namespace ${ns} has no fleet of argocd-pull-integration (no Secret`);
  await expect(take(release)).rejects.toThrow(`namespace ${ns} has no GitOpsCluster: name its namespace`);
  await fixture.namespace('elsewhere');
  await fixture.gitOpsCluster('elsewhere', 'fleet', 'placement');
  await expect(take(adopt)).rejects.toThrow('There are GitOpsClusters in: elsewhere');
  await hub.client.delete(gitOpsClusters, { namespace: 'elsewhere', name: 'fleet' });
});

test(`a hub is taken over and given back (${isReal ? 'real' : 'PULL_INTEGRATION_BIN and _SOURCE: the real'} original)`, async () => {
  onTestFailed(async () => {
    console.error(
      JSON.stringify(
        (await hub.client.list(gitOpsClusters)).map(({ status }) => status),
        null,
        1,
      ),
    );
    console.error(
      JSON.stringify(
        (await hub.client.list(manifestWorks)).map(({ metadata, status }) => [metadata.name, status]),
        null,
        1,
      ),
    );
  });
  actAsKubelet(hub.client);
  await actAsAddOnProgram();
  await installOriginal();
  await actAsOperator();
  const long = { timeoutMs: 400_000 };
  await until('the original to enroll the cluster', () => work(crWork), long);
  await until('its add-on', () => hub.client.get(managedClusterAddOns, { namespace: name, name: ours.name }), long);
  await until("OCM's add-on manager to deliver it", () => work('addon-argocd-agent-addon-deploy-0'), long);
  const uid = await until('the ArgoCD on the cluster', onCluster, long);
  await until(
    "the agent's certificate",
    () => managed.client.get(secrets, { namespace: ns, name: clientSecretName }),
    long,
  );
  const changes = new Changes(managed.client);
  const before = {
    spec: await specOf(),
    authority: await secret('argocd-agent-ca'),
    client: await secret(`argocd-cluster-client-${name}`),
  };
  expect(before.authority?.['tls.key']).toBeTruthy();

  const untouched = await versions();
  const reader = await readerOfHub();
  await expect(take(adopt, { client: reader })).rejects.toThrow(
    /deployments.*cannot patch resource.*Run the command with the rights that helm install needs/,
  );
  await reader.close();
  expect(await versions()).toEqual(untouched);
  const planned = await take(adopt, { dryRun: true });
  expect(await versions()).toEqual(untouched);
  // The real original never releases its Lease, so that each run would wait until it has expired.
  changes.reset();
  const said = await (isReal ? take : takeInterrupted)(adopt);
  const changesOf = (text: string) => text.split('\n').filter((line) => !line.startsWith('waiting'));
  expect(changesOf(said)).toEqual(changesOf(planned).map((line) => line.replace(' (dry run)', '')));
  expect(said).toContain(`Secret ${ns}/argocd-agent-ca: taken over as it is`);
  expect(await take(adopt)).toContain('nothing is left to take over');
  await expectSecondNamespace();
  expect(await hub.client.get(deployments, controllerKey)).toBeUndefined();
  expect(await records(theirs.namespace)).toEqual([]);
  // The hub's own Argo CD would have gone with helm uninstall.
  expect(await hub.client.get(argoCds, { namespace: ns, name: 'argocd' })).toBeDefined();

  // OCM's add-on manager does so when it reads the annotation before it ends, which is a race. It is the writer from then on.
  await hub.client.mergePatch(
    clusterManagementAddOns,
    { name: ours.name },
    { metadata: { annotations: { 'addon.open-cluster-management.io/lifecycle': '' } } },
    { fieldManager: 'ocm' },
  );
  const set = ['hubArgoCD.enabled=false', 'principal.enabled=false'].flatMap((one) => ['--set', one]);
  await onHub('install', ours.name, addonChart, '--namespace', ours.namespace, '--create-namespace', ...values, ...set);
  controller = runController(hub.client, { argoCdNamespace: ns });
  const gone = ['argocd-agent-ca-mw', crWork, 'addon-argocd-agent-addon-deploy-0'];
  await until('the works of the original to be replaced', async () =>
    (await Promise.all(gone.map(work))).every((one) => one === undefined),
  );
  for (const condition of [
    'CACertificateReady',
    'PrincipalCertificateReady',
    'ClustersImported',
    'ManifestWorkCreated',
  ]) {
    await fixture.conditionIs([ns, 'gitops-cluster'], condition, 'True');
  }
  const kept = async () => {
    expect(await onCluster()).toBe(uid);
    expect(await secret('argocd-agent-ca')).toEqual(before.authority);
    expect(await secret(`argocd-cluster-client-${name}`)).toEqual(before.client);
  };
  await kept();
  // Each object has one writer at a time.
  const delivered = [
    `ArgoCD ${ns}/argocd`,
    `Secret ${ns}/${clientSecretName}`,
    // Only the real original has delivered argocd-operator before.
    ...(isReal ? ['Deployment argocd-operator-system/argocd-operator-controller-manager'] : []),
  ];
  const areDelivered = () => delivered.every((one) => changes.has(one));
  await until('our ArgoCD and our certificate', areDelivered);
  // The original changes its Deployment after it has made it, which may be seen late. It selects no nodes.
  const operator = { namespace: 'argocd-operator-system', name: 'argocd-operator-controller-manager' };
  await until(
    'our argocd-operator',
    async () =>
      !isReal || (await managed.client.get(deployments, operator))?.spec?.template?.spec?.nodeSelector !== undefined,
  );
  expect(changes.repeated()).toEqual([]);
  changes.reset();
  // Argo CD on the hub reaches the clusters through the Service of argocd-operator, by a name in the proxy's certificate.
  const proxy = 'argocd-agent-principal-resource-proxy';
  const server = secretText(await secret(`cluster-${name}`), 'server');
  expect(server).toBe(`https://${proxy}:9090?agentName=${name}`);
  const certificate = secretText(await secret('argocd-agent-resource-proxy-tls'), 'tls.crt') ?? '';
  expect(inspectCertificate(certificate).dnsNames).toContain(proxy);

  await controller.stop();
  controller = undefined;
  const left = await versions();
  const plannedBack = await take(release, { dryRun: true });
  expect(await versions()).toEqual(left);
  const saidBack = await takeInterrupted(release);
  expect(changesOf(plannedBack).length).toBeGreaterThan(5);
  expect(changesOf(saidBack)).toEqual(changesOf(plannedBack).map((line) => line.replace(' (dry run)', '')));
  expect(saidBack).toContain(`next: helm install ${theirs.name} CHART --namespace ${theirs.namespace}`);
  expect(await take(release)).toContain('nothing is left to release');
  expect(await specOf()).toEqual(before.spec);
  expect(await records(ours.namespace)).toEqual([]);
  const addOn = await hub.client.get(managedClusterAddOns, { namespace: name, name: ours.name });
  expect(addOn?.metadata.finalizers ?? []).toEqual([]);
  expect(await hub.client.list(manifestWorks, { namespace: name })).toEqual([]);
  await kept();

  await installOriginal();
  await until('the original to go on', () => work(crWork), long);
  await until('its authority on the cluster', () => work('argocd-agent-ca-mw'), long);
  await until('its ArgoCD and its certificate', areDelivered, long);
  expect(changes.repeated()).toEqual([]);
  expect(await specOf()).toEqual(before.spec);
  expect(await onCluster()).toBe(uid);
  expect(await secret('argocd-agent-ca')).toEqual(before.authority);
}, 1_200_000);

test('what was adopted is renewed in time, month after month, by the same authority', async () => {
  await take(adopt);
  const authority = secretText(await secret('argocd-agent-ca'), 'tls.crt') ?? '';
  const adoptedAt = Date.now();
  let former: Record<string, Leaf> | undefined;
  let restarted = '';
  for (const days of [0, 21, 42]) {
    const now = adoptedAt + days * 24 * 3600_000;
    await controller?.stop();
    controller = runController(hub.client, { argoCdNamespace: ns, clock: () => new Date(now) });
    const isRenewed = ({ notAfter, pem }: Leaf) =>
      notAfter.getTime() > now + 20 * 24 * 3600_000 && isIssuedBy(pem, authority);
    const renewed = await until(`certificates of day ${days}`, async () => {
      const all = await leaves();
      const program = await managed.client.get(deployments, { namespace: addOnNamespace, name: addOnDeployment });
      return program === undefined && Object.values(all).every(isRenewed) && all;
    });
    // Until then everybody had a valid one.
    for (const [user, { notAfter }] of Object.entries(former ?? {})) {
      expect(notAfter.getTime(), user).toBeGreaterThan(now);
    }
    // Neither reads a renewed certificate before it starts again.
    await until('new pods of the principal', async () => {
      const template = (await hub.client.get(deployments, principal))?.spec?.template;
      const isNew = JSON.stringify(template) !== restarted;
      restarted = JSON.stringify(template);
      return isNew;
    });
    const sum = createHash('sha256')
      .update(renewed.agent?.pem ?? '')
      .digest('hex');
    await until('a new pod of the agent', async () =>
      JSON.stringify(await managed.client.get(argoCds, { namespace: ns, name: 'argocd' })).includes(sum),
    );
    former = renewed;
  }
}, 1_200_000);

test("the original's CRD is said before anything is changed", async () => {
  const key = { name: 'gitopsclusters.apps.open-cluster-management.io' };
  const live = await hub.client.get(crds, key);
  const [crd] = (await originalCrds()).filter(({ metadata }) => metadata.name === key.name);
  const resourceVersion = live?.metadata.resourceVersion ?? '';
  await hub.client.replace(crds, { ...crd, metadata: { ...key, resourceVersion } } as CustomResourceDefinition);
  await expect(take(adopt)).rejects.toThrow('first run kubectl apply --server-side');
  await hub.applyCrds(chartCrds);
});
