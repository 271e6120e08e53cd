import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import {
  certificateSigningRequests,
  configMaps,
  deployments,
  events,
  type KubeClient,
  type KubeObject,
  leases,
  namespaces,
  type PodSpec,
  pods,
  type ResourceType,
  resourceType,
  type Service,
  secrets,
  services,
  statefulSets,
} from '../../lib/kube/index.ts';
import { inspectCertificate, isIssuedBy, secretText } from '../../lib/pki/index.ts';
import {
  type FleetApplication,
  fleetApplicationSets,
  fleetApplications,
  fleetGitOpsClusters,
  fleetPorts,
  guestbookFiles,
  guestbookRepository,
  guestbookSet,
  guestbookValues,
  isSyncedAndHealthy,
  type SharedFleet,
  type SharedMember,
  selectedClusters,
} from '../fleet/index.ts';
import { restrictedRefusals } from '../hub/index.ts';
import { kubeletPods } from '../node/index.ts';
import { appliedManifestWorks, type OcmCondition, ocmManifestWorks, ocmPlacementDecisions } from '../ocm/index.ts';
import { startTestFleet } from '../provider/index.ts';
import { waitForObject, waitForObjects } from '../testbed/index.ts';

const managedClusterAddOns = resourceType<{
  metadata: { name: string };
  status?: { conditions?: OcmCondition[]; namespace?: string };
}>({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  namespaced: true,
});

const argocd = 'argocd';
const addOn = 'argocd-agent-addon';
/** Where OCM's registration agent puts the certificate that it requested. */
const clientSecret = 'argocd-agent-addon-open-cluster-management.io-argocd-agent-addon-client-cert';
/** Where the hub delivers a key that it made. */
const deliveredSecret = 'argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert';
const generous = { timeoutMs: 300_000 };

let fleet: SharedFleet;
beforeAll(async () => {
  fleet = await startTestFleet({ labels: selectedClusters });
  await fleet.git.commit(guestbookRepository, guestbookFiles('Hello'), 'A guestbook');
});
afterAll(() => fleet?.stop());
beforeEach(() => onTestFailed(async () => console.error(fleet ? await fleet.logs() : 'the fleet did not start')));

const names = () => [...fleet.members.keys()].sort();
const each = (check: (name: string, member: SharedMember) => Promise<void>) =>
  Promise.all([...fleet.members].map(([name, member]) => check(name, member)));
const hubSecret = async (name: string) => (await fleet.hub.client.get(secrets, { namespace: argocd, name }))?.data;
const identityKey = { namespace: argocd, name: 'argocd-agent-principal-identity' };
const appOf = (cluster: string) => ({ namespace: argocd, name: `guestbook-${cluster}` });

describe('after helm install, without anyone doing more', () => {
  test('the Placement is scheduled and both clusters are enrolled', async () => {
    const { hub } = fleet;
    await fleet.install(guestbookValues);
    const [enrolled] = await waitForObjects(
      hub.client,
      fleetGitOpsClusters,
      generous,
      ([g]) =>
        g?.status?.clusters?.connected === 2 &&
        g.status.clusters?.available === 2 &&
        (g.status.conditions ?? []).every(({ status }) => status === 'True'),
    );
    const conditions = enrolled?.status?.conditions ?? [];
    expect(conditions.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['Ready', 'PlacementEvaluated', 'ClustersImported', 'ManifestWorkCreated']),
    );
    const decisions = await hub.client.list(ocmPlacementDecisions, { namespace: argocd });
    const decided = decisions.flatMap(({ status }) => status?.decisions.map(({ clusterName }) => clusterName) ?? []);
    expect(decided.sort()).toEqual(names());
  });

  test('the add-on of each cluster is available and connected', () =>
    each(async (name) => {
      const wanted = [
        'AgentConnected=True',
        'Available=True',
        'ClientCertificateIssued=True',
        'Configured=True',
        'ManifestApplied=True',
        'Progressing=False',
      ];
      // OCM's registration agent adds a condition of its own, the stand-in does not.
      const ours = (a: { status?: { conditions?: OcmCondition[] } } | undefined) =>
        a?.status?.conditions?.filter(({ type }) => type !== 'ClusterCertificateRotated');
      const found = await waitForObject(fleet.hub.client, managedClusterAddOns, { namespace: name, name: addOn }, (a) =>
        isDeepStrictEqual(
          ours(a)
            ?.map(({ type, status }) => `${type}=${status}`)
            .sort(),
          wanted,
        ),
      );
      expect(found?.status?.conditions?.find(({ type }) => type === 'Progressing')?.reason).toBe('Completed');
      expect(found?.status?.namespace).toBe(argocd);
    }));

  test('what runs on a managed cluster is what was delivered, and belongs to the work', () =>
    each(async (name, { cluster }) => {
      const works = await fleet.hub.client.list(ocmManifestWorks, { namespace: name });
      expect(works.map(({ metadata }) => metadata.name).sort()).toEqual(
        [`${addOn}-agent`, `${addOn}-argocd`, `${addOn}-crds`].sort(),
      );
      const records = await cluster.client.list(appliedManifestWorks);
      const live = await cluster.client.list(deployments, { namespace: argocd });
      const delivered = works.flatMap((work) =>
        (work.spec.workload?.manifests ?? [])
          .filter(({ kind }) => kind === 'Deployment')
          .map((manifest) => ({ work: work.metadata.name, manifest })),
      );
      expect(live.map(({ metadata }) => metadata.name).sort()).toEqual(
        delivered.map(({ manifest }) => manifest.metadata.name).sort(),
      );
      const running = (await cluster.client.list(pods, { namespace: argocd })).filter(
        ({ status }) => status?.phase === 'Running',
      );
      for (const { work, manifest } of delivered) {
        const found = live.find(({ metadata }) => metadata.name === manifest.metadata.name);
        expect(found).toMatchObject({ spec: (manifest as { spec?: object }).spec });
        const record = records.find(({ spec }) => spec?.manifestWorkName === work);
        expect(found?.metadata.ownerReferences).toMatchObject([
          { kind: 'AppliedManifestWork', name: record?.metadata.name, uid: record?.metadata.uid },
        ]);
        const itsPods = running.filter(({ metadata }) => metadata.name.startsWith(`${manifest.metadata.name}-`));
        expect(itsPods.length, `running pods of ${manifest.metadata.name}`).toBeGreaterThan(0);
      }
    }));

  test("what runs there is what the restricted Pod Security Standard admits, hub's programs and clusters' alike", async () => {
    const clusters = [...fleet.members.values()].map(({ cluster }) => cluster);
    for (const { client } of [fleet.hub, ...clusters]) {
      const running = [
        ...(await client.list(deployments, { namespace: argocd })),
        ...(await client.list(statefulSets, { namespace: argocd })),
      ];
      expect(running.length).toBeGreaterThanOrEqual(4);
      const pods = running.map(({ metadata, spec }) => ({ of: metadata.name, spec: spec?.template?.spec as PodSpec }));
      expect(await restrictedRefusals(client, argocd, pods)).toEqual([]);
    }
  });

  test('the demo looks beforehand at every port that a pod or a Service has', async ({ skip }) => {
    skip(!fleet.local, 'clusters of another provider have networks of their own');
    const all = [fleet.hub, ...[...fleet.members.values()].map(({ cluster }) => cluster)];
    const ports = await Promise.all(
      all.map(async ({ client }) => [
        ...(await client.list(kubeletPods)).flatMap(({ spec }) => spec.containers.flatMap((one) => one.ports ?? [])),
        ...(await client.list(services)).flatMap(({ spec }) => spec?.ports ?? []),
      ]),
    );
    const used = ports
      .flat()
      .map((one) => ('containerPort' in one ? one.containerPort : (one as { port: number }).port));
    expect(used.filter((port) => !fleetPorts.includes(port))).toEqual([]);
  });

  test("an agent's certificate is the one that its cluster requested, and its key is nowhere on the hub", async () => {
    const authority = secretText(await hubSecret('argocd-agent-ca'), 'tls.crt') ?? '';
    const certificates = new Set<string>();
    await each(async (name, { cluster }) => {
      const own = await cluster.client.get(secrets, { namespace: argocd, name: clientSecret });
      const onHub = [
        await fleet.hub.client.list(secrets),
        await fleet.hub.client.list(ocmManifestWorks),
        await fleet.hub.client.list(certificateSigningRequests),
      ];
      expect(JSON.stringify(onHub)).not.toContain(own?.data?.['tls.key'] ?? '"');
      expect(Object.keys((await hubSecret(`${addOn}-${name}`)) ?? {}).sort()).toEqual([
        'redis-password',
        'server.secretkey',
      ]);
      const certificate = secretText(own?.data, 'tls.crt') ?? '';
      certificates.add(certificate);
      expect(isIssuedBy(certificate, authority)).toBe(true);
      expect(inspectCertificate(certificate).commonName).toBe(
        `system:open-cluster-management:cluster:${name}:addon:${addOn}:agent:${addOn}-agent`,
      );
      const trusted = await cluster.client.get(secrets, { namespace: argocd, name: 'argocd-agent-ca' });
      expect(secretText(trusted?.data, 'ca.crt')?.trim()).toBe(authority.trim());
      const everything = JSON.stringify(await cluster.client.list(secrets));
      const authorityKey = (await hubSecret('argocd-agent-ca'))?.['tls.key'] ?? 'missing';
      expect(everything).not.toContain(authorityKey);
    });
    expect(certificates.size).toBe(2);
  });

  test("ocm defect M4: the hub's Argo CD knows each cluster, through the resource proxy", () =>
    each(async (name) => {
      const found = await fleet.hub.client.get(secrets, { namespace: argocd, name: `cluster-${name}` });
      expect(found?.metadata.labels).toMatchObject({
        'argocd.argoproj.io/secret-type': 'cluster',
        'argocd-agent.argoproj-labs.io/agent-name': name,
      });
      expect(secretText(found?.data, 'name')).toBe(name);
      expect(secretText(found?.data, 'server')).toBe(`https://argocd-agent-resource-proxy:9090?agentName=${name}`);
      const { tlsClientConfig } = JSON.parse(secretText(found?.data, 'config') ?? '');
      const authority = secretText(await hubSecret('argocd-agent-ca'), 'tls.crt') ?? '';
      const certificate = Buffer.from(tlsClientConfig.certData, 'base64').toString();
      expect(tlsClientConfig.insecure).toBe(false);
      expect(isIssuedBy(certificate, authority)).toBe(true);
      expect(inspectCertificate(certificate).commonName).toBe(name);
    }));

  test('kubectl get shows how things stand', async () => {
    const rows = await table(fleet.hub.client, fleetGitOpsClusters, argocd);
    expect(rows).toEqual([
      expect.objectContaining({
        Name: 'gitops-cluster',
        Ready: 'True',
        Placement: 'placement',
        Selected: 2,
        Enrolled: 2,
        Connected: 2,
      }),
    ]);
    expect(rows[0]).toMatchObject({ Mode: 'managed', Age: expect.stringMatching(/^\d+[ms](\d+s)?$/) });
    for (const name of names()) {
      const [row] = await table(fleet.hub.client, managedClusterAddOns, name);
      expect(row).toMatchObject({ Name: addOn, Available: 'True' });
    }
  });
});

describe('an ApplicationSet over the Placement', () => {
  test('gives each cluster its Application, Synced and Healthy on the hub', async () => {
    const { hub, git } = fleet;
    await hub.client.create(fleetApplicationSets, guestbookSet(git.url(guestbookRepository)));
    const all = await waitForObjects(
      hub.client,
      fleetApplications,
      { namespace: argocd, ...generous },
      (found) => found.length === 2 && found.every(isSyncedAndHealthy),
    );
    expect(all.map(({ metadata }) => metadata.name).sort()).toEqual(names().map((name) => `guestbook-${name}`));
    await each(async (name, { cluster }) => {
      const onHub = all.find(({ metadata }) => metadata.name === `guestbook-${name}`);
      const copy = await cluster.client.get(fleetApplications, appOf(name));
      expect(copy?.spec).toEqual({
        ...onHub?.spec,
        destination: { name: 'in-cluster', namespace: guestbookRepository },
      });
      expect(copy?.metadata.annotations).toMatchObject({ 'argocd.argoproj.io/source-uid': onHub?.metadata.uid });
      const greeting = await cluster.client.get(configMaps, { namespace: guestbookRepository, name: 'greeting' });
      expect(greeting?.data).toEqual({ text: 'Hello' });
      await waitForObject(
        cluster.client,
        deployments,
        { namespace: guestbookRepository, name: 'guestbook' },
        (d) => d?.status?.availableReplicas === 1,
      );
      expect(await cluster.client.list(fleetApplications)).toHaveLength(1);
    });
    expect(await hub.client.get(namespaces, { name: guestbookRepository })).toBeUndefined();
  });

  test('a commit is deployed everywhere when the hub asks for a refresh, and its revision shows on the hub', async () => {
    const { hub, git } = fleet;
    const revision = await git.commit(guestbookRepository, guestbookFiles('Hello again'), 'Another greeting');
    await each(async (name, { cluster }) => {
      const refresh = { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } };
      await hub.client.mergePatch(fleetApplications, appOf(name), refresh);
      await waitForObject(
        cluster.client,
        configMaps,
        { namespace: guestbookRepository, name: 'greeting' },
        (c) => c?.data?.text === 'Hello again',
      );
      await onHub(
        name,
        (a) =>
          a?.status?.sync?.revision === revision &&
          isSyncedAndHealthy(a) &&
          a.metadata.annotations?.['argocd.argoproj.io/refresh'] === undefined,
      );
    });
  });

  test('an edit on the hub reaches the cluster, one made there is undone', async () => {
    const [name, { cluster }] = first();
    const { hub } = fleet;
    const info = [{ name: 'edited', value: 'on the hub' }];
    const set = { namespace: argocd, name: 'guestbook' };
    await hub.client.mergePatch(fleetApplicationSets, set, { spec: { template: { spec: { info } } } });
    await each(async (edited, { cluster: { client } }) => {
      await onManaged(client, edited, (a) => JSON.stringify(a?.spec?.info) === JSON.stringify(info));
    });
    await cluster.client.mergePatch(fleetApplications, appOf(name), {
      spec: { source: { path: 'else' }, destination: { namespace: 'else' }, info: null, syncPolicy: null },
    });
    const undone = await onManaged(cluster.client, name, (a) => a?.spec?.source?.path === 'app');
    const kept = await hub.client.get(fleetApplications, appOf(name));
    expect(undone?.spec).toEqual({
      ...kept?.spec,
      destination: { name: 'in-cluster', namespace: guestbookRepository },
    });
    expect(kept?.spec).toMatchObject({ source: { path: 'app' }, info, syncPolicy: { automated: { prune: true } } });
    await onHub(name, isSyncedAndHealthy);
  });

  test('what someone deletes on the cluster comes back: the Application, and what it deployed', async () => {
    const [name, { cluster }] = first();
    const greeting = { namespace: guestbookRepository, name: 'greeting' };
    await cluster.client.delete(configMaps, greeting);
    await waitForObject(cluster.client, configMaps, greeting, (c) => c !== undefined);
    const before = await cluster.client.get(fleetApplications, appOf(name));
    await cluster.client.delete(fleetApplications, appOf(name));
    await onManaged(cluster.client, name, (a) => a !== undefined && a.metadata.uid !== before?.metadata.uid);
    await onHub(name, isSyncedAndHealthy);
    await onManaged(cluster.client, name, isSyncedAndHealthy);
  });

  test('the clusters change to keys of the hub and back: each agent is connected again, and the former key is gone', async () => {
    const { hub } = fleet;
    for (const [clientCertificate, used, former] of [
      ['Generated', deliveredSecret, clientSecret],
      ['CSR', clientSecret, deliveredSecret],
    ] as const) {
      const begin = Date.now();
      const setting = { spec: { argoCDAgentAddon: { clientCertificate } } };
      await hub.client.mergePatch(fleetGitOpsClusters, { namespace: argocd, name: 'gitops-cluster' }, setting);
      await each(async (name, { cluster: { client } }) => {
        const key = { namespace: argocd, name: used };
        const own = await waitForObject(client, secrets, key, (s) => s?.data?.['tls.key'] !== undefined, generous);
        await waitForObject(client, secrets, { namespace: argocd, name: former }, (s) => s === undefined, generous);
        const lease = { namespace: argocd, name: `argocd-agent-${name}` };
        await waitForObject(
          hub.client,
          leases,
          lease,
          (found) =>
            found?.metadata.annotations?.['argocd-agent.argoproj-labs.io/connected'] === 'true' &&
            Date.parse(found.spec?.acquireTime ?? '') > begin,
          generous,
        );
        const works = JSON.stringify(await hub.client.list(ocmManifestWorks, { namespace: name }));
        expect(works.includes(own?.data?.['tls.key'] ?? ''), name).toBe(clientCertificate === 'Generated');
        expect(works.includes('"tls.key":'), name).toBe(clientCertificate === 'Generated');
        await onManaged(client, name, isSyncedAndHealthy);
      });
    }
  });

  test('a hub that is lost and restored from a backup finds every workload as it was', async () => {
    const { hub } = fleet;
    const workloads = await eachWorkload();
    const set = (await hub.client.get(fleetApplicationSets, { namespace: argocd, name: 'guestbook' })) as KubeObject;
    const applications = await hub.client.list(fleetApplications, { namespace: argocd });
    const identity = (await hub.client.get(configMaps, identityKey)) as KubeObject;

    await scalePrincipal(0);
    await hub.client.delete(fleetApplicationSets, set.metadata, { propagationPolicy: 'Orphan' });
    await waitForObject(hub.client, fleetApplicationSets, set.metadata, (found) => found === undefined);
    for (const { metadata } of applications) {
      await hub.client.mergePatch(fleetApplications, metadata, { metadata: { finalizers: null } });
      await hub.client.delete(fleetApplications, metadata);
    }
    await hub.client.delete(configMaps, identityKey);

    // The principal runs before its Applications are there again.
    await hub.client.create(configMaps, backedUp(identity));
    await scalePrincipal(1);
    await waitForObjects(hub.client, events, { namespace: argocd, ...generous }, (found) => {
      const kept = found.filter(({ reason }) => reason === 'ApplicationKept').map(({ note }) => note ?? '');
      return names().every((name) => kept.some((note) => note.includes(`guestbook-${name}`)));
    });
    for (const application of applications) {
      await hub.client.create(fleetApplications, backedUp(application));
    }
    await hub.client.create(fleetApplicationSets, backedUp(set));

    await each(async (name, { cluster }) => {
      const restored = await onHub(name, isSyncedAndHealthy);
      const copy = await onManaged(
        cluster.client,
        name,
        (one) => one?.metadata.annotations?.['argocd.argoproj.io/source-uid'] === restored?.metadata.uid,
      );
      expect(copy?.metadata.deletionTimestamp).toBeUndefined();
    });
    expect(await eachWorkload()).toEqual(workloads);
  });

  test('when the hub Application goes, so does what it deployed', async () => {
    const [, { cluster }] = first();
    const { hub } = fleet;
    await hub.client.delete(fleetApplicationSets, { namespace: argocd, name: 'guestbook' });
    await waitForObjects(hub.client, fleetApplications, { namespace: argocd, ...generous }, (all) => all.length === 0);
    await waitForObjects(cluster.client, fleetApplications, { namespace: argocd }, (all) => all.length === 0);
  });
});

describe('settings of the clusters, on the hub', () => {
  const key = { namespace: argocd, name: 'gitops-cluster' };
  const hello = {
    spec: { generate: { command: ['sh', '-c'], args: ['printf "%s" "$MANIFEST"'] } },
    env: [
      { name: 'MANIFEST', value: '{apiVersion: v1, kind: ConfigMap, metadata: {name: hello}, data: {by: plugin}}' },
    ],
  };
  const set = (clusterSettings: object | null) => {
    const rolloutStrategy = { type: 'Progressive', progressive: { maxConcurrency: 1 } };
    return fleet.hub.client.mergePatch(fleetGitOpsClusters, key, {
      spec: { argoCDAgentAddon: { rolloutStrategy, clusterSettings } },
    });
  };
  const rolledOut = (says: RegExp) =>
    waitForObjects(fleet.hub.client, fleetGitOpsClusters, generous, ([g]) => {
      const said: { status: string; message: string; observedGeneration?: number } | undefined =
        g?.status?.conditions?.find(({ type }) => type === 'ClustersUpToDate');
      return said?.status === 'True' && said.observedGeneration === g?.metadata.generation && says.test(said.message);
    });
  const paramsOf = async ({ cluster: { client } }: SharedMember) =>
    (await client.get(configMaps, { namespace: argocd, name: 'argocd-agent-params' }))?.data;

  test("reach Argo CD and the agents, with a plugin that makes an Application's manifests", async () => {
    const { hub, git } = fleet;
    await set({
      plugins: { hello },
      config: { 'kustomize.buildOptions': '--enable-helm' },
      params: { 'controller.status.processors': '7', 'reposerver.paralelism.limit': '1' },
      agentParams: { 'agent.log.level': 'debug', 'agent.compression.enabled': 'true' },
    });
    await rolledOut(/^2 of 2 clusters have .*, settings [0-9a-f]{8}$/);
    await each(async (_, member) => {
      expect(await paramsOf(member)).toMatchObject({ 'agent.log.level': 'debug' });
      const config = await member.cluster.client.get(configMaps, { namespace: argocd, name: 'argocd-cm' });
      expect(config?.data).toMatchObject({ 'kustomize.buildOptions': '--enable-helm' });
    });
    const [g] = await hub.client.list(fleetGitOpsClusters);
    expect(g?.status?.conditions?.find(({ type }) => type === 'ClusterSettingsRead')).toMatchObject({
      status: 'False',
      reason: 'UnknownParameters',
      message: expect.stringContaining('reads [params.reposerver.paralelism.limit]: look at the spelling'),
    });
    const [name, { cluster }] = first();
    const source = {
      repoURL: git.url(guestbookRepository),
      path: 'app',
      targetRevision: 'main',
      plugin: { name: 'hello' },
    };
    await hub.client.create(fleetApplications, {
      metadata: { namespace: argocd, name: 'hello', finalizers: ['resources-finalizer.argocd.argoproj.io'] },
      spec: { project: 'default', source, destination: { name, namespace: 'default' }, syncPolicy: { automated: {} } },
    });
    await waitForObject(hub.client, fleetApplications, { namespace: argocd, name: 'hello' }, isSyncedAndHealthy);
    const made = await cluster.client.get(configMaps, { namespace: 'default', name: 'hello' });
    expect(made?.data).toEqual({ by: 'plugin' });
    await hub.client.delete(fleetApplications, { namespace: argocd, name: 'hello' });
    await waitForObject(
      hub.client,
      fleetApplications,
      { namespace: argocd, name: 'hello' },
      (one) => one === undefined,
    );
  });

  // Clusters of kind do not reach a load balancer of another one.
  test("take the hub's repo server, so that the clusters need none", { tags: 'local-clusters' }, async () => {
    const { hub, git } = fleet;
    const service = { namespace: argocd, name: 'argocd-repo-server' };
    const isRepoServer = ({ metadata }: KubeObject) => metadata.name.startsWith('argocd-repo-server-');
    await hub.client.mergePatch(services, service, { spec: { type: 'LoadBalancer' } });
    const addressOf = (found: Service | undefined) => found?.status?.loadBalancer?.ingress?.[0]?.ip;
    const exposed = await waitForObject(hub.client, services, service, (found) => addressOf(found) !== undefined);
    await set({ replicas: { repoServer: 0 } });
    const message = 'the clusters have no program that makes manifests; set one of them';
    await waitForObjects(hub.client, fleetGitOpsClusters, generous, ([g]) =>
      Boolean(
        g?.status?.conditions?.some((one) => one.type === 'ClusterSettingsRead' && one.message.includes(message)),
      ),
    );
    await set({ params: { 'repo.server': `${addressOf(exposed)}:8081` }, replicas: { repoServer: 0 } });
    await rolledOut(/^2 of 2 clusters have .*, settings [0-9a-f]{8}$/);
    await each(async (_, { cluster }) => {
      await waitForObjects(cluster.client, pods, { namespace: argocd, ...generous }, (all) => !all.some(isRepoServer));
    });
    const [name, { cluster }] = first();
    const key = { namespace: argocd, name: 'shared' };
    const source = { repoURL: git.url(guestbookRepository), path: 'app', targetRevision: 'main' };
    await hub.client.create(fleetApplications, {
      metadata: { ...key, finalizers: ['resources-finalizer.argocd.argoproj.io'] },
      spec: {
        project: 'default',
        source,
        destination: { name, namespace: 'shared' },
        syncPolicy: { automated: {}, syncOptions: ['CreateNamespace=true'] },
      },
    });
    await waitForObject(hub.client, fleetApplications, key, isSyncedAndHealthy);
    expect(await cluster.client.get(deployments, { namespace: 'shared', name: 'guestbook' })).toBeDefined();
    await hub.client.delete(fleetApplications, key);
    await waitForObject(hub.client, fleetApplications, key, (one) => one === undefined);
    await set(null);
    await rolledOut(/^2 of 2 clusters have [^;]*$/);
    await hub.client.mergePatch(services, service, { spec: { type: 'ClusterIP' } });
  });

  test('that no agent can start with stop at the first cluster, and it recovers with right ones', async () => {
    const level = { 'agent.log.level': 'loud' };
    await set({ agentParams: level });
    const hasWrong = async () => {
      const all = await Promise.all([...fleet.members.values()].map(paramsOf));
      return all.filter((data) => data?.['agent.log.level'] === level['agent.log.level']).length;
    };
    // The new agent has ended: only then the rollout could have gone on by mistake.
    await Promise.any(
      [...fleet.members.values()].map(({ cluster: { client } }) =>
        waitForObjects(client, pods, { namespace: argocd, ...generous }, (found) =>
          found.some(
            ({ metadata, status }) =>
              metadata.name.startsWith('argocd-agent-agent-') &&
              status?.containerStatuses?.some(({ restartCount = 0 }) => restartCount > 0),
          ),
        ),
      ),
    );
    expect(await hasWrong()).toBe(1);
    await set(null);
    await rolledOut(/^2 of 2 clusters have [^;]*$/);
    expect(await hasWrong()).toBe(0);
    await waitForObjects(
      fleet.hub.client,
      fleetGitOpsClusters,
      generous,
      ([g]) => g?.status?.clusters?.connected === 2 && g.status.clusters.available === 2,
    );
  });

  test('with credentials are refused by name, and the clusters keep what they have', async () => {
    await set({ config: { 'webhook.github.secret': 'hunter2' } });
    const [g] = await waitForObjects(fleet.hub.client, fleetGitOpsClusters, generous, ([one]) =>
      Boolean(
        one?.status?.conditions?.some(
          ({ type, status, message }) =>
            type === 'ManifestWorkCreated' && status === 'False' && message.includes('looks like a credential'),
        ),
      ),
    );
    expect(JSON.stringify(g?.status)).toContain('clusterSettings.config.webhook.github.secret looks like a credential');
    expect(JSON.stringify(g?.status)).not.toContain('hunter2');
    await set(null);
    await rolledOut(/^2 of 2/);
  });
});

// Nobody has such an image: only processes of this machine run under any name.
describe("a new version of the hub's Argo CD", { tags: 'local-clusters' }, () => {
  const image = 'quay.io/argoproj/argocd:v3.2.99';
  const imageOf = (spec: { template?: { spec?: PodSpec } } | undefined) => spec?.template?.spec?.containers[0]?.image;

  test('reaches one cluster after the other, each when the one before runs it', async () => {
    const { hub } = fleet;
    const server = { namespace: argocd, name: 'argocd-server' };
    const [container] = (await hub.client.get(deployments, server))?.spec?.template?.spec?.containers ?? [];
    const containers = [{ ...container, image }];
    await hub.client.apply(deployments, { metadata: server, spec: { template: { spec: { containers } } } } as never, {
      fieldManager: 'user',
      force: true,
    });
    await waitForObjects(hub.client, fleetGitOpsClusters, generous, ([g]) => {
      const said = g?.status?.conditions?.find(({ type }) => type === 'ClustersUpToDate');
      return said?.status === 'True' && said.message.includes(image);
    });
    const since: string[] = [];
    await each(async (name, { cluster }) => {
      const controller = { namespace: argocd, name: 'argocd-application-controller' };
      const found = await cluster.client.get(statefulSets, controller);
      expect(imageOf(found?.spec), name).toBe(image);
      const work = await hub.client.get(ocmManifestWorks, { namespace: name, name: `${addOn}-argocd` });
      since.push(work?.metadata.annotations?.['apps.open-cluster-management.io/updated-at'] ?? '');
    });
    expect(new Set(since).size).toBe(fleet.members.size);
    expect(since).not.toContain('');
  });
});

function first(): [string, SharedMember] {
  const [entry] = fleet.members;
  if (!entry) {
    throw new Error('the fleet has no managed cluster');
  }
  return entry;
}

const onHub = (cluster: string, accept: (a: FleetApplication | undefined) => boolean) =>
  waitForObject(fleet.hub.client, fleetApplications, appOf(cluster), accept);
const onManaged = (client: KubeClient, cluster: string, accept: (a: FleetApplication | undefined) => boolean) =>
  waitForObject(client, fleetApplications, appOf(cluster), accept);

/** What `kubectl get -o wide` shows of a namespace: a record per row, by column. */
async function table(client: KubeClient, type: ResourceType, namespace: string): Promise<Record<string, unknown>[]> {
  const path = `/apis/${type.group}/${type.version}/namespaces/${namespace}/${type.plural}`;
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const response = await client.request(path, { headers: { accept } });
  const { columnDefinitions, rows } = JSON.parse(await response.body.text()) as {
    columnDefinitions: { name: string }[];
    rows: { cells: unknown[] }[];
  };
  return rows.map(({ cells }) => Object.fromEntries(columnDefinitions.map(({ name }, i) => [name, cells[i]])));
}

/** The copies on the clusters and what they deployed: the objects themselves, and how often their containers started. */
async function eachWorkload(): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  await each(async (name, { cluster: { client } }) => {
    const namespace = guestbookRepository;
    const [copy, greeting, deployment, all] = await Promise.all([
      client.get(fleetApplications, appOf(name)),
      client.get(configMaps, { namespace, name: 'greeting' }),
      client.get(deployments, { namespace, name: 'guestbook' }),
      client.list(pods, { namespace }),
    ]);
    found[name] = {
      objects: [copy, greeting, deployment].map((one) => one?.metadata.uid),
      pods: all.map(({ metadata, status }) => [
        metadata.uid,
        status?.containerStatuses?.map((one) => one.restartCount),
      ]),
    };
  });
  return found;
}

/** What a backup holds of an object: no status, and no name of the API server that had it. */
function backedUp<T extends KubeObject>({ metadata, ...rest }: T): T {
  const { name, namespace, labels, annotations, finalizers } = metadata;
  const { status: _, ...body } = rest as { status?: unknown };
  return { ...body, metadata: { name, namespace, labels, annotations, finalizers } } as T;
}

async function scalePrincipal(replicas: number): Promise<void> {
  const key = { namespace: argocd, name: 'argocd-agent-principal' };
  await fleet.hub.client.mergePatch(deployments, key, { spec: { replicas } });
  await waitForObject(
    fleet.hub.client,
    deployments,
    key,
    (found) => (found?.status?.availableReplicas ?? 0) === replicas,
  );
}
