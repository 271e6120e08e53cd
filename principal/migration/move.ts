import { annotations } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import {
  awaitObject,
  isConflict,
  type KubeClient,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type ResourceType,
} from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import { liveUids, replacedObjects } from './live-resources.ts';
import { isBusy, type MovingApplication, movingApplications, stateOf } from './objects.ts';
import type { MoveRecord, MoveRecords } from './records.ts';

/** What a move works with. */
export interface MoveOptions {
  readonly hub: KubeClient;
  readonly cluster: KubeClient;
  readonly agent: string;
  /** Where the copy of a hub Application is on the cluster. */
  readonly copyOf: (key: ObjectKey) => ObjectKey;
  readonly records: MoveRecords;
  readonly timeoutMs: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** How a move of one Application ended. */
export interface MoveResult {
  readonly application: MovingApplication;
  /** How many resources and pods it had before. */
  readonly resources: number;
  readonly recreated: readonly string[];
  readonly seconds: number;
}

const fieldManager = 'argocd-agent-migrate';
const resourcesFinalizer = /^resources-finalizer\.argocd\.argoproj\.io/;

/** Moves Applications between the hub's application controller and an agent, one at a time. Every step can be repeated. */
export class Mover {
  readonly #options: MoveOptions;

  constructor(options: MoveOptions) {
    this.#options = options;
  }

  /**
   * Gives an Application to the agent. Automated sync rests until the cluster's Argo CD shows the state that the hub's showed:
   * if it sees something else, nothing is changed on the cluster.
   * @throws FatalError when a wait takes too long; the next call goes on
   */
  async toAgent(key: ObjectKey): Promise<MoveResult> {
    const { agent, cluster, records, say, signal } = this.#options;
    const started = Date.now();
    const record = records.get(key) ?? (await this.#begin(key));
    const before = record.before ?? { sync: '', health: '', uids: {} };
    say(`${keyOf(key)}: to agent ${agent}`);
    const hub = await this.#patchIdle(key, (application) =>
      application.spec.destination?.name === agent
        ? undefined
        : {
            metadata: { annotations: { [wellKnown.skipReconcileAnnotation]: 'true' } },
            spec: { destination: { name: agent, server: null }, ...withoutAutomated(application) },
          },
    );
    say(`${keyOf(key)}: waits until the cluster's Argo CD shows ${before.sync}, ${before.health}`);
    const isAsBefore = (now: MovingApplication | undefined) =>
      now?.status?.sync?.status === before.sync && isAsHealthy(now.status.health?.status, before.health);
    await this.#copyUntil(
      key,
      `adopts ${keyOf(key)} and shows ${before.sync}, ${before.health}`,
      (copy) =>
        copy !== undefined &&
        copy.metadata.annotations?.[annotations.sourceUid] === hub.metadata.uid &&
        isAsBefore(copy) &&
        !isBusy(copy),
    );
    await this.#patchHub(key, {
      metadata: { annotations: { [annotations.refresh]: 'normal' } },
      ...automatedAgain(record),
    });
    const application = await this.#hubUntil(
      key,
      `shows ${before.sync}, ${before.health} of the agent`,
      (now) => now?.metadata.annotations?.[annotations.refresh] === undefined && isAsBefore(now),
    );
    const after = await liveUids(cluster, application, signal);
    const { before: _, ...kept } = record;
    await records.set({ ...kept, phase: 'moved' });
    return this.#result(application, before.uids, after, started);
  }

  /**
   * Gives an Application back to the hub's application controller. The copy goes without its resources: before the agent
   * removes it, it has no finalizers, and the cluster's Argo CD does not act on it any more.
   * @throws FatalError when a wait takes too long; the next call goes on
   */
  async toHub(key: ObjectKey): Promise<MoveResult> {
    const { agent, cluster, records, say, signal } = this.#options;
    const started = Date.now();
    const record = await this.#beginReturn(key);
    const before = record.before ?? { sync: '', health: '', uids: {} };
    const present = await this.#read(key);
    if (present.spec.destination?.name === agent) {
      say(`${keyOf(key)}: lets go of its copy on the cluster`);
      const hub = await this.#patchIdle(key, (application) => ({
        metadata: { finalizers: [], annotations: { [wellKnown.skipReconcileAnnotation]: 'true' } },
        ...(application.spec.syncPolicy ? { spec: withoutAutomated(application) } : {}),
      }));
      const copy = await this.#copyUntil(
        key,
        `has the copy of ${keyOf(key)} without finalizer and automated sync`,
        (found) =>
          found?.metadata.annotations?.[annotations.sourceUid] === hub.metadata.uid &&
          !(found?.metadata.finalizers ?? []).some((one) => resourcesFinalizer.test(one)) &&
          found?.spec.syncPolicy?.automated == null,
      );
      const { uid } = copy.metadata;
      const stopped = { uid, finalizers: [], annotations: { [wellKnown.skipReconcileAnnotation]: 'true' } };
      const { copyOf } = this.#options;
      await cluster.mergePatch(movingApplications, copyOf(key), { metadata: stopped }, { fieldManager, signal });
      const { name = null, server = null } = record.destination;
      await this.#patchHub(key, { spec: { destination: { name, server } } });
    }
    say(`${keyOf(key)}: waits until its copy is gone and the hub's application controller shows its state`);
    await this.#until(
      cluster,
      this.#options.copyOf(key),
      'the cluster still has the copy',
      (found) => found === undefined,
    );
    await this.#patchHub(key, {
      metadata: {
        finalizers: record.finalizers,
        annotations: {
          [wellKnown.skipReconcileAnnotation]: record.skipReconcile ?? null,
          [annotations.refresh]: 'normal',
        },
      },
      ...automatedAgain(record),
    });
    const application = await this.#hubUntil(
      key,
      `shows ${before.sync}, ${before.health} of the hub's application controller`,
      (now) =>
        now?.metadata.annotations?.[annotations.refresh] === undefined &&
        now?.status?.sync?.status === before.sync &&
        isAsHealthy(now.status.health?.status, before.health),
    );
    const after = await liveUids(cluster, application, signal);
    await records.remove(record);
    return this.#result(application, before.uids, after, started);
  }

  /** Records what the Application is before its move. */
  async #begin(key: ObjectKey): Promise<MoveRecord> {
    const application = await this.#idle(key);
    const { name, server } = application.spec.destination ?? {};
    const record: MoveRecord = {
      namespace: key.namespace ?? '',
      name: key.name,
      phase: 'moving',
      destination: { ...(name ? { name } : {}), ...(server ? { server } : {}) },
      ...(await this.#present(application)),
    };
    const skip = application.metadata.annotations?.[wellKnown.skipReconcileAnnotation];
    const complete = skip === undefined ? record : { ...record, skipReconcile: skip };
    await this.#options.records.set(complete);
    return complete;
  }

  /** Records what the Application is before it goes back; what a move has taken away is not recorded as gone. */
  async #beginReturn(key: ObjectKey): Promise<MoveRecord> {
    const { records } = this.#options;
    const record = records.get(key);
    if (record === undefined) {
      throw new Error(`Application ${keyOf(key)} was not moved`);
    }
    if (record.phase === 'returning') {
      return record;
    }
    const now = record.phase === 'moved' ? await this.#present(await this.#idle(key)) : {};
    const { automated: _, ...rest } = record;
    const next: MoveRecord = { ...(record.phase === 'moved' ? rest : record), ...now, phase: 'returning' };
    await records.set(next);
    return next;
  }

  async #present(application: MovingApplication): Promise<Pick<MoveRecord, 'automated' | 'finalizers' | 'before'>> {
    const { cluster, signal } = this.#options;
    const { status, spec, metadata } = application;
    const automated = spec.syncPolicy?.automated;
    return {
      ...(automated == null ? {} : { automated }),
      finalizers: metadata.finalizers ?? [],
      before: {
        sync: status?.sync?.status ?? '',
        health: status?.health?.status ?? '',
        uids: await liveUids(cluster, application, signal),
      },
    };
  }

  #result(
    application: MovingApplication,
    before: Record<string, string>,
    after: Record<string, string>,
    started: number,
  ) {
    return {
      application,
      resources: Object.keys(before).length,
      recreated: replacedObjects(before, after),
      seconds: (Date.now() - started) / 1_000,
    };
  }

  #idle(key: ObjectKey): Promise<MovingApplication> {
    return this.#hubUntil(key, 'ends its operation', (now) => now !== undefined && !isBusy(now));
  }

  /** Patches an Application that is idle, exactly as it was when the patch was made. */
  async #patchIdle(
    key: ObjectKey,
    patchOf: (application: MovingApplication) => { metadata?: object; spec?: object } | undefined,
  ): Promise<MovingApplication> {
    for (;;) {
      const application = await this.#idle(key);
      const patch = patchOf(application);
      if (patch === undefined) {
        return application;
      }
      const { uid, resourceVersion } = application.metadata;
      try {
        return await this.#patchHub(key, { ...patch, metadata: { ...patch.metadata, uid, resourceVersion } });
      } catch (error) {
        // Argo CD has written its status meanwhile, or has begun to synchronise.
        if (!isConflict(error)) {
          throw error;
        }
      }
    }
  }

  #patchHub(key: ObjectKey, patch: object): Promise<MovingApplication> {
    const { hub, signal } = this.#options;
    return hub.mergePatch(movingApplications, key, patch, { fieldManager, signal });
  }

  async #read(key: ObjectKey): Promise<MovingApplication> {
    const found = await this.#options.hub.get(movingApplications, key, this.#options.signal);
    if (found === undefined) {
      throw new FatalError(
        `Application ${keyOf(key)} is not on the hub any more: delete its entry in the ConfigMap of the migration`,
      );
    }
    return found;
  }

  async #hubUntil(key: ObjectKey, what: string, accept: (now: MovingApplication | undefined) => boolean) {
    return present(
      await this.#until(this.#options.hub, key, `Application ${keyOf(key)} of the hub never ${what}`, accept),
    );
  }

  async #copyUntil(key: ObjectKey, what: string, accept: (now: MovingApplication | undefined) => boolean) {
    const { cluster, copyOf } = this.#options;
    return present(await this.#until(cluster, copyOf(key), `the cluster never ${what}`, accept));
  }

  async #until(
    client: KubeClient,
    key: ObjectKey,
    complaint: string,
    accept: (now: MovingApplication | undefined) => boolean,
  ): Promise<MovingApplication | undefined> {
    const { timeoutMs, signal } = this.#options;
    try {
      return await follow(client, movingApplications, key, accept, { timeoutMs, signal, complaint });
    } catch (error) {
      if ((error as Error).name === 'TimeoutError') {
        throw new FatalError((error as Error).message, { cause: error });
      }
      throw error;
    }
  }
}

function follow<T extends KubeObject & MovingApplication>(
  client: KubeClient,
  type: ResourceType<T>,
  key: ObjectKey,
  accept: (now: T | undefined) => boolean,
  { complaint, ...options }: { timeoutMs: number; signal: AbortSignal; complaint: string },
): Promise<T | undefined> {
  const describe = (last: T | undefined) =>
    `${complaint}: ${stateOf(last)}. Run the same command again to go on, or with --undo to go back`;
  return awaitObject(client, type, key, accept, { ...options, describe });
}

function present(application: MovingApplication | undefined): MovingApplication {
  if (application === undefined) {
    throw new Error('an accepted Application does not exist');
  }
  return application;
}

const withoutAutomated = ({ spec }: MovingApplication) =>
  spec.syncPolicy?.automated == null ? {} : { syncPolicy: { automated: null } };

const automatedAgain = ({ automated }: MoveRecord) =>
  automated === undefined ? {} : { spec: { syncPolicy: { automated } } };

/** Also when it got better: a Deployment that was progressing may be healthy now. */
const isAsHealthy = (now: string | undefined, before: string) => now === before || now === 'Healthy';
