import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { effort, until } from '../../lib/base/testing.ts';
import { configMaps, crds, deployments, pods, type ResourceType, secrets, services } from '../../lib/kube/index.ts';
import {
  fleetApplications,
  fleetGitOpsClusters,
  guestbookFiles,
  guestbookRepository,
  isSyncedAndHealthy,
  releaseNamespace,
} from '../fleet/index.ts';
import { type GitServer, startGitServer } from '../git/index.ts';
import { readCrds } from '../hub/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { type EnrolledFleet, startEnrolledFleet } from './enrolled-fleet.ts';
import { previousHas, sincePrevious, sourcesOf, type TestedVersion, versionRepository } from './previous.ts';

// The add-on's chart of the version before on a hub that has nothing but OCM, upgraded to this version and rolled back. Hub
// and cluster get Argo CD from it, and run an Application.

const argocd = 'argocd';
const port = process.getuid?.() === 0 ? 443 : 8443;
const crdName = 'gitopsclusters.apps.open-cluster-management.io';
/** The version before counts conditions that only this version has: it stays unready where one of them is False. */
const countsForeign = !previousHas('controller/fleet/readiness.ts');
const application = { namespace: argocd, name: guestbookRepository };

const settings: readonly (readonly [string, object])[] = [
  ['the default values', {}],
  [
    'a set of values',
    {
      replicas: 2,
      principal: {
        namespaceCreate: { enable: true },
        log: { level: 'debug', format: 'text' },
        websocket: { enable: true },
        podAnnotations: { note: 'x' },
      },
      gitOpsCluster: {
        argoCDAgentAddon: { clientCertificate: 'CSR', liveAccess: 'view', rolloutStrategy: { type: 'All' } },
      },
      controller: { gitOpsNamespaces: [], log: { level: 'debug' }, podLabels: { note: 'x' } },
      removeClustersOnUninstall: false,
    },
  ],
];

// Rendered with many values, and upgraded without pods that run, it is in e2e/surroundings.
describe.each(settings.slice(0, effort(1, settings.length)))(
  `the add-on's chart, with %s ${sincePrevious}`,
  { tags: 'version-before' },
  (_, given) => {
    let fleet: EnrolledFleet;
    let git: GitServer;
    let folder: string;
    /** Identities of what an upgrade must not make anew. */
    let before: Record<string, string | undefined>;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'addon-chart-'));
      git = await startGitServer(folder);
      fleet = await startEnrolledFleet({ modes: ['managed'], isArgoCdPlayed: false });
    });
    afterAll(async () => {
      await fleet?.stop();
      await git?.stop();
      await rm(folder, { recursive: true, force: true });
    });
    beforeEach(() => onTestFailed(async () => console.error(await fleet.troubles())));

    const cluster = () => {
      const found = fleet.clusters.get('managed')?.cluster;
      if (found === undefined) {
        throw new Error('there is no cluster');
      }
      return found;
    };
    const valuesOf = (version: TestedVersion) => {
      const values = given as { principal?: object };
      return {
        ...values,
        image: versionRepository,
        tag: version,
        principal: { ...values.principal, service: { port } },
      };
    };

    /** A new state of the repository is deployed on the cluster, and the hub shows that. */
    async function delivers(greeting: string): Promise<void> {
      await git.commit(guestbookRepository, guestbookFiles(greeting), 'state');
      const refresh = { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } };
      await fleet.hub.client.mergePatch(fleetApplications, application, refresh);
      const key = { namespace: guestbookRepository, name: 'greeting' };
      await waitForObject(
        cluster().client,
        configMaps,
        key,
        (found) => (found as { data?: Record<string, string> } | undefined)?.data?.text === greeting,
      );
      await waitForObject(fleet.hub.client, fleetApplications, application, isSyncedAndHealthy);
    }

    async function identities(): Promise<Record<string, string | undefined>> {
      const hub = fleet.hub.client;
      const there = cluster().client;
      const kept: readonly (readonly [typeof hub, ResourceType, { namespace: string; name: string }])[] = [
        [hub, fleetGitOpsClusters, { namespace: argocd, name: 'gitops-cluster' }],
        [hub, secrets, { namespace: argocd, name: 'argocd-agent-ca' }],
        [hub, secrets, { namespace: argocd, name: 'argocd-agent-jwt' }],
        [hub, secrets, { namespace: argocd, name: 'argocd-redis' }],
        [hub, services, { namespace: argocd, name: 'argocd-agent-principal' }],
        [hub, deployments, { namespace: argocd, name: 'argocd-agent-principal' }],
        [hub, deployments, { namespace: argocd, name: 'argocd-server' }],
        [hub, deployments, { namespace: releaseNamespace, name: 'argocd-agent-addon-controller' }],
        [hub, fleetApplications, application],
        [there, fleetApplications, application],
        [there, deployments, { namespace: argocd, name: 'argocd-agent-agent' }],
        [there, deployments, { namespace: argocd, name: 'argocd-repo-server' }],
        [there, deployments, { namespace: guestbookRepository, name: 'guestbook' }],
      ];
      const entries = kept.map(async ([client, type, key]) => {
        const found = await client.get(type, key);
        return [`${client === hub ? 'hub' : 'cluster'} ${type.kind} ${key.name}`, found?.metadata.uid] as const;
      });
      const running = await there.list(pods, { namespace: guestbookRepository });
      return {
        ...Object.fromEntries(await Promise.all(entries)),
        pods: running
          .map(({ metadata }) => metadata.uid)
          .sort()
          .join(),
      };
    }

    /** What a user of such a version has to do: takes away the condition of this version. */
    async function forgetForeign(): Promise<void> {
      const key = { namespace: argocd, name: 'gitops-cluster' };
      // The controller writes the status, too: a conflict is tried again.
      await until('the condition of this version is gone', async () => {
        const { status, metadata } = (await fleet.hub.client.get(fleetGitOpsClusters, key)) ?? {};
        const conditions = status?.conditions?.filter(({ type }) => type !== 'HubArgoCDCompatible');
        const patch = { metadata: { resourceVersion: metadata?.resourceVersion }, status: { conditions } };
        await fleet.hub.client.mergePatch(fleetGitOpsClusters, key, patch, { subresource: 'status' });
        return true;
      });
    }

    async function hasCrdOf(version: TestedVersion): Promise<void> {
      const folder = join((await sourcesOf())[version], 'charts/argocd-agent-addon/crds');
      const desired = (await readCrds(folder)).find(({ metadata }) => metadata.name === crdName);
      const found = await fleet.hub.client.get(crds, { name: crdName });
      expect(found?.spec?.versions).toEqual(desired?.spec?.versions);
    }

    test('the version before is installed, and deploys an Application', async () => {
      await git.commit(guestbookRepository, guestbookFiles('one'), 'state');
      await fleet.deploy('previous', valuesOf('previous'));
      await fleet.isSettled('previous');
      await fleet.hub.client.create(fleetApplications, {
        metadata: application,
        spec: {
          project: 'default',
          source: { repoURL: git.url(guestbookRepository), path: 'app', targetRevision: 'main' },
          destination: { name: cluster().name, namespace: guestbookRepository },
          syncPolicy: { automated: { prune: true, selfHeal: true }, syncOptions: ['CreateNamespace=true'] },
        },
      });
      await delivers('one');
      before = await identities();
      expect(Object.entries(before).filter(([, uid]) => !uid)).toEqual([]);
    });

    test('helm upgrade brings all of it to this version, and makes nothing anew', async () => {
      await fleet.deploy('current', valuesOf('current'));
      await fleet.isSettled('current');
      await hasCrdOf('current');
      await delivers('two');
      expect(await identities()).toEqual(before);
      expect(await fleet.helm('test', '--timeout', '4m')).toContain('Succeeded');
    });

    test('helm rollback brings all of it back, and makes nothing anew', async () => {
      await fleet.helm('rollback', '1', ...(countsForeign ? [] : ['--wait', '--timeout', '8m']));
      if (countsForeign) {
        await fleet.runsAgents('previous');
        await forgetForeign();
      }
      await fleet.isSettled('previous');
      // Helm's hook runs before upgrades only: the newer CRD has all that the older one has.
      await hasCrdOf('current');
      await delivers('three');
      expect(await identities()).toEqual(before);
    });

    test('and once more to this version', async () => {
      await fleet.deploy('current', valuesOf('current'));
      await fleet.isSettled('current');
      await delivers('four');
      expect(await identities()).toEqual(before);
    });
  },
);
