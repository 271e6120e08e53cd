import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import {
  crds,
  deployments,
  type KubeObject,
  namespaces,
  type PodSpec,
  resourceType,
  secrets,
} from '../../lib/kube/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { addonChart, helm, hubArgoCdChart, installCrds, ocmCrds, restrictedRefusals, withoutHub } from './index.ts';

const release = 'argocd-agent-addon';
const releaseNamespace = 'open-cluster-management-agent-addon';

interface GitOpsCluster extends KubeObject {
  spec?: { placementRef: object; argoCDAgentAddon: object };
}

const gitOpsClusters = resourceType<GitOpsCluster>({
  group: 'apps.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'GitOpsCluster',
  plural: 'gitopsclusters',
  namespaced: true,
});
const accessReviews = resourceType<KubeObject & { spec: object; status?: { allowed: boolean } }>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  namespaced: false,
});

let hub: Cluster;

/** Runs Helm on the hub against the release. No node runs hooks here: upgrade.it.test.ts has one. */
async function onHub(command: 'install' | 'upgrade' | 'uninstall', ...args: string[]): Promise<string> {
  const chart = command === 'uninstall' ? [] : [addonChart];
  return await helm([command, release, ...chart, '--namespace', releaseNamespace, ...args], {
    kubeconfig: hub.kubeconfig,
  });
}

/** Whether a ServiceAccount, as `namespace:name`, may do something. */
async function may(account: string, attributes: Record<string, string>): Promise<boolean> {
  const review = await hub.client.create(accessReviews, {
    metadata: { name: '' },
    spec: { user: `system:serviceaccount:${account}`, resourceAttributes: attributes },
  });
  return review.status?.allowed ?? false;
}

async function deploymentNames(namespace: string): Promise<string[]> {
  return (await hub.client.list(deployments, { namespace })).map(({ metadata }) => metadata.name).sort();
}

beforeAll(async () => {
  hub = await startCluster();
});
afterAll(async () => {
  await hub?.stop();
});

describe('helm install', () => {
  it('says what is wrong when the cluster is not an OCM hub', async () => {
    await expect(onHub('install', '--create-namespace')).rejects.toThrow(
      /this cluster is not an Open Cluster Management hub: it does not serve cluster.open-cluster-management.io\/v1beta1\/Placement/,
    );
  });

  it('works on a hub without values, and brings Argo CD when there is none', async () => {
    await installCrds(hub.client, await ocmCrds('hub'));
    const notes = await onHub('install', '--create-namespace');
    expect(notes).toContain('kubectl -n argocd get gitopsclusters --watch');
    expect(await deploymentNames(releaseNamespace)).toEqual(['argocd-agent-addon-controller']);
    expect(await deploymentNames('argocd')).toEqual([
      'argocd-agent-principal',
      'argocd-applicationset-controller',
      'argocd-redis',
      'argocd-repo-server',
      'argocd-server',
    ]);
    const made = await hub.client.get(gitOpsClusters, { namespace: 'argocd', name: 'gitops-cluster' });
    expect(made?.spec?.argoCDAgentAddon).toEqual({ mode: 'managed' });
  });

  it('makes only pods that the restricted Pod Security Standard admits: those of its hooks, too', async () => {
    const everything = [...withoutHub(addonChart), '--set', 'replicas=2'];
    const text = await helm(['template', release, addonChart, '--namespace', releaseNamespace, ...everything]);
    const pods = parseAllDocuments(text).flatMap((document) => {
      const object = document.toJS() as (KubeObject & { spec?: PodSpec & { template?: { spec?: PodSpec } } }) | null;
      const spec = object?.kind === 'Pod' ? object.spec : object?.spec?.template?.spec;
      return spec ? [{ of: `${object?.kind} ${object?.metadata.name}`, spec }] : [];
    });
    expect(pods.map(({ of }) => of).sort()).toEqual([
      'Deployment argocd-agent-addon-controller',
      'Deployment argocd-agent-principal',
      'Deployment argocd-applicationset-controller',
      'Deployment argocd-redis',
      'Deployment argocd-repo-server',
      'Deployment argocd-server',
      'Job argocd-agent-addon-crds',
      'Job argocd-agent-addon-uninstall',
      'Pod argocd-agent-addon-test',
    ]);
    expect(await restrictedRefusals(hub.client, 'argocd', pods)).toEqual([]);
    const careless = { of: 'Pod careless', spec: { containers: [{ name: 'a', image: 'a' }] } };
    expect(await restrictedRefusals(hub.client, 'argocd', [careless])).toEqual([
      expect.stringMatching(/^Pod careless: .*violates PodSecurity "restricted:latest"/),
    ]);
  });

  it('gives the programs the rights that they need and not those that they do not', async () => {
    const controller = `${releaseNamespace}:argocd-agent-addon-controller`;
    const principal = 'argocd:argocd-agent-principal';
    const work = { group: 'work.open-cluster-management.io', resource: 'manifestworks', namespace: 'cluster1' };
    const applications = { group: 'argoproj.io', resource: 'applications', namespace: 'anywhere' };
    const secret = { resource: 'secrets', verb: 'create' };
    expect(await may(controller, { ...work, verb: 'create' })).toBe(true);
    expect(await may(controller, { ...secret, namespace: 'argocd' })).toBe(true);
    // Outside the namespaces that it serves, the controller has no right on what may hold secrets, nor on workloads.
    const held = ['secrets', 'configmaps', 'services'].map((resource) => ({ resource }));
    const running = ['deployments', 'statefulsets'].map((resource) => ({ group: 'apps', resource }));
    for (const what of [...held, ...running, { group: 'coordination.k8s.io', resource: 'leases' }]) {
      for (const verb of ['get', 'list', 'watch', 'create', 'patch', 'delete']) {
        for (const namespace of ['kube-system', 'default', '']) {
          expect(await may(controller, { ...what, verb, namespace }), JSON.stringify({ ...what, verb })).toBe(false);
        }
      }
    }
    expect(await may(controller, { resource: 'pods', verb: 'create', namespace: 'argocd' })).toBe(false);
    expect(await may(controller, { ...applications, verb: 'create' })).toBe(false);
    expect(await may(principal, { ...applications, verb: 'patch' })).toBe(true);
    expect(await may(principal, { resource: 'secrets', verb: 'watch', namespace: 'argocd' })).toBe(true);
    expect(await may(principal, { resource: 'secrets', verb: 'get', namespace: 'kube-system' })).toBe(false);
    for (const verb of ['create', 'patch', 'delete']) {
      expect(await may(principal, { resource: 'secrets', verb, namespace: 'argocd' })).toBe(false);
    }
    expect(await may(principal, { ...work, verb: 'list' })).toBe(false);
  });

  it.each<[string, object, RegExp]>([
    ['an unknown mode', { mode: 'manged' }, /mode.*supported values: "managed", "autonomous"/],
    ['a port that is none', { principalServerPort: '99999' }, /must be a port number between 1 and 65535/],
    ['a port that is a word', { principalServerPort: 'https' }, /must be a port number between 1 and 65535/],
    ['an address with a scheme', { principalServerAddress: 'https://a' }, /without a scheme, .*a path,? .*spaces/],
    ['a bad namespace', { agentNamespace: 'Argo_CD' }, /must be a valid namespace name/],
    [
      'a namespace of Kubernetes',
      { agentNamespace: 'kube-system' },
      /agentNamespace: .*must not be a namespace of Kube/,
    ],
    ['a namespace of OpenShift', { operatorNamespace: 'openshift-etcd' }, /operatorNamespace: .*must not be a namesp/],
    ['no manifests', { argoCDCRManifestWork: { manifests: [] } }, /manifests.*at least 1 items/],
  ])('has the API server refuse a GitOpsCluster with %s', async (_, argoCDAgentAddon, message) => {
    const placementRef = { kind: 'Placement', name: 'placement' };
    await expect(create({ placementRef, argoCDAgentAddon })).rejects.toThrow(message);
  });

  it.each<[string, object, RegExp]>([
    ['of another kind', { kind: 'Deployment', name: 'placement' }, /kind must be Placement/],
    ['without a name', { kind: 'Placement' }, /name must name a Placement/],
  ])('has the API server refuse a GitOpsCluster with a placement reference %s', async (_, placementRef, message) => {
    await expect(create({ placementRef, argoCDAgentAddon: {} })).rejects.toThrow(message);
  });

  async function create(spec: { placementRef: object; argoCDAgentAddon: object }) {
    return await hub.client.create(gitOpsClusters, { metadata: { namespace: 'argocd', name: 'wrong' }, spec });
  }
});

describe('helm upgrade', () => {
  it("keeps the hub's Argo CD that auto has installed, and the password of its Redis", async () => {
    const key = { namespace: 'argocd', name: 'argocd-redis' };
    // Redis's first pod makes it, which no node runs here.
    expect(await hub.client.get(secrets, key)).toBeUndefined();
    const auth = Buffer.from('made once').toString('base64');
    const made = await hub.client.create(secrets, { metadata: key, data: { auth } });
    await onHub('upgrade', '--no-hooks', '--set', 'gitOpsCluster.principalServerAddress=principal.example.com');
    expect(await deploymentNames('argocd')).toContain('argocd-server');
    expect(await hub.client.get(secrets, key)).toEqual(made);
    const changed = await hub.client.get(gitOpsClusters, { namespace: 'argocd', name: 'gitops-cluster' });
    expect(changed?.spec?.argoCDAgentAddon).toMatchObject({ principalServerAddress: 'principal.example.com' });
  });

  it('keeps the password that a release of an earlier version has made', async () => {
    const key = { namespace: 'argocd', name: 'argocd-redis' };
    const owner = { 'meta.helm.sh/release-name': release, 'meta.helm.sh/release-namespace': releaseNamespace };
    const labels = { 'app.kubernetes.io/managed-by': 'Helm' };
    await hub.client.mergePatch(secrets, key, { metadata: { annotations: owner, labels } });
    const { data } = (await hub.client.get(secrets, key)) ?? {};
    // The first one takes the Secret into the release, and Helm would delete it with the second one if that left it out.
    for (const time of ['first', 'second']) {
      await onHub('upgrade', '--no-hooks');
      expect((await hub.client.get(secrets, key))?.data, time).toEqual(data);
    }
  });
});

describe('a GitOpsCluster in another namespace', () => {
  const key = { namespace: 'team-a', name: 'fleet' };
  const finalizer = 'apps.open-cluster-management.io/gitopscluster-cleanup';

  it("is no obstacle to an upgrade: Argo CD's principal serves it, and the controller may not read Secrets there", async () => {
    await hub.client.create(namespaces, { metadata: { name: key.namespace } });
    const placementRef = { kind: 'Placement', name: 'placement' };
    await hub.client.create(gitOpsClusters, { metadata: key, spec: { placementRef, argoCDAgentAddon: {} } });
    expect(await onHub('upgrade', '--no-hooks')).not.toContain('team-a');
    const guest = { 'apps.open-cluster-management.io/principal-namespace': 'argocd' };
    await hub.client.mergePatch(gitOpsClusters, key, { metadata: { finalizers: [finalizer], annotations: guest } });
    expect(await onHub('upgrade', '--no-hooks')).not.toContain('team-a');
    const controller = `${releaseNamespace}:argocd-agent-addon-controller`;
    expect(await may(controller, { resource: 'secrets', verb: 'list', namespace: key.namespace })).toBe(false);
  });

  it('stops an upgrade that would leave its own authority without the controller, which says what to set', async () => {
    await hub.client.mergePatch(gitOpsClusters, key, { metadata: { annotations: null } });
    await expect(onHub('upgrade', '--no-hooks')).rejects.toThrow(
      "no longer serve these GitOpsClusters: team-a/fleet. It has rights in the namespaces of controller.gitOpsNamespaces only, because controller.allNamespaces is false, the default. Add these namespaces (--set 'controller.gitOpsNamespaces={team-a}'), or set controller.allNamespaces to true",
    );
  });

  it.each([['controller.gitOpsNamespaces={team-a}'], ['controller.allNamespaces=true']])(
    'is served with %s',
    async (value) => {
      const controller = `${releaseNamespace}:argocd-agent-addon-controller`;
      const mayRead = (namespace: string) => may(controller, { resource: 'secrets', verb: 'list', namespace });
      expect(await onHub('upgrade', '--no-hooks', '--set', value)).not.toContain('team-a');
      expect(await mayRead('team-a')).toBe(true);
      expect(await mayRead('kube-system')).toBe(value.includes('allNamespaces'));
      await expect(onHub('upgrade', '--no-hooks', '--reset-values')).rejects.toThrow('team-a/fleet');
    },
  );

  it('does not matter any more when it is gone', async () => {
    await hub.client.mergePatch(gitOpsClusters, key, { metadata: { finalizers: null } });
    await hub.client.delete(gitOpsClusters, key);
    expect(await onHub('upgrade', '--no-hooks', '--reset-values')).not.toContain('team-a');
  });
});

describe('helm uninstall', () => {
  it("keeps Argo CD's namespace and kinds, so that no Application is lost, and can be taken back", async () => {
    await onHub('uninstall', '--no-hooks');
    expect(await deploymentNames('argocd')).toEqual([]);
    expect(await hub.client.get(namespaces, { name: 'argocd' })).toBeDefined();
    expect(await hub.client.get(crds, { name: 'applications.argoproj.io' })).toBeDefined();
    expect(await hub.client.get(crds, { name: 'gitopsclusters.apps.open-cluster-management.io' })).toBeDefined();
    await onHub('install');
    expect(await deploymentNames('argocd')).toContain('argocd-server');
    await onHub('uninstall', '--no-hooks');
  });
});

describe("an operator's own Argo CD", () => {
  it('is left alone by install, upgrade and uninstall', async () => {
    for (const kind of ['applications', 'applicationsets', 'appprojects']) {
      await hub.client.delete(crds, { name: `${kind}.argoproj.io` });
    }
    await helm(['install', 'argocd', hubArgoCdChart, '--namespace', 'argocd'], { kubeconfig: hub.kubeconfig });
    const versions = async () =>
      (await hub.client.list(deployments, { namespace: 'argocd' }))
        .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'argocd')
        .map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.generation}`);
    const before = await versions();
    expect(before).toHaveLength(4);
    expect(await onHub('install')).toContain(
      `kubectl -n argocd patch configmap argocd-cmd-params-cm --type merge -p '{"data":{"redis.server":"argocd-agent-redis-proxy:6379"}}'`,
    );
    const notes = await onHub('upgrade', '--no-hooks', '--set', 'hubArgoCD.configure=true');
    expect(notes).toContain('The controller sets that (hubArgoCD.configure)');
    expect(notes).not.toContain('patch configmap');
    expect(await deploymentNames('argocd')).toContain('argocd-agent-principal');
    await onHub('uninstall', '--no-hooks');
    expect(await versions()).toEqual(before);
  });
});
