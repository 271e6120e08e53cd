import { expect } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, type KubeClient, type KubeObject, type ObjectKey } from '../../lib/kube/index.ts';
import { ArgoCdApi, ArgoCdCli, adminPassword, argoCdAddress } from '../argocd/index.ts';
import type { RunningFleet } from '../fleet/index.ts';

/** For what waits for Argo CD, which tries some things again after three minutes only. */
export const generous = { timeoutMs: 240_000 };

/** A node of an Application's tree, as Argo CD tells it. */
export interface ResourceNode {
  kind: string;
  name: string;
  namespace?: string;
  uid: string;
  health?: { status: string };
}
/** An Application's tree. */
export interface Tree {
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
/** An object in the namespace that an Application deploys into. */
export interface Where {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/** The hub's Argo CD, as its users have it. */
export class HubArgoCd {
  readonly api: ArgoCdApi;
  readonly cli: ArgoCdCli;
  /** The hub's API server. */
  readonly hub: KubeClient;

  private constructor(api: ArgoCdApi, hub: KubeClient, folder: string) {
    this.api = api;
    this.hub = hub;
    this.cli = new ArgoCdCli(api, folder);
  }

  /** Switches terminals on and logs in as its administrator. */
  static async login(fleet: RunningFleet): Promise<HubArgoCd> {
    const { client } = fleet.hub;
    const terminals = { 'exec.enabled': 'true' };
    await client.mergePatch(configMaps, { namespace: 'argocd', name: 'argocd-cm' }, { data: terminals });
    const api = await ArgoCdApi.login(await argoCdAddress(fleet), 'admin', await adminPassword(client));
    return new HubArgoCd(api, client, fleet.folder);
  }

  /** The objects in an Application's tree. */
  async nodes(key: ObjectKey): Promise<ResourceNode[]> {
    return (await this.api.get<Tree>(`${pathOf(key)}/resource-tree${at(key)}`)).nodes ?? [];
  }

  /** The pod that the tree shows, once it is the one that runs. */
  pod(key: ObjectKey): Promise<ResourceNode> {
    return until(
      'one healthy pod',
      async () => {
        const found = (await this.nodes(key)).filter(
          ({ kind, health }) => kind === 'Pod' && health?.status === 'Healthy',
        );
        expect(found).toHaveLength(1);
        return found[0] as ResourceNode;
      },
      generous,
    );
  }

  /** What an object of an Application is on its cluster. */
  async live(key: ObjectKey, object: Where): Promise<KubeObject> {
    const { manifest } = await this.api.get<{ manifest: string }>(`${pathOf(key)}/resource${where(key, object)}`);
    return JSON.parse(manifest) as KubeObject;
  }

  /** What Argo CD knows of a cluster. */
  async cluster(name: string) {
    return (await this.api.get<ClusterList>('/api/v1/clusters')).items.find((item) => item.name === name);
  }

  /** An attempt fails when the cluster's Argo CD has no repo server just then. */
  synchronise(name: string): Promise<string> {
    return until(`${name} is synchronised`, () => this.cli.print('app', 'sync', name, '--timeout', '60'), generous);
  }

  close(): void {
    this.api.close();
  }
}

/** The path of an Application in Argo CD's API. */
export const pathOf = ({ name }: ObjectKey) => `/api/v1/applications/${name}`;
/** The query that an Application outside Argo CD's own namespace needs. */
export const at = ({ namespace = '' }: ObjectKey) => `?appNamespace=${namespace}`;
const groups: Readonly<Record<string, string>> = { Deployment: 'apps', ReplicaSet: 'apps' };

/** The query for an object of an Application. */
export function where(key: ObjectKey, { kind, name, namespace = '' }: Where): string {
  const group = groups[kind] ?? '';
  return `${at(key)}&namespace=${namespace}&resourceName=${name}&group=${group}&version=v1&kind=${kind}`;
}
