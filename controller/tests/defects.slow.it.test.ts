import { afterAll, afterEach, expect, test } from 'vitest';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type CustomResourceDefinition,
  clusterRoleBindings,
  clusterRoles,
  crds,
  KubeClient,
  type KubeObject,
  secrets,
  services,
} from '../../lib/kube/index.ts';
import { gitOpsClusters, managedClusterAddOns, managedClusters, manifestWorks, placements } from '../hub/index.ts';
import { useHub } from '../testing/hub.ts';

let cluster: SharedCluster | undefined;
const hub = useHub(async (options) => {
  cluster = await borrowCluster(options);
  return cluster;
});

/** A controller with rights of its own. */
const user = 'restricted-controller';
let limited: KubeClient | undefined;
afterEach(async () => {
  await hub.stop();
  await limited?.close();
  limited = undefined;
});
afterAll(() => limited?.close());

/** Grants the restricted controller all rights except those on one kind, or all rights. */
async function allowAllBut(resource: string | undefined): Promise<void> {
  const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];
  const group = { managedclusters: 'cluster', placements: 'cluster', placementdecisions: 'cluster' }[resource ?? ''];
  const restricted = `${group ?? 'work'}.open-cluster-management.io`;
  const known = ['apps', 'cluster', 'addon', 'work'].map((name) => `${name}.open-cluster-management.io`);
  const builtIn = [
    'apiextensions',
    'apiregistration',
    'certificates',
    'coordination',
    'discovery',
    'events',
    'networking',
  ].map((name) => `${name}.k8s.io`);
  const groups = ['', 'apps', 'argoproj.io', ...builtIn, ...known];
  const inGroup = ['managedclusters', 'placements', 'placements/status', 'placementdecisions', 'manifestworks'];
  const rules =
    resource === undefined
      ? [{ apiGroups: ['*'], resources: ['*'], verbs }]
      : [
          { apiGroups: groups.filter((one) => one !== restricted), resources: ['*'], verbs },
          { apiGroups: [restricted], resources: inGroup.filter((one) => one !== resource), verbs },
          ...(resource === 'manifestworks'
            ? [{ apiGroups: [restricted], resources: [resource], verbs: ['list', 'watch'] }]
            : []),
        ];
  const name = user;
  await hub.fixture.put(clusterRoles, { metadata: { name }, rules } as KubeObject);
  await hub.fixture.put(clusterRoleBindings, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  } as KubeObject);
  limited ??= KubeClient.fromKubeconfig((await cluster?.kubeconfigFor({ user, groups: [] })) ?? '');
  await waitForRights(limited, resource);
}

/** Waits until the API server applies the rights: its authorizer follows them with a delay. */
async function waitForRights(client: KubeClient, withheld: string | undefined): Promise<void> {
  const groups = {
    managedclusters: 'cluster',
    placementdecisions: 'cluster',
    placements: 'cluster',
    manifestworks: 'work',
  };
  for (const [resource, group] of Object.entries(groups)) {
    const resourceAttributes = { group: `${group}.open-cluster-management.io`, resource, verb: 'patch' };
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes },
    };
    await until(`the rights on ${resource}`, async () => {
      const answer = await client.request('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        method: 'POST',
        body,
      });
      const { status } = JSON.parse(await answer.body.text()) as { status: { allowed: boolean } };
      return status.allowed === (resource !== withheld);
    });
  }
}

const worksOf = async (name: string) =>
  (await hub.client.list(manifestWorks, { namespace: name })).map(
    ({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.deletionTimestamp ?? ''}`,
  );

test.each(['managedclusters', 'placementdecisions', 'placements'])(
  'ocm defect H2: no cluster is detached because %s cannot be read',
  async (resource) => {
    const { ns, a, b } = hub;
    await allowAllBut(undefined);
    await hub.enroll(limited ? { client: limited } : {});
    await hub.idle();
    const before = await Promise.all([a, b].map(worksOf));
    await hub.stop();
    await allowAllBut(resource);
    hub.start(limited ? { client: limited } : {});
    const kind = {
      managedclusters: 'ManagedCluster',
      placementdecisions: 'PlacementDecision',
      placements: 'Placement',
    };
    // Everything else has been read by now. A controller that acts on incomplete caches would act now.
    await until('the rest to be read', async () => {
      const missing = hub.controller.missing();
      return missing.length === 1 && missing[0] === kind[resource as keyof typeof kind];
    });
    await hub.client.mergePatch(gitOpsClusters, { namespace: ns, name: 'fleet' }, { metadata: { labels: { a: 'b' } } });
    await hub.idle();
    expect(await Promise.all([a, b].map(worksOf))).toEqual(before);
    for (const name of [a, b]) {
      expect((await hub.addOn(name))?.metadata.deletionTimestamp).toBeUndefined();
      expect(await hub.secret(`cluster-${name}`)).toBeDefined();
    }
  },
);

test('ocm defect M1: a failed step is retried without a change, and the status reports it until it succeeds', async () => {
  const { ns, a, b } = hub;
  await allowAllBut('manifestworks');
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start(limited ? { client: limited } : {});
  await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'False', /forbidden/);
  // Granting a right changes no object that the controller watches.
  await allowAllBut(undefined);
  await until('the works', async () => (await worksOf(a)).length === 3 && (await worksOf(b)).length === 3);
  await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'True');
});

test('ocm defect M3: the discovered address is not written into a specification, and follows the Service', async () => {
  const { ns, a, b } = hub;
  const key = { namespace: ns, name: 'argocd-agent-principal' };
  const address = (ip: string) => ({ status: { loadBalancer: { ingress: [{ ip }] } } });
  await hub.client.create(services, { metadata: key, spec: { type: 'LoadBalancer', ports: [{ port: 443 }] } });
  await hub.client.mergePatch(services, key, address('192.0.2.1'), { subresource: 'status' });
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { principalServerAddress: '', principalServerPort: '' });
  const spec = (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' }))?.spec;
  hub.start();
  const holds = (text: string) =>
    until(`works with ${text}`, async () => JSON.stringify((await hub.work(a, 'agent'))?.spec ?? {}).includes(text));
  await holds('192.0.2.1');
  // The next change can only be seen through the watch of the Service.
  await hub.idle();
  await hub.client.mergePatch(services, key, address('192.0.2.2'), { subresource: 'status' });
  await holds('192.0.2.2');
  expect((await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' }))?.spec).toEqual(spec);
});

test('ocm defect M6: a change of the agents’ namespace applies everywhere', async () => {
  const { ns, a } = hub;
  await hub.enroll();
  const spec = { argoCDAgentAddon: { agentNamespace: 'elsewhere' } };
  await hub.client.mergePatch(gitOpsClusters, { namespace: ns, name: 'fleet' }, { spec });
  await until('nothing of the old namespace in the works', async () => {
    const works = await Promise.all(['agent', 'argocd'].map((part) => hub.work(a, part)));
    return works.every((work) => {
      const text = JSON.stringify(work?.spec ?? {});
      return text.includes('"namespace":"elsewhere"') && !text.includes('"namespace":"argocd"');
    });
  });
});

test('ocm defect M10: a Placement without tolerations gets them', async () => {
  const { ns, a } = hub;
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start();
  await hub.fixture.conditionIs([ns, 'fleet'], 'PlacementTolerationConfigured', 'True');
  const live = await hub.client.get(placements, { namespace: ns, name: 'placement' });
  expect(live?.spec?.tolerations).toEqual([
    { key: 'cluster.open-cluster-management.io/unreachable', operator: 'Exists' },
    { key: 'cluster.open-cluster-management.io/unavailable', operator: 'Exists' },
  ]);
});

test('tolerations that somebody applies stay theirs: the next change of them has no conflict', async () => {
  const { ns, a } = hub;
  const own = (key: string) => ({ key, operator: 'Exists' as const });
  const apply = (...tolerations: object[]) =>
    hub.client.apply(
      placements,
      { metadata: { namespace: ns, name: 'placement' }, spec: { tolerations } } as KubeObject,
      { fieldManager: 'helm' },
    );
  await hub.fixture.placement(ns, 'placement', [a]);
  await apply(own('own'));
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start();
  const lacks = /add \{key: cluster\.open-cluster-management\.io\/unreachable, operator: Exists\} and /;
  await hub.fixture.conditionIs([ns, 'fleet'], 'PlacementTolerationConfigured', 'False', lacks);
  await apply(own('own'), own('another'));
  const all = ['own', 'unreachable', 'unavailable'].map((one) =>
    own(one === 'own' ? one : `cluster.open-cluster-management.io/${one}`),
  );
  await apply(...all);
  await hub.fixture.conditionIs([ns, 'fleet'], 'PlacementTolerationConfigured', 'True');
  expect((await hub.client.get(placements, { namespace: ns, name: 'placement' }))?.spec?.tolerations).toEqual(all);
});

test('ocm defect M12: a CRD that the hub upgrades is upgraded on the clusters', async () => {
  const { a } = hub;
  await hub.enroll();
  const name = 'applications.argoproj.io';
  const versionOf = async () => {
    const work = await hub.work(a, 'crds');
    const found = work?.spec.workload.manifests.find(({ metadata }) => metadata.name === name);
    return JSON.stringify((found as CustomResourceDefinition | undefined)?.spec ?? {});
  };
  expect(await versionOf()).not.toContain('upgraded');
  const live = await hub.client.get(crds, { name });
  const names = { ...live?.spec?.names, shortNames: ['app', 'apps', 'upgraded'] };
  await hub.client.mergePatch(crds, { name }, { spec: { names } });
  await until('the CRD of the cluster', async () => (await versionOf()).includes('upgraded'));
});

test('ocm defect M14: fields that others add to the controller’s objects stay, and lead to no write', async () => {
  const { ns, a } = hub;
  await hub.enroll();
  await hub.idle();
  const note = { metadata: { labels: { 'example.com/team': 'red' }, annotations: { 'example.com/note': 'ours' } } };
  const work = { namespace: a, name: 'argocd-agent-addon-agent' };
  const addOn = { namespace: a, name: 'argocd-agent-addon' };
  const secret = { namespace: ns, name: `cluster-${a}` };
  const noted = [
    await hub.client.mergePatch(manifestWorks, work, note),
    await hub.client.mergePatch(managedClusterAddOns, addOn, note),
    await hub.client.mergePatch(secrets, secret, note),
  ].map(({ metadata }) => metadata.resourceVersion);
  await hub.idle();
  await hub.restart();
  await hub.idle();
  const now = [
    await hub.client.get(manifestWorks, work),
    await hub.client.get(managedClusterAddOns, addOn),
    await hub.client.get(secrets, secret),
  ];
  expect(now.map((one) => one?.metadata.resourceVersion)).toEqual(noted);
  for (const one of now) {
    expect(one?.metadata.labels?.['example.com/team']).toBe('red');
  }
});

test('ocm defect H7: no remains of a detachment stop the agent of a cluster that is enrolled again', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  // Secrets are generated anew. All other objects are the same as at the first enrolment.
  const delivered = async () =>
    (await Promise.all(['crds', 'argocd', 'agent'].map((part) => hub.work(a, part)))).map((work) =>
      work?.spec.workload.manifests.map((one) =>
        one.kind === 'Secret'
          ? [one.metadata.namespace, one.metadata.name]
          : JSON.parse(JSON.stringify(one).replace(/("checksum[^"]*"):"[^"]*"/g, '$1:""')),
      ),
    );
  const first = await delivered();
  await hub.unselect(a);
  await hub.fixture.endCleanUp(a);
  await until('nothing left', async () => (await worksOf(a)).length === 0 && (await hub.addOn(a)) === undefined);
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.enrolled(a);
  expect(await delivered()).toEqual(first);
  expect(await hub.client.get(managedClusterAddOns, { namespace: a, name: 'argocd-agent-addon' })).toBeDefined();
  expect(await hub.client.get(managedClusters, { name: a })).toBeDefined();
});
