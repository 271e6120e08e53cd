import { deployments, type KubeClient } from '../../lib/kube/index.ts';
import { ArgoCdApi, adminPassword, argoCdAddress } from '../argocd/index.ts';
import { type FleetOptions, type RunningFleet, type SharedFleet, startFleet } from '../fleet/index.ts';
import { ocmVersion } from '../ocm/index.ts';
import { builtProject } from '../programs/index.ts';
import { checkKind, type ProviderName, startKindFleet } from '../provider/index.ts';
import { type TestbedStatus, testbedStatus } from '../testbed/index.ts';
import type { ToolName } from '../tools/index.ts';
import { fleetPagePath, openFrontDoor } from './front-door.ts';
import { checkRequirements } from './requirements.ts';

/** What the demo's steps stand on. */
export interface Provider {
  /** The tools that the demo runs: nothing else is made for it. */
  readonly tools: readonly ToolName[];
  /** @throws Error that says what the machine lacks, before anything is started */
  check(signal: AbortSignal): Promise<unknown>;
  /** Builds this project's programs, where the fleet runs what was built before. */
  build?(): Promise<unknown>;
  start(options: FleetOptions): Promise<DemoFleet>;
}

/** A fleet that is up to the point where an operator would type `helm install`, and what its provider knows of it. */
export interface DemoFleet {
  readonly fleet: SharedFleet;
  /** The versions of OCM and of the hub's Argo CD. */
  readonly versions: Readonly<Record<string, string>>;
  /** The hub's Argo CD for its administrator, where this machine reaches it without further ado. */
  readonly argoCd?: ArgoCdApi;
  /** What people open in a browser, line by line, Argo CD's UI first if there is one. The fleet page comes with the add-on. */
  readonly doors: readonly string[];
  /** What runs, for those who ask a fleet in the background. */
  status?(): TestbedStatus;
  stop(): Promise<void>;
}

/** The provider of a name. */
export const providerOf = (name: ProviderName): Provider => (name === 'kind' ? kind : local);

/** Control planes, OCM and pods as processes of this machine. */
const local: Provider = {
  tools: [
    ...(['supervise', 'etcd', 'kube-apiserver', 'kube-controller-manager'] as const),
    ...(['helm', 'argocd', 'redis-server', 'ocm'] as const),
  ],
  check: checkRequirements,
  build: builtProject,
  async start(options) {
    const fleet = await startFleet(options);
    try {
      return await demoOf(fleet);
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  },
};

async function demoOf(fleet: RunningFleet): Promise<DemoFleet> {
  const password = await adminPassword(fleet.hub.client);
  const argoCd = await ArgoCdApi.login(await argoCdAddress(fleet), 'admin', password);
  const { Version: version } = await argoCd.get<{ Version: string }>('/api/version');
  const hasUi = await argoCd.hasUi();
  const door = await openFrontDoor(fleet);
  const page = `The fleet page: ${door.fleetPage} (the link signs you in)`;
  return {
    fleet,
    argoCd,
    versions: { 'Open Cluster Management': await ocmVersion(), 'Argo CD': version },
    doors: hasUi ? [`Argo CD's UI: ${door.argoCd} (user admin, password ${password})`, page] : [page, howToGetTheUi],
    status: () =>
      testbedStatus(fleet.folder, [fleet.hub, ...[...fleet.members.values()].map(({ cluster }) => cluster)]),
    async stop() {
      argoCd.close();
      await door.close();
      await fleet.stop();
    },
  };
}

const withoutUi = process.env.ARGOCD_BIN
  ? 'the Argo CD of ARGOCD_BIN has no UI'
  : 'this Argo CD is built from Go modules, which have no UI';
const howToGetTheUi = `Argo CD's UI: ${withoutUi}; with a released one (https://github.com/argoproj/argo-cd/releases): ARGOCD_BIN=<file> npm run demo`;

/** Clusters of kind with OCM by clusteradm, and the image in containers. */
const kind: Provider = {
  tools: ['helm'],
  check: () => checkKind(),
  async start(options) {
    const fleet = await startKindFleet(options);
    try {
      const { client, kubeconfig } = fleet.hub;
      const forwarded = (service: string, port: number, path: string) =>
        `https://localhost:${port}${path} while this runs: ` +
        `kubectl --kubeconfig ${kubeconfig} -n argocd port-forward service/${service} ${port}:443`;
      const password = await adminPassword(client);
      const page = forwarded('argocd-agent-principal-fleet-page', 8446, fleetPagePath);
      return {
        fleet,
        versions: {
          'Open Cluster Management': await tagOf(client, hubOcm),
          'Argo CD': await tagOf(client, { namespace: 'argocd', name: 'argocd-server' }),
        },
        doors: [
          `Argo CD's UI (user admin, password ${password}): ${forwarded('argocd-server', 8443, '/')}`,
          `The fleet page, when you have logged in there: ${page}`,
        ],
        stop: () => fleet.stop(),
      };
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  },
};

const hubOcm = { namespace: 'open-cluster-management-hub', name: 'cluster-manager-registration-controller' };

/** The tag of the image that a Deployment runs. */
async function tagOf(client: KubeClient, key: { readonly namespace: string; readonly name: string }): Promise<string> {
  const deployment = await client.get(deployments, key);
  const image = deployment?.spec?.template?.spec?.containers?.[0]?.image ?? '';
  return /:([^:/@]+)(@|$)/.exec(image)?.[1] ?? 'unknown';
}
