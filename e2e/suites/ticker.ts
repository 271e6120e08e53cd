import { describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import {
  configMaps,
  deployments,
  type KubeClient,
  type KubeObject,
  type ObjectKey,
  resourceType,
} from '../../lib/kube/index.ts';
import { ArgoCdTerminal } from '../argocd/index.ts';
import { fleetApplications } from '../fleet/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { at, generous, type HubArgoCd, pathOf, where } from './hub-argocd.ts';

/** The Application that is looked at, and the namespace that it deploys into. */
export const ticker = 'ticker';
/** What it deploys. */
export const tickerFiles = {
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

/** The Deployment that it deploys. */
export const deployment = { kind: 'Deployment', name: ticker, namespace: ticker };
const settings = { kind: 'ConfigMap', name: 'settings', namespace: ticker };

/** The Application's specification; what users change stays changed until they synchronise. */
export const tickerSpec = (repoURL: string, cluster: string) => ({
  project: 'default',
  source: { repoURL, path: 'app', targetRevision: 'main' },
  destination: { name: cluster, namespace: ticker },
  syncPolicy: { automated: { prune: true }, syncOptions: ['CreateNamespace=true'] },
});

/** A pod. */
export const podType = resourceType<KubeObject>({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
});

/** One of the ways that an Application gets to its cluster. */
export interface TickerRoute {
  readonly cluster: string;
  /** The Application on the hub. */
  readonly key: ObjectKey;
  readonly project: string;
  /** The cluster itself, to see what is true. */
  readonly far: () => KubeClient;
}

/** What users see and do with the ticker of each cluster, through the hub's Argo CD. */
export function describeTickers(ways: readonly TickerRoute[], argoCd: () => HubArgoCd): void {
  describe.each(ways)('an Application of $cluster', (way) => {
    const { key, far } = way;
    const name = `${key.namespace}/${key.name}`;
    /** Its cluster's Argo CD has seen what was changed there. */
    const isOnHub = (status: string) =>
      waitForObject(argoCd().hub, fleetApplications, key, (found) => found?.status?.sync?.status === status);

    /** Of an agent that takes longer than Argo CD waits, the hub shows what it said last: then a user looks again. */
    const showsDifference = (code: number, text: RegExp) =>
      until(async () => {
        const shown = await argoCd().cli.run('app', 'diff', name, '--refresh');
        expect(shown).toEqual({ code, stdout: expect.stringMatching(text), stderr: '' });
      }, generous);

    test('shows its tree, and every live manifest in it', async () => {
      const pod = await argoCd().pod(key);
      const kinds = (await argoCd().nodes(key)).map(({ kind }) => kind);
      expect(kinds).toEqual(expect.arrayContaining(['ConfigMap', 'Deployment', 'ReplicaSet', 'Pod']));
      expect((await argoCd().live(key, pod)).metadata.uid).toBe(pod.uid);
      const applied = await far().get(deployments, { namespace: ticker, name: ticker });
      expect((await argoCd().live(key, deployment)).metadata.uid).toBe(applied?.metadata.uid);
      expect(await argoCd().cli.print('app', 'resources', name)).toMatch(/Deployment\s+ticker\s+ticker/);
      const manifests = await argoCd().cli.print('app', 'manifests', name, '--source', 'live');
      expect(manifests).toContain('kind: Deployment');
      expect(manifests).toContain(`uid: ${applied?.metadata.uid}`);
    });

    test('shows what happened to an object, and what its pod prints, as it prints it', async () => {
      const pod = await argoCd().pod(key);
      const about = `resourceNamespace=${ticker}&resourceName=${pod.name}&resourceUID=${pod.uid}`;
      // A pod may be known to be well before its events are.
      await until(async () => {
        const events = await argoCd().api.get<{ items: { reason: string }[] }>(
          `${pathOf(key)}/events${at(key)}&${about}`,
        );
        expect(events.items.map(({ reason }) => reason)).toContain('Started');
      }, generous);
      const follow = ['app', 'logs', name, '--follow', '--tail', '1', '--kind', 'Deployment', '--name', ticker];
      await argoCd().cli.until((printed) => new Set(printed.match(/tick \d+/g)).size >= 3, ...follow);
      const tail = await argoCd().cli.print('app', 'logs', name, '--tail', '2', '--kind', 'Pod', '--name', pod.name);
      expect(tail.match(/tick \d+/g)).toHaveLength(2);
    });

    test('has terminals: a shell in the container, as large as the page, until the user leaves it', {
      tags: 'terminals-of-pods',
    }, async () => {
      const pod = await argoCd().pod(key);
      const place = { pod: pod.name, container: ticker, namespace: ticker, projectName: way.project };
      const app = { appName: key.name, appNamespace: key.namespace ?? '' };
      const terminal = await ArgoCdTerminal.open(argoCd().api, { ...place, ...app });
      terminal.resize(33, 99);
      terminal.type('echo "$((6 * 7)) ticks"\n');
      await terminal.shows('42 ticks');
      // Argo CD passes sizes and what is typed on by two ways: either may be faster.
      await until(async () => {
        terminal.type('stty size\n');
        await terminal.shows('33 99', 2_000);
      }, generous);
      terminal.type('exit\n');
      await terminal.closed;
    });

    test('lets an object be edited, shows the difference, and synchronises it away', async () => {
      const edit = JSON.stringify({ data: { colour: 'blue' } });
      const type = `patchType=${encodeURIComponent('application/merge-patch+json')}`;
      await argoCd().api.call('POST', `${pathOf(key)}/resource${where(key, settings)}&${type}`, edit);
      expect((await far().get(configMaps, settings))?.data).toEqual({ colour: 'blue' });
      await isOnHub('OutOfSync');
      await showsDifference(1, /<\s+colour: blue[\s\S]*>\s+colour: red/);
      await argoCd().synchronise(name);
      expect((await far().get(configMaps, settings))?.data).toEqual({ colour: 'red' });
      await isOnHub('Synced');
      await showsDifference(0, /^$/);
    });

    test('lets an object be deleted', async () => {
      await argoCd().cli.print('app', 'delete-resource', name, '--kind', 'ConfigMap', '--resource-name', settings.name);
      await waitForObject(far(), configMaps, settings, (found) => found === undefined);
      await argoCd().synchronise(name);
      await waitForObject(far(), configMaps, settings, (found) => found !== undefined);
    });

    test('has the actions of its objects: a Deployment is restarted, once', async () => {
      const before = await argoCd().pod(key);
      const query = where(key, deployment);
      const list = `${pathOf(key)}/resource/actions${query}`;
      const { actions } = await argoCd().api.get<{ actions: { name: string }[] }>(list);
      expect(actions.map((action) => action.name)).toContain('restart');
      const applied = () => far().get(deployments, { namespace: ticker, name: ticker });
      const generation = (await applied())?.metadata.generation ?? 0;
      await argoCd().cli.print(
        'app',
        'actions',
        'run',
        name,
        'restart',
        '--kind',
        'Deployment',
        '--resource-name',
        ticker,
      );
      await waitForObject(far(), podType, { namespace: ticker, name: before.name }, (found) => found === undefined, {
        timeoutMs: 240_000,
      });
      expect((await applied())?.metadata.generation).toBe(generation + 1);
      await until(async () => expect((await argoCd().pod(key)).uid).not.toBe(before.uid), generous);
    });

    test('counts in what Argo CD knows of the cluster', async () => {
      await until(async () => {
        const found = await argoCd().cluster(way.cluster);
        expect(found?.connectionState.status).toBe('Successful');
        expect(Number(found?.info.applicationsCount)).toBeGreaterThan(0);
        expect(Number(found?.info.cacheInfo?.resourcesCount)).toBeGreaterThan(0);
        expect(found?.serverVersion).toMatch(/^v?1\.\d+/);
      }, generous);
      const line = (await argoCd().cli.print('cluster', 'list')).split('\n').find((text) => text.includes(way.cluster));
      expect(line).toMatch(/1\.\d+(\.\d+)?\s+Successful/);
    });
  });
}
