import { ArgoCdApi, adminPassword, argoCdAddress } from '../argocd/index.ts';
import { type FleetOptions, type RunningFleet, type SharedFleet, startFleet } from '../fleet/index.ts';
import { builtProject } from '../node/index.ts';
import { checkKind, type ProviderName, startKindFleet } from '../provider/index.ts';
import { type TestbedStatus, testbedStatus } from '../testbed/index.ts';
import { getTool, getTools, type ToolOptions, toolNames } from '../tools/index.ts';
import { checkRequirements } from './requirements.ts';

/** What the demo's steps stand on. */
export interface Provider {
  /** What it needs built, for people. */
  tools: string;
  /** @throws Error that says what the machine lacks, before anything is started */
  check(signal: AbortSignal): Promise<unknown>;
  prepare(options: ToolOptions): Promise<void>;
  start(options: FleetOptions): Promise<SharedFleet>;
  /** The hub's Argo CD for its administrator, where this machine reaches it without further ado. */
  argoCd?(): Promise<ArgoCdApi>;
  /** How a user gets to the hub's Argo CD, for people. */
  argoCdForPeople(fleet: SharedFleet): Promise<string>;
  /** What runs, for those who ask a fleet in the background. */
  status?(): TestbedStatus | undefined;
}

/** The provider of a name. */
export const providerOf = (name: ProviderName): Provider => (name === 'kind' ? kind() : local());

/** Control planes, OCM and pods as processes of this machine. */
function local(): Provider {
  let fleet: RunningFleet | undefined;
  return {
    tools: 'etcd, Kubernetes, Helm, Argo CD and Redis are in the cache',
    check: checkRequirements,
    async prepare(options) {
      await Promise.all(getTools(toolNames, options).values());
      await builtProject();
    },
    async start(options) {
      fleet = await startFleet(options);
      return fleet;
    },
    async argoCd() {
      if (!fleet) {
        throw new Error('the fleet is not started');
      }
      return await ArgoCdApi.login(await argoCdAddress(fleet), 'admin', await adminPassword(fleet.hub.client));
    },
    async argoCdForPeople() {
      if (!fleet) {
        throw new Error('the fleet is not started');
      }
      const { host, port } = await argoCdAddress(fleet);
      const password = await adminPassword(fleet.hub.client);
      return `https://${host}:${port}, user admin, password ${password} (its certificate is one that it made for itself)`;
    },
    status() {
      if (!fleet) {
        return undefined;
      }
      const members = [...fleet.members.values()].map(({ cluster }) => cluster);
      return testbedStatus(fleet.folder, [fleet.hub, ...members]);
    },
  };
}

/** Clusters of kind with OCM by clusteradm, and the image in containers. */
function kind(): Provider {
  return {
    tools: 'Helm is in the cache',
    check: () => checkKind(),
    async prepare(options) {
      await getTool('helm', options);
    },
    start: startKindFleet,
    async argoCdForPeople({ hub: { client } }) {
      const forward = 'kubectl -n argocd port-forward service/argocd-server 8443:443';
      return `https://localhost:8443 while \`${forward}\` runs, user admin, password ${await adminPassword(client)}`;
    },
  };
}
