import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { installCrds, publishedCrds } from '../../e2e/hub/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { type ConfigMap, configMaps, Informer, type KubeClient, keyOf, secrets } from '../../lib/kube/index.ts';
import { gitOpsClusters, managedClusterAddOns, manifestWorks, placementDecisions, placements } from '../hub/index.ts';
import { HubFixture, type RunningController, runController } from './fixture.ts';

const root = join(import.meta.dirname, '..', '..');

/** The folder of this project's own CRDs. */
export const chartCrds = join(root, 'charts/argocd-agent-addon/crds');
/** Installs the CRDs of OCM and Argo CD, as they are published, and this project's own. */
export async function installHubCrds(hub: HubCluster): Promise<void> {
  await installCrds(hub.client, [...(await publishedCrds('ocm-hub')), ...(await publishedCrds('argocd'))]);
  await hub.applyCrds(chartCrds);
}

/** Names of the works of a cluster. */
export const workNames = ['agent', 'argocd', 'crds'].map((part) => `argocd-agent-addon-${part}`);

/** The parts of a testbed's cluster that these tests use. */
export interface HubCluster {
  readonly client: KubeClient;
  applyCrds(paths: string | readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** An object that only {@link TestHub.beat} changes. */
const pulse = { namespace: 'default', name: 'pulse' };

/** A hub for the tests of one file. Each test has its own namespace and two clusters; one controller runs at a time. */
export class TestHub {
  cluster!: HubCluster;
  fixture!: HubFixture;
  ns = '';
  a = '';
  b = '';
  #running: RunningController | undefined;
  #sequence = 0;
  #beats = 0;
  #pulse: Informer<ConfigMap> | undefined;
  readonly #end = new AbortController();

  get client() {
    return this.cluster.client;
  }

  get controller() {
    if (!this.#running) {
      throw new Error('no controller is running');
    }
    return this.#running.controller;
  }

  start(options: Parameters<typeof runController>[1] = {}): void {
    this.#running = runController(this.client, options);
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }

  async restart(): Promise<void> {
    await this.stop();
    this.start();
    await until('caches', async () => this.controller.missing().length === 0);
  }

  secret(name: string, namespace = this.ns) {
    return this.client.get(secrets, { namespace, name });
  }

  work(cluster: string, part: string) {
    return this.client.get(manifestWorks, { namespace: cluster, name: `argocd-agent-addon-${part}` });
  }

  addOn(cluster: string) {
    return this.client.get(managedClusterAddOns, { namespace: cluster, name: 'argocd-agent-addon' });
  }

  async enrolled(cluster: string): Promise<void> {
    await until(`works of ${cluster}`, async () =>
      (await Promise.all(['crds', 'argocd', 'agent'].map((part) => this.work(cluster, part)))).every(Boolean),
    );
  }

  /**
   * Creates a GitOpsCluster with both clusters and starts a controller, which enrolls them.
   * @param addOn `spec.argoCDAgentAddon`
   */
  async enroll(options: Parameters<typeof runController>[1] = {}, addOn: object = {}): Promise<void> {
    await this.fixture.placement(this.ns, 'placement', [this.a, this.b], 1);
    await this.fixture.gitOpsCluster(this.ns, 'fleet', 'placement', addOn);
    this.start(options);
    await this.fixture.conditionIs([this.ns, 'fleet'], 'Ready', 'True');
  }

  /** Removes a cluster from the Placement that `enroll` made. */
  async unselect(cluster: string): Promise<void> {
    const page = cluster === this.a ? 1 : 2;
    await this.client.mergePatch(
      placementDecisions,
      { namespace: this.ns, name: `placement-decision-${page}` },
      { status: { decisions: [] } },
      { subresource: 'status' },
    );
  }

  /** resourceVersions of all objects that the controller writes. */
  async versions(): Promise<Record<string, string>> {
    const found: Record<string, string> = {};
    for (const type of [gitOpsClusters, managedClusterAddOns, manifestWorks, placements, secrets, configMaps]) {
      for (const object of await this.client.list(type as typeof secrets)) {
        // Kubernetes makes the second one in each namespace, and deletes it with the namespace of an earlier test.
        if ([pulse.name, 'kube-root-ca.crt'].includes(object.metadata.name)) {
          continue;
        }
        found[`${type.plural}/${keyOf(object)}`] = object.metadata.resourceVersion ?? '';
      }
    }
    return found;
  }

  /**
   * Resolves when a change made now has reached a watch: a measure of how long changes take to reach the controller at
   * present.
   */
  async beat(): Promise<void> {
    if (this.#pulse === undefined) {
      const { namespace, name } = pulse;
      this.#pulse = new Informer({
        client: this.client,
        type: configMaps,
        namespace,
        fieldSelector: `metadata.name=${name}`,
      });
      void this.#pulse.run(this.#end.signal);
    }
    const count = String(++this.#beats);
    await this.client.apply(configMaps, { metadata: pulse, data: { count } }, { fieldManager: 'test', force: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    const onBeat = ({ data }: ConfigMap) => Number(data?.count) >= Number(count) && resolve();
    const stop = this.#pulse.subscribe({ added: onBeat, updated: (_, now) => onBeat(now) });
    await promise;
    stop();
  }

  /** Resolves when the controller has been idle for the duration of several {@link beat}s. */
  async idle(): Promise<void> {
    await this.quiet(() => this.controller.isIdle);
  }

  /** As {@link idle}, with another condition. */
  async quiet(isQuiet: () => boolean | Promise<boolean>, what = 'the controller to be idle'): Promise<void> {
    let rounds = 0;
    await until(what, async () => {
      await this.beat();
      rounds = (await isQuiet()) ? rounds + 1 : 0;
      return rounds > 8;
    });
  }

  /** Ends the helpers of the hub's tests. */
  end(): void {
    this.#end.abort();
  }

  /** Gives a cluster's works a finalizer like the work agent's: they stay until the cluster has removed their objects. */
  async holdWorks(cluster: string): Promise<void> {
    const finalizers = ['cluster.open-cluster-management.io/manifest-work-cleanup'];
    for (const name of workNames) {
      await this.client.mergePatch(manifestWorks, { namespace: cluster, name }, { metadata: { finalizers } });
    }
  }

  async releaseWork(cluster: string, part: string): Promise<void> {
    const key = { namespace: cluster, name: `argocd-agent-addon-${part}` };
    await this.client.mergePatch(manifestWorks, key, { metadata: { finalizers: null } });
  }

  async prepare(): Promise<void> {
    this.#sequence += 1;
    this.ns = `argocd-${this.#sequence}`;
    [this.a, this.b] = [`c${this.#sequence}a`, `c${this.#sequence}b`];
    await this.fixture.namespace(this.ns);
    await Promise.all([this.fixture.managedCluster(this.a), this.fixture.managedCluster(this.b)]);
  }

  /** Removes all objects that the controller of the next test would reconcile. */
  async reset(): Promise<void> {
    await this.stop();
    for (const one of await this.client.list(gitOpsClusters)) {
      await this.client.mergePatch(gitOpsClusters, one.metadata, { metadata: { finalizers: null } });
      await this.client.delete(gitOpsClusters, one.metadata);
    }
    for (const one of await this.client.list(manifestWorks)) {
      await this.client.delete(manifestWorks, one.metadata);
    }
    for (const one of await this.client.list(managedClusterAddOns)) {
      await this.client.mergePatch(managedClusterAddOns, one.metadata, { metadata: { finalizers: null } });
      await this.client.delete(managedClusterAddOns, one.metadata);
    }
    for (const one of await this.client.list(secrets, { labelSelector: wellKnown.managedByLabel })) {
      await this.client.delete(secrets, one.metadata);
    }
  }
}

/** Registers the hooks that start and end the hub of a test file. */
export function useHub(startCluster: (options: { name: string }) => Promise<HubCluster>): TestHub {
  const hub = new TestHub();
  beforeAll(async () => {
    hub.cluster = await startCluster({ name: 'hub' });
    await installHubCrds(hub.cluster);
    hub.fixture = new HubFixture(hub.client);
  });
  afterAll(() => {
    hub.end();
    return hub.cluster?.stop();
  });
  beforeEach(() => hub.prepare());
  afterEach(() => hub.reset());
  return hub;
}
