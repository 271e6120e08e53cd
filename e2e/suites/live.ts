import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  configMaps,
  deployments,
  type KubeClient,
  type KubeObject,
  type ObjectKey,
  resourceType,
} from '../../lib/kube/index.ts';
import { ArgoCdApi, ArgoCdCli, ArgoCdTerminal, adminPassword, argoCdAddress } from '../argocd/index.ts';
import { applications, isSyncedAndHealthy, waitForObject } from '../fleet/index.ts';
import type { TwoModes } from './two-modes.ts';

/** The namespace that the looked-at Applications deploy into, on either cluster. */
const ticker = 'ticker';
const settings = { namespace: ticker, name: 'settings' };
const generous = { timeout: 240_000, interval: 200 };

const tickerFiles = {
  'app/settings.yaml': `apiVersion: v1
kind: ConfigMap
metadata: { name: settings }
data: { colour: red }
`,
  'app/deployment.yaml': `apiVersion: apps/v1
kind: Deployment
metadata: { name: ticker }
spec:
  replicas: 1
  selector: { matchLabels: { app: ticker } }
  template:
    metadata: { labels: { app: ticker } }
    spec:
      terminationGracePeriodSeconds: 5
      containers:
        - name: ticker
          image: docker.io/library/busybox:1.37
          command: [sh, -c, 'trap "exit 0" TERM; i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 1; done']
`,
};

interface ResourceNode {
  kind: string;
  name: string;
  namespace?: string;
  uid: string;
  health?: { status: string };
}
interface Tree {
  nodes?: ResourceNode[];
}
interface ClusterList {
  items: {
    name: string;
    connectionState: { status: string; message: string };
    serverVersion?: string;
    info: { applicationsCount?: string; cacheInfo?: { resourcesCount?: string; apisCount?: string } };
  }[];
}
const podType = resourceType<KubeObject>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true });

const appProjects = resourceType({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'AppProject',
  plural: 'appprojects',
  namespaced: true,
});
const everythingAllowed = {
  metadata: { namespace: 'argocd', name: 'default' },
  spec: {
    sourceRepos: ['*'],
    destinations: [{ server: '*', namespace: '*' }],
    clusterResourceWhitelist: [{ group: '*', kind: '*' }],
  },
};

/** One of the two ways that an Application gets to its cluster. */
interface Way {
  readonly cluster: string;
  /** The Application on the hub. */
  readonly key: ObjectKey;
  readonly project: string;
  /** The cluster itself, to see what is true. */
  readonly far: () => KubeClient;
}

/** What users see and do through the hub's Argo CD server, its API and its command, on clusters behind agents. */
export function describeLive(get: () => TwoModes): void {
  describe('through the hub’s Argo CD', () => {
    let api: ArgoCdApi;
    let cli: ArgoCdCli;
    const ways: Way[] = [
      { cluster: 'cluster1', key: { namespace: 'argocd', name: ticker }, project: 'default', far: () => get().managed },
      {
        cluster: 'cluster2',
        key: { namespace: 'cluster2', name: ticker },
        project: 'cluster2-default',
        far: () => get().autonomous,
      },
    ];

    beforeAll(async () => {
      const { fleet, hub, autonomous } = get();
      if (!fleet.local) return;
      await fleet.git.commit(ticker, tickerFiles, 'A ticker');
      const source = { repoURL: fleet.git.url(ticker), path: 'app', targetRevision: 'main' };
      const spec = (destination: object) => ({
        project: 'default',
        source,
        destination: { ...destination, namespace: ticker },
        // What users change stays changed until they synchronise.
        syncPolicy: { automated: { prune: true }, syncOptions: ['CreateNamespace=true'] },
      });
      const metadata = { namespace: 'argocd', name: ticker };
      await autonomous.apply(appProjects, everythingAllowed, { fieldManager: 'test', force: true });
      await hub.create(applications, { metadata, spec: spec({ name: 'cluster1' }) });
      await autonomous.create(applications, { metadata, spec: spec({ name: 'in-cluster' }) });
      const terminals = { 'exec.enabled': 'true' };
      await hub.mergePatch(configMaps, { namespace: 'argocd', name: 'argocd-cm' }, { data: terminals });
      const address = await argoCdAddress(fleet.local);
      api = await ArgoCdApi.login(address, 'admin', await adminPassword(hub));
      cli = new ArgoCdCli(api, fleet.folder);
      for (const { key } of ways) {
        await waitForObject(hub, applications, key, isSyncedAndHealthy, { timeoutMs: 240_000 });
      }
    });
    afterAll(async () => {
      api?.close();
      const { fleet, hub, autonomous } = get();
      if (!fleet.local) return;
      // One that its cluster owns stays when the fleet is given up, and with it the namespace.
      const key = { namespace: 'argocd', name: ticker };
      await Promise.all([hub, autonomous].map((owner) => owner.delete(applications, key)));
      for (const { key: onHub } of ways) await waitForObject(hub, applications, onHub, (found) => found === undefined);
    });
    beforeEach(({ skip }) =>
      skip(!get().fleet.local, 'this machine reaches the API server of Argo CD on its own clusters only'),
    );

    const nodesOf = async (key: ObjectKey) => (await api.get<Tree>(`${of(key)}/resource-tree${at(key)}`)).nodes ?? [];
    /** The pod that the tree shows, once it is the one that runs. */
    const podOf = ({ key }: Way) =>
      vi.waitFor(async () => {
        const found = (await nodesOf(key)).filter(({ kind, health }) => kind === 'Pod' && health?.status === 'Healthy');
        expect(found).toHaveLength(1);
        return found[0] as ResourceNode;
      }, generous);
    const live = async ({ key }: Way, node: Where) =>
      JSON.parse(
        (await api.get<{ manifest: string }>(`${of(key)}/resource${where(key, node)}`)).manifest,
      ) as KubeObject;
    const stateOf = async (cluster: string) =>
      (await api.get<ClusterList>('/api/v1/clusters')).items.find((item) => item.name === cluster);

    /** An attempt fails when the cluster's Argo CD has no repo server just then. */
    const synchronise = (name: string) => vi.waitFor(() => cli.print('app', 'sync', name, '--timeout', '60'), generous);

    describe.each(ways)('an Application of $cluster', (way) => {
      const { key, far } = way;
      const name = `${key.namespace}/${key.name}`;

      test('shows its tree, and every live manifest in it', async () => {
        const pod = await podOf(way);
        const kinds = (await nodesOf(key)).map(({ kind }) => kind);
        expect(kinds).toEqual(expect.arrayContaining(['ConfigMap', 'Deployment', 'ReplicaSet', 'Pod']));
        expect((await live(way, pod)).metadata.uid).toBe(pod.uid);
        const deployment = await far().get(deployments, { namespace: ticker, name: ticker });
        expect((await live(way, tickerDeployment)).metadata.uid).toBe(deployment?.metadata.uid);
        expect(await cli.print('app', 'resources', name)).toMatch(/Deployment\s+ticker\s+ticker/);
        const manifests = await cli.print('app', 'manifests', name, '--source', 'live');
        expect(manifests).toContain('kind: Deployment');
        expect(manifests).toContain(`uid: ${deployment?.metadata.uid}`);
      });

      test('shows what happened to an object, and what its pod prints, as it prints it', async () => {
        const pod = await podOf(way);
        const about = `resourceNamespace=${ticker}&resourceName=${pod.name}&resourceUID=${pod.uid}`;
        const events = await api.get<{ items: { reason: string }[] }>(`${of(key)}/events${at(key)}&${about}`);
        expect(events.items.map(({ reason }) => reason)).toContain('Started');
        const follow = ['app', 'logs', name, '--follow', '--tail', '1', '--kind', 'Deployment', '--name', ticker];
        await cli.until((printed) => new Set(printed.match(/tick \d+/g)).size >= 3, ...follow);
        const tail = await cli.print('app', 'logs', name, '--tail', '2', '--kind', 'Pod', '--name', pod.name);
        expect(tail.match(/tick \d+/g)).toHaveLength(2);
      });

      test('has terminals: a shell in the container, as large as the page, until the user leaves it', async () => {
        const pod = await podOf(way);
        const place = { pod: pod.name, container: ticker, namespace: ticker, projectName: way.project };
        const app = { appName: key.name, appNamespace: key.namespace ?? '' };
        const terminal = await ArgoCdTerminal.open(api, { ...place, ...app });
        terminal.resize(33, 99);
        terminal.type('echo "$((6 * 7)) ticks"; stty size\n');
        await terminal.shows('42 ticks');
        await terminal.shows('33 99');
        terminal.type('exit\n');
        await terminal.closed;
      });

      test('lets an object be edited, shows the difference, and synchronises it away', async () => {
        const edit = JSON.stringify({ data: { colour: 'blue' } });
        const type = `patchType=${encodeURIComponent('application/merge-patch+json')}`;
        await api.call('POST', `${of(key)}/resource${where(key, tickerSettings)}&${type}`, edit);
        expect((await far().get(configMaps, settings))?.data).toEqual({ colour: 'blue' });
        const { code, stdout, stderr } = await cli.run('app', 'diff', name, '--refresh');
        expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
        expect(stdout).toMatch(/<\s+colour: blue[\s\S]*>\s+colour: red/);
        await synchronise(name);
        expect((await far().get(configMaps, settings))?.data).toEqual({ colour: 'red' });
        expect((await cli.run('app', 'diff', name, '--refresh')).code).toBe(0);
      });

      test('lets an object be deleted', async () => {
        await cli.print('app', 'delete-resource', name, '--kind', 'ConfigMap', '--resource-name', settings.name);
        await waitForObject(far(), configMaps, settings, (found) => found === undefined);
        await synchronise(name);
        await waitForObject(far(), configMaps, settings, (found) => found !== undefined);
      });

      test('has the actions of its objects: a Deployment is restarted, once', async () => {
        const before = await podOf(way);
        const query = where(key, tickerDeployment);
        const list = `${of(key)}/resource/actions${query}`;
        const { actions } = await api.get<{ actions: { name: string }[] }>(list);
        expect(actions.map((action) => action.name)).toContain('restart');
        const deployment = () => far().get(deployments, { namespace: ticker, name: ticker });
        const generation = (await deployment())?.metadata.generation ?? 0;
        await cli.print('app', 'actions', 'run', name, 'restart', '--kind', 'Deployment', '--resource-name', ticker);
        await waitForObject(far(), podType, { namespace: ticker, name: before.name }, (found) => found === undefined, {
          timeoutMs: 240_000,
        });
        expect((await deployment())?.metadata.generation).toBe(generation + 1);
        await vi.waitFor(async () => expect((await podOf(way)).uid).not.toBe(before.uid), generous);
      });

      test('counts in what Argo CD knows of the cluster', async () => {
        const cluster = await vi.waitFor(async () => {
          const found = await stateOf(way.cluster);
          expect(found?.connectionState.status).toBe('Successful');
          expect(Number(found?.info.applicationsCount)).toBeGreaterThan(0);
          expect(Number(found?.info.cacheInfo?.resourcesCount)).toBeGreaterThan(0);
          return found;
        }, generous);
        expect(cluster?.serverVersion).toMatch(/^v?1\.\d+/);
        const line = (await cli.print('cluster', 'list')).split('\n').find((text) => text.includes(way.cluster));
        expect(line).toMatch(/1\.\d+\s+Successful/);
      });
    });

    test('while the agents are away the UI shows what they said last, and news when they are back', async () => {
      const { network } = get();
      const pods = new Map<Way, ResourceNode>();
      for (const way of ways) pods.set(way, await podOf(way));
      const watching = new AbortController();
      const seen = new Map<Way, Set<string>>(ways.map((way) => [way, new Set()]));
      const watches = ways.map(async (way) => {
        const path = `/api/v1/stream/applications/${way.key.name}/resource-tree${at(way.key)}`;
        for await (const { nodes = [] } of api.stream<Tree>(path, watching.signal)) {
          for (const node of nodes) seen.get(way)?.add(node.uid);
        }
      });
      network.refuse();
      try {
        for (const way of ways) {
          await vi.waitFor(
            async () => expect((await stateOf(way.cluster))?.connectionState.status).toBe('Failed'),
            generous,
          );
          expect((await nodesOf(way.key)).map(({ uid }) => uid)).toContain(pods.get(way)?.uid);
          const managed = await api.get<{ items: { kind: string }[] }>(
            `${of(way.key)}/managed-resources${at(way.key)}`,
          );
          expect(managed.items.map(({ kind }) => kind).sort()).toEqual(['ConfigMap', 'Deployment']);
          await expect(live(way, tickerDeployment)).rejects.toThrow(way.cluster);
        }
      } finally {
        network.heal();
      }
      for (const way of ways) {
        await vi.waitFor(async () => expect((await live(way, tickerDeployment)).metadata.name).toBe(ticker), generous);
        const before = pods.get(way) as ResourceNode;
        await way.far().delete(podType, { namespace: ticker, name: before.name });
        const after = await vi.waitFor(async () => {
          const pod = await podOf(way);
          expect(pod.uid).not.toBe(before.uid);
          return pod;
        }, generous);
        await vi.waitFor(() => expect(seen.get(way)).toContain(after.uid), generous);
      }
      watching.abort();
      await Promise.all(watches);
    });

    test('what a user may not do with an Application, nobody does for them', async () => {
      const { hub } = get();
      const [way] = ways as [Way];
      await hub.mergePatch(
        configMaps,
        { namespace: 'argocd', name: 'argocd-cm' },
        { data: { 'accounts.viewer': 'apiKey' } },
      );
      await hub.mergePatch(
        configMaps,
        { namespace: 'argocd', name: 'argocd-rbac-cm' },
        { data: { 'policy.csv': 'p, viewer, applications, get, default/*, allow\n' } },
      );
      const { token } = await vi.waitFor(
        () => api.call<{ token: string }>('POST', '/api/v1/account/viewer/token', { name: 'viewer' }),
        generous,
      );
      const viewer = new ArgoCdApi(api.address, token);
      const query = where(way.key, tickerDeployment);
      await vi.waitFor(() => viewer.get(`${of(way.key)}/resource${query}`), generous);
      const type = `patchType=${encodeURIComponent('application/merge-patch+json')}`;
      const pod = (await podOf(way)).name;
      const attempts = [
        viewer.call('POST', `${of(way.key)}/resource${query}&${type}`, JSON.stringify({ spec: { replicas: 0 } })),
        viewer.call('DELETE', `${of(way.key)}/resource${query}`),
        viewer.call('POST', `${of(way.key)}/resource/actions${query}`, 'restart'),
        viewer.get(`${of(way.key)}/logs${at(way.key)}&namespace=${ticker}&podName=x&container=ticker`),
        viewer.get(`/api/v1/applications/${ticker}/resource-tree?appNamespace=cluster2`),
        ArgoCdTerminal.open(viewer, {
          ...{ pod, container: ticker, namespace: ticker, projectName: way.project },
          ...{ appName: ticker, appNamespace: 'argocd' },
        }),
      ];
      const denied = await Promise.allSettled(attempts);
      for (const result of denied)
        expect(result).toMatchObject({
          status: 'rejected',
          reason: { message: expect.stringMatching(/ 40[13]\b/) },
        });
      viewer.close();
    });
  });
}

interface Where {
  readonly kind: string;
  readonly name: string;
}
const tickerDeployment: Where = { kind: 'Deployment', name: ticker };
const tickerSettings: Where = { kind: 'ConfigMap', name: settings.name };

const of = ({ name }: ObjectKey) => `/api/v1/applications/${name}`;
const at = ({ namespace = '' }: ObjectKey) => `?appNamespace=${namespace}`;
const groups: Readonly<Record<string, string>> = { Deployment: 'apps', ReplicaSet: 'apps' };

function where(key: ObjectKey, { kind, name }: Where): string {
  const group = groups[kind] ?? '';
  return `${at(key)}&namespace=${ticker}&resourceName=${name}&group=${group}&version=v1&kind=${kind}`;
}
