import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type Condition,
  findCondition,
  type KubeClient,
  type KubeObject,
  leases,
  namespaces,
  type PodTemplate,
  type ResourceType,
  rfc3339,
} from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { Controller, type ControllerOptions } from '../controller.ts';
import {
  cleanUpWork,
  connectionLeaseName,
  type GitOpsCluster,
  gitOpsClusters,
  type ManifestWork,
  managedClusters,
  manifestWorks,
  placementDecisions,
  placements,
} from '../hub/index.ts';

/** Creates the objects of a hub as a user and OCM's controllers would. */
export class HubFixture {
  readonly client: KubeClient;

  constructor(client: KubeClient) {
    this.client = client;
  }

  async namespace(name: string): Promise<void> {
    await this.put(namespaces, { metadata: { name } });
  }

  async put<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<T> {
    return this.client.apply(type, object, { fieldManager: 'test', force: true });
  }

  /** A registered, available cluster with its namespace. */
  async managedCluster(name: string, labels: Record<string, string> = {}): Promise<void> {
    await this.namespace(name);
    await this.put(managedClusters, { metadata: { name, labels } });
    await this.clusterAvailable(name, 'True');
  }

  async clusterAvailable(name: string, status: 'True' | 'Unknown'): Promise<void> {
    const condition = { type: 'ManagedClusterConditionAvailable', status, reason: 'Test', message: 'test' };
    const conditions = [{ ...condition, lastTransitionTime: rfc3339(new Date()) }] as Condition[];
    await this.client.mergePatch(managedClusters, { name }, { status: { conditions } }, { subresource: 'status' });
  }

  /** A Placement whose decisions are these clusters, in pages of the given size. */
  async placement(namespace: string, name: string, clusters: readonly string[], pageSize = 100): Promise<void> {
    const annotations = { 'cluster.open-cluster-management.io/experimental-scheduling-disable': 'true' };
    await this.put(placements, { metadata: { namespace, name, annotations }, spec: {} });
    const pages = Math.max(1, Math.ceil(clusters.length / pageSize));
    for (let page = 0; page < pages; page++) {
      const key = { namespace, name: `${name}-decision-${page + 1}` };
      const labels = {
        'cluster.open-cluster-management.io/placement': name,
        'cluster.open-cluster-management.io/decision-group-index': '0',
      };
      await this.put(placementDecisions, { metadata: { ...key, labels } });
      const decisions = clusters
        .slice(page * pageSize, (page + 1) * pageSize)
        .map((clusterName) => ({ clusterName, reason: '' }));
      await this.client.mergePatch(placementDecisions, key, { status: { decisions } }, { subresource: 'status' });
    }
  }

  async gitOpsCluster(
    namespace: string,
    name: string,
    placement: string,
    addOn: object = {},
    reference: object = {},
  ): Promise<GitOpsCluster> {
    return this.put(gitOpsClusters, {
      metadata: { namespace, name },
      spec: {
        placementRef: { kind: 'Placement', name: placement, ...reference },
        argoCDAgentAddon: { principalServerAddress: 'principal.example.com', principalServerPort: '443', ...addOn },
      },
    });
  }

  async condition(namespace: string, name: string, type: string): Promise<Condition | undefined> {
    const found = await this.client.get(gitOpsClusters, { namespace, name });
    return findCondition(found?.status?.conditions, type);
  }

  /** Waits for a condition of a GitOpsCluster. */
  async conditionIs(
    [namespace, name]: readonly [string, string],
    type: string,
    status: string,
    message: RegExp = /./,
  ): Promise<Condition> {
    let seen: Condition | undefined;
    try {
      return await until(`${type} ${status} ${message}`, async () => {
        seen = await this.condition(namespace, name, type);
        return seen?.status === status && message.test(seen.message) && seen;
      });
    } catch (error) {
      throw new Error(`${(error as Error).message}; it is ${JSON.stringify(seen)}`);
    }
  }

  /** Waits for the clean-up Job of a cluster and reports its result as the work agent would. */
  async endCleanUp(
    cluster: string,
    how: 'JobComplete' | 'JobFailed' = 'JobComplete',
    name: string = cleanUpWork.name,
  ): Promise<void> {
    const key = { namespace: cluster, name };
    await until(`the clean-up of ${cluster}`, () => this.client.get(manifestWorks, key));
    const resourceMeta = { ordinal: 4, kind: 'Job', name: 'argocd-agent-addon-cleanup' };
    const values = [{ name: how, fieldValue: { type: 'String', string: 'True' } }];
    const manifests = [{ resourceMeta, conditions: [], statusFeedback: { values } }];
    const status: ManifestWork['status'] = { resourceStatus: { manifests } };
    await this.client.mergePatch(manifestWorks, key, { status }, { subresource: 'status' });
  }

  /** Records an agent's connection as the principal does. */
  async agentConnected(namespace: string, cluster: string, isConnected = true): Promise<void> {
    await this.put(leases, {
      metadata: {
        namespace,
        name: connectionLeaseName(cluster),
        labels: {
          [wellKnown.partOfLabel]: 'argocd-agent',
          'app.kubernetes.io/component': 'connection',
          [wellKnown.agentNameLabel]: cluster,
        },
        annotations: { 'argocd-agent.argoproj-labs.io/connected': String(isConnected) },
      },
    });
  }

  /** Reports a work as applied, with this number of ready replicas, as the work agent would. */
  async reportWork(cluster: string, name: string, ready = 1): Promise<void> {
    const work = await this.client.get(manifestWorks, { namespace: cluster, name });
    if (!work) {
      throw new Error(`no ManifestWork ${cluster}/${name}`);
    }
    const now = rfc3339(new Date());
    const conditions = ['Applied', 'Available'].map((type) => ({
      type,
      status: 'True' as const,
      reason: 'Test',
      message: '',
      lastTransitionTime: now,
      observedGeneration: work.metadata.generation ?? 0,
    }));
    const integer = (field: string, value: number) => ({
      name: field,
      fieldValue: { type: 'Integer', integer: value },
    });
    const manifests = work.spec.workload.manifests.map((object, ordinal) => {
      const { template } = (object as { spec?: { template?: PodTemplate } }).spec ?? {};
      const image = template?.spec?.containers[0]?.image ?? '';
      const counts = { Replicas: 1, ReadyReplicas: ready, Generation: 1, ObservedGeneration: 1, UpdatedReplicas: 1 };
      const values = [
        ...Object.entries(counts).map(([field, value]) => integer(field, value)),
        { name: 'Image', fieldValue: { type: 'String', string: image } },
      ];
      return {
        resourceMeta: { ordinal, kind: object.kind ?? '', name: object.metadata.name },
        conditions: [],
        ...(template ? { statusFeedback: { values } } : {}),
      };
    });
    const status: ManifestWork['status'] = { conditions, resourceStatus: { manifests } };
    await this.client.mergePatch(manifestWorks, work.metadata, { status }, { subresource: 'status' });
  }
}

/** A controller in this process. */
export interface RunningController {
  readonly controller: Controller;
  stop(): Promise<void>;
}

/** Starts a controller in this process. */
export function runController(client: KubeClient, options: Partial<ControllerOptions> = {}): RunningController {
  const stop = new AbortController();
  const controller = new Controller({
    client,
    logger: createLogger({ level: process.env.TEST_LOG ?? 'fatal', name: 'gitops-controller' }),
    instance: 'test',
    delivery: {
      agentImage: 'quay.io/open-cluster-management/argocd-fleet:test',
      pullPolicy: 'IfNotPresent',
      argoCdImage: undefined,
      redisImage: undefined,
    },
    settleMs: 200,
    ...options,
  });
  const running = controller.run(stop.signal);
  return {
    controller,
    stop: async () => {
      stop.abort();
      await running;
    },
  };
}
