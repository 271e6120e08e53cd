import type { DeedKind, PlayedApplicationController } from '../../../e2e/application-controller/index.ts';
import { wellKnown } from '../../../lib/base/index.ts';
import { until } from '../../../lib/base/testing.ts';
import {
  type KubeClient,
  type KubeObject,
  keyOf,
  namespaces,
  type ResourceType,
  secrets,
} from '../../../lib/kube/index.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { argoProjects } from '../../hub/index.ts';
import { HubFixture } from '../../testing/fixture.ts';
import { BasicController, type BasicControllerOptions } from '../controller.ts';
import { pullKeys } from '../names.ts';
import {
  type Operation,
  type PullApplication,
  type PullWork,
  payloadIn,
  pullApplications,
  pullWorks,
} from '../resources.ts';
import { applicationKeyOf } from '../work.ts';

/** A hub and one managed cluster for the tests of one file. One controller runs at a time. */
export class BasicFleet {
  readonly hub: KubeClient;
  readonly spoke: KubeClient;
  readonly fixture: HubFixture;
  readonly argoCd: PlayedApplicationController;
  #running: { controller: BasicController; stop: () => Promise<void> } | undefined;

  constructor(options: { hub: KubeClient; spoke: KubeClient; argoCd: PlayedApplicationController }) {
    this.hub = options.hub;
    this.spoke = options.spoke;
    this.argoCd = options.argoCd;
    this.fixture = new HubFixture(options.hub);
  }

  /** The running controller. */
  get controller(): BasicController {
    if (!this.#running) {
      throw new Error('no controller is running');
    }
    return this.#running.controller;
  }

  /** The Applications, as `namespace/name`, that the cluster's Argo CD did something with. */
  did(kind: DeedKind): string[] {
    return this.argoCd.did(kind).map(({ application }) => keyOf(application));
  }

  start(options: Partial<BasicControllerOptions> = {}): void {
    const stop = new AbortController();
    const controller = new BasicController({
      client: this.hub,
      logger: createLogger({ level: process.env.TEST_LOG ?? 'fatal', name: 'basic' }),
      instance: 'test',
      argoCdNamespace: 'argocd',
      ...options,
    });
    const running = controller.run(stop.signal);
    this.#running = {
      controller,
      stop: async () => {
        stop.abort();
        await running;
      },
    };
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }

  /** Creates an Application for cluster1, as a user would. */
  async create(
    name: string,
    change: {
      metadata?: Partial<PullApplication['metadata']>;
      spec?: PullApplication['spec'];
      operation?: Operation;
    } = {},
  ): Promise<PullApplication> {
    const { metadata = {}, spec, ...rest } = change;
    return await this.hub.create(pullApplications, {
      metadata: {
        namespace: 'argocd',
        name,
        labels: { [pullKeys.pull]: 'true' },
        finalizers: ['resources-finalizer.argocd.argoproj.io'],
        ...metadata,
        annotations: {
          [pullKeys.cluster]: 'cluster1',
          [wellKnown.skipReconcileAnnotation]: 'true',
          ...metadata.annotations,
        },
      },
      spec: {
        project: 'default',
        source: { repoURL: 'https://git.example/x', path: '.', targetRevision: 'v1' },
        destination: { name: 'elsewhere', namespace: 'guestbook' },
        ...spec,
      },
      ...rest,
    });
  }

  /** Creates or changes an AppProject of the hub. */
  async project(name: string, spec: object): Promise<void> {
    const project = { metadata: { namespace: 'argocd', name }, spec };
    await this.hub.apply(argoProjects, project, { fieldManager: 'test', force: true });
  }

  /** Patches an Application of the hub. */
  async change(name: string, patch: object, namespace = 'argocd'): Promise<void> {
    await this.hub.mergePatch(pullApplications, { namespace, name }, patch);
  }

  async remove(name: string, namespace = 'argocd'): Promise<void> {
    await this.hub.delete(pullApplications, { namespace, name });
  }

  /** Waits until `accept` is true for the hub's Application; it receives undefined when there is none. */
  onHub(what: string, name: string, accept: (one: PullApplication | undefined) => unknown, namespace = 'argocd') {
    return this.#until(what, this.hub, pullApplications, { namespace, name }, accept);
  }

  /** Waits until `accept` is true for the copy on the cluster; it receives undefined when there is none. */
  onCluster(what: string, name: string, accept: (one: PullApplication | undefined) => unknown, namespace = 'argocd') {
    return this.#until(what, this.spoke, pullApplications, { namespace, name }, accept);
  }

  async #until<T extends KubeObject>(
    what: string,
    client: KubeClient,
    type: ResourceType<T>,
    key: { namespace: string; name: string },
    accept: (one: T | undefined) => unknown,
  ): Promise<T> {
    let last: T | undefined;
    try {
      await until(what, async () => {
        last = await client.get(type, key);
        return Boolean(accept(last));
      });
    } catch (error) {
      throw new Error(`${(error as Error).message}; it is ${JSON.stringify(last)}`);
    }
    return last as T;
  }

  /** The works of the basic pull model, or those of one Application. */
  async works(key?: string): Promise<PullWork[]> {
    const found = await this.hub.list(pullWorks, { labelSelector: `${pullKeys.pull}=true` });
    return found.filter((work) => key === undefined || applicationKeyOf(work) === key);
  }

  /** Waits until `accept` is true for the works of an Application. */
  async worksAre(what: string, key: string, accept: (works: PullWork[]) => boolean): Promise<PullWork[]> {
    return await until(what, async () => {
      const found = await this.works(key);
      return accept(found) && found;
    });
  }

  /** Waits until the controller is idle and the hub no longer changes. */
  async settled(): Promise<void> {
    let [before, quiet] = ['', 0];
    await until('the hub to come to rest', async () => {
      const now = JSON.stringify(await this.versions());
      quiet = this.controller.isIdle && now === before ? quiet + 1 : 0;
      before = now;
      return quiet > 8;
    });
  }

  /** resourceVersions of all objects that the controller writes. */
  async versions(): Promise<Record<string, string>> {
    const found: Record<string, string> = {};
    for (const type of [pullApplications, pullWorks, secrets]) {
      for (const object of await this.hub.list(type as typeof pullApplications)) {
        found[`${type.plural}/${keyOf(object)}`] = object.metadata.resourceVersion ?? '';
      }
    }
    return found;
  }

  async namespace(name: string): Promise<void> {
    for (const client of [this.hub, this.spoke]) {
      await client.apply(namespaces, { metadata: { name } }, { fieldManager: 'test', force: true });
    }
  }

  /** Removes all objects of a test. */
  async reset(): Promise<void> {
    await this.stop();
    this.argoCd.release();
    for (const one of await this.hub.list(pullApplications)) {
      if (one.metadata.finalizers) {
        await this.hub.mergePatch(pullApplications, one.metadata, { metadata: { finalizers: null } });
      }
      await this.hub.delete(pullApplications, one.metadata);
    }
    for (const { metadata } of await this.hub.list(argoProjects)) {
      await this.hub.delete(argoProjects, metadata);
    }
    for (const work of await this.works()) {
      await this.hub.delete(pullWorks, work.metadata);
    }
    await until('works to be gone', async () => (await this.works()).every((w) => w.metadata.namespace !== 'cluster1'));
    // The copy of a work that was deleted when OCM's agent was about to apply it goes after the agent's grace period.
    await until('copies to be gone', async () => (await this.spoke.list(pullApplications)).length === 0);
    this.argoCd.deeds.length = 0;
  }
}

/** The target revision in a work's copy. */
export function revisionIn(work: PullWork | undefined): unknown {
  return (payloadIn(work)?.spec?.source as { targetRevision?: string } | undefined)?.targetRevision;
}

/** A client that fails every request after its first write. `death` resolves when that write has been carried out. */
export function mortal(client: KubeClient): { client: KubeClient; death: Promise<void> } {
  const { promise: death, resolve } = Promise.withResolvers<void>();
  let isDead = false;
  const writes = new Set<PropertyKey>(['apply', 'create', 'patch', 'mergePatch', 'replace', 'delete']);
  const proxy = new Proxy(client, {
    get: (target, property) => {
      const value = Reflect.get(target, property, target);
      if (typeof value !== 'function') {
        return value;
      }
      return async (...args: [{ plural?: string }, ...unknown[]]) => {
        if (isDead) {
          throw new Error('dead');
        }
        if (!writes.has(property) || args[0].plural === 'events') {
          return value.apply(target, args);
        }
        isDead = true;
        try {
          return await value.apply(target, args);
        } finally {
          resolve();
        }
      };
    },
  });
  return { client: proxy, death };
}
