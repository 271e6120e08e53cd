import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps } from '../../lib/kube/index.ts';
import { ArgoCdApi, ArgoCdTerminal } from '../argocd/index.ts';
import { fleetApplications, fleetAppProjects, isSyncedAndHealthy } from '../fleet/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { at, generous, HubArgoCd, pathOf, type ResourceNode, type Tree, where } from './hub-argocd.ts';
import { deployment, describeTickers, podType, type TickerRoute, ticker, tickerFiles, tickerSpec } from './ticker.ts';
import type { TwoModes } from './two-modes.ts';

const everythingAllowed = {
  metadata: { namespace: 'argocd', name: 'default' },
  spec: {
    sourceRepos: ['*'],
    destinations: [{ server: '*', namespace: '*' }],
    clusterResourceWhitelist: [{ group: '*', kind: '*' }],
  },
};

/** What users see and do through the hub's Argo CD server, its API and its command, on clusters behind agents. */
export function describeLive(get: () => TwoModes): void {
  describe('through the hub’s Argo CD', () => {
    let argoCd: HubArgoCd;
    const ways: TickerRoute[] = [
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
      if (!fleet.local) {
        return;
      }
      await fleet.git.commit(ticker, tickerFiles, 'A ticker');
      const repoURL = fleet.git.url(ticker);
      const metadata = { namespace: 'argocd', name: ticker };
      await autonomous.apply(fleetAppProjects, everythingAllowed, { fieldManager: 'test', force: true });
      await hub.create(fleetApplications, { metadata, spec: tickerSpec(repoURL, 'cluster1') });
      await autonomous.create(fleetApplications, { metadata, spec: tickerSpec(repoURL, 'in-cluster') });
      argoCd = await HubArgoCd.login(fleet.local);
      for (const { key } of ways) {
        await waitForObject(hub, fleetApplications, key, isSyncedAndHealthy, { timeoutMs: 240_000 });
      }
    });
    afterAll(async () => {
      argoCd?.close();
      const { fleet, hub, autonomous } = get();
      if (!fleet.local) {
        return;
      }
      // One that its cluster owns stays when the fleet is given up, and with it the namespace.
      const key = { namespace: 'argocd', name: ticker };
      await Promise.all([hub, autonomous].map((owner) => owner.delete(fleetApplications, key)));
      for (const { key: onHub } of ways) {
        await waitForObject(hub, fleetApplications, onHub, (found) => found === undefined);
      }
    });
    beforeEach(({ skip }) =>
      skip(!get().fleet.local, 'this machine reaches the API server of Argo CD on its own clusters only'),
    );

    describeTickers(ways, () => argoCd);

    test('while the agents are away the UI shows what they said last, and news when they are back', async () => {
      const { network } = get();
      const pods = new Map<TickerRoute, ResourceNode>();
      for (const way of ways) {
        pods.set(way, await argoCd.pod(way.key));
      }
      const watching = new AbortController();
      onTestFinished(() => watching.abort());
      const seen = new Map<TickerRoute, Set<string>>(ways.map((way) => [way, new Set()]));
      const watch = async (way: TickerRoute) => {
        const path = `/api/v1/stream/applications/${way.key.name}/resource-tree${at(way.key)}`;
        for await (const { nodes = [] } of argoCd.api.stream<Tree>(path, watching.signal)) {
          for (const node of nodes) {
            seen.get(way)?.add(node.uid);
          }
        }
      };
      const watches = Promise.all(ways.map(watch));
      // Awaited when everything else is done.
      watches.catch(() => undefined);
      network.refuse();
      try {
        for (const way of ways) {
          await until(
            async () => expect((await argoCd.cluster(way.cluster))?.connectionState.status).toBe('Failed'),
            generous,
          );
          expect((await argoCd.nodes(way.key)).map(({ uid }) => uid)).toContain(pods.get(way)?.uid);
          const managed = await argoCd.api.get<{ items: { kind: string }[] }>(
            `${pathOf(way.key)}/managed-resources${at(way.key)}`,
          );
          expect(managed.items.map(({ kind }) => kind).sort()).toEqual(['ConfigMap', 'Deployment']);
          await expect(argoCd.live(way.key, deployment)).rejects.toThrow(way.cluster);
        }
      } finally {
        network.heal();
      }
      for (const way of ways) {
        await until(async () => expect((await argoCd.live(way.key, deployment)).metadata.name).toBe(ticker), generous);
        const before = pods.get(way) as ResourceNode;
        await way.far().delete(podType, { namespace: ticker, name: before.name });
        const after = await until(
          'another pod',
          async () => {
            const pod = await argoCd.pod(way.key);
            expect(pod.uid).not.toBe(before.uid);
            return pod;
          },
          generous,
        );
        await until(() => expect(seen.get(way)).toContain(after.uid), generous);
      }
      watching.abort();
      await watches;
    });

    test('what a user may not do with an Application, nobody does for them', async () => {
      const { hub } = get();
      const [way] = ways as [TickerRoute];
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
      const { token } = await until(
        'a token',
        () => argoCd.api.call<{ token: string }>('POST', '/api/v1/account/viewer/token', { name: 'viewer' }),
        generous,
      );
      const viewer = new ArgoCdApi(argoCd.api.address, token);
      const query = where(way.key, deployment);
      await until('the viewer to be let in', () => viewer.get(`${pathOf(way.key)}/resource${query}`), generous);
      const type = `patchType=${encodeURIComponent('application/merge-patch+json')}`;
      const pod = (await argoCd.pod(way.key)).name;
      const attempts = [
        viewer.call('POST', `${pathOf(way.key)}/resource${query}&${type}`, JSON.stringify({ spec: { replicas: 0 } })),
        viewer.call('DELETE', `${pathOf(way.key)}/resource${query}`),
        viewer.call('POST', `${pathOf(way.key)}/resource/actions${query}`, 'restart'),
        viewer.get(`${pathOf(way.key)}/logs${at(way.key)}&namespace=${ticker}&podName=x&container=ticker`),
        viewer.get(`/api/v1/applications/${ticker}/resource-tree?appNamespace=cluster2`),
        ArgoCdTerminal.open(viewer, {
          ...{ pod, container: ticker, namespace: ticker, projectName: way.project },
          ...{ appName: ticker, appNamespace: 'argocd' },
        }),
      ];
      const denied = await Promise.allSettled(attempts);
      for (const result of denied) {
        expect(result).toMatchObject({
          status: 'rejected',
          reason: { message: expect.stringMatching(/ 40[13]\b/) },
        });
      }
      viewer.close();
    });
  });
}
