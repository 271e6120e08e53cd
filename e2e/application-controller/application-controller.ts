import { setTimeout as sleep } from 'node:timers/promises';
import { type Application, annotations } from '../../lib/argocd/index.ts';
import { applyMergePatch, isEqual, type MergePatch, wellKnown } from '../../lib/base/index.ts';
import {
  Informer,
  isConflict,
  isNotFound,
  isRetryable,
  type KubeClient,
  type KubeObject,
  keyOf,
  type ObjectKey,
  parseKey,
  type Requeue,
  resourceType,
  rfc3339,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { beginOperation, compare, endOperation, isOperating, removesWorkload, report, takeFinalizer } from './rules.ts';

/** An Application, as far as a {@link PlayedApplicationController} looks into it. */
export type PlayedApplication = Application & KubeObject;

/** How a {@link PlayedApplicationController} works. */
export interface PlayedControllerOptions {
  readonly client: KubeClient;
  /** The namespace of its Applications. Default: all. */
  readonly namespace?: string;
  /** The commit that a spec means. Default: its target revision. */
  readonly revisionOf?: (application: PlayedApplication) => string;
  /** It does the work of Kubernetes' garbage collector too, for control planes without one: its finalizers go last. */
  readonly isCollectingGarbage?: boolean;
  /** How long a sync lasts. Default: it ends at once. */
  readonly syncMs?: () => number;
  /** Gets every state of an Application that it sees. */
  readonly seen?: (application: PlayedApplication) => void;
}

/**
 * What it did: it began an operation, ended it well or because somebody terminated it, answered a refresh, took away a
 * finalizer of an Application that was deleted, or saw that an Application has gone.
 */
export type DeedKind = 'began' | 'ended' | 'terminated' | 'refreshed' | 'finalized' | 'gone';

/** Something that a {@link PlayedApplicationController} did, with the Application as it was before. */
export interface Deed {
  readonly kind: DeedKind;
  readonly application: PlayedApplication;
}

/** The finalizers of Kubernetes' garbage collector. */
const ofCollector: readonly string[] = ['foregroundDeletion', 'orphan'];

const applications = resourceType<PlayedApplication>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'Application',
  plural: 'applications',
  namespaced: true,
});

/**
 * A stand-in for Argo CD's application controller, which needs more memory than a machine has for many clusters. It deploys
 * nothing: what was deployed last is what the history says, and the health is what was reported last. All else that it writes
 * is what Argo CD writes. It writes on condition that nobody has written since it looked, so that it knows what it did.
 */
export class PlayedApplicationController {
  /** What it did, in order. */
  readonly deeds: Deed[] = [];
  /** Operations that have begun do not end, unless they are terminated. */
  #isHolding = false;
  readonly #options: PlayedControllerOptions;
  readonly #informer: Informer<PlayedApplication>;
  readonly #queue: WorkQueue;
  /** When the operation that was begun ends, by Application. */
  readonly #ends = new Map<string, number>();

  constructor(options: PlayedControllerOptions) {
    this.#options = options;
    const { client, namespace } = options;
    this.#informer = new Informer({ client, type: applications, ...(namespace !== undefined && { namespace }) });
    this.#queue = new WorkQueue({
      name: 'applications',
      concurrency: 4,
      backoff: { initialMs: 50, maxMs: 500 },
      handler: (key) => this.#reconcile(key),
    });
    const note = (one: PlayedApplication) => {
      options.seen?.(one);
      this.#queue.add(keyOf(one));
    };
    this.#informer.subscribe({
      added: note,
      updated: (_, now) => note(now),
      deleted: (application) => {
        this.#ends.delete(keyOf(application));
        this.deeds.push({ kind: 'gone', application });
      },
    });
  }

  /** Works until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#informer.run(signal), this.#queue.run(signal)]);
  }

  /** The Applications that it knows. */
  list(): PlayedApplication[] {
    return this.#informer.list(this.#options.namespace);
  }

  /** The deeds of a kind. */
  did(kind: DeedKind): Deed[] {
    return this.deeds.filter((one) => one.kind === kind);
  }

  /** The Applications whose workloads it removed, as they were before. */
  get removedWorkloads(): PlayedApplication[] {
    return this.did('finalized').flatMap(({ application }) => (removesWorkload(application) ? [application] : []));
  }

  /** Keeps operations from ending, unless they are terminated. */
  hold(): void {
    this.#isHolding = true;
  }

  /** Ends the operations that were held. */
  release(): void {
    this.#isHolding = false;
    for (const one of this.list()) {
      this.#queue.add(keyOf(one));
    }
  }

  /** Reports the health that the resources of an Application have now. */
  async report(application: PlayedApplication, health: string): Promise<void> {
    await this.#report(application, report(application, { health }, rfc3339(new Date())));
  }

  async #reconcile(key: string): Promise<Requeue | undefined> {
    const found = await this.#options.client.get(applications, parseKey(key));
    if (found === undefined || found.metadata.annotations?.[wellKnown.skipReconcileAnnotation] === 'true') {
      return undefined;
    }
    const now = rfc3339(new Date());
    const revision = this.#options.revisionOf?.(found) ?? targetRevision(found);
    const comparison = compare(found, now, revision);
    if (comparison !== undefined) {
      await this.#report(found, comparison);
    } else if (found.operation !== undefined) {
      return await this.#operate(key, found, now, revision);
    } else if (found.metadata.deletionTimestamp !== undefined) {
      await this.#finalize(found);
    }
    return undefined;
  }

  async #finalize(found: PlayedApplication): Promise<void> {
    const { finalizers = [] } = found.metadata;
    const patch = takeFinalizer(found);
    if (patch !== undefined) {
      await this.#write(found, patch, 'finalized');
    } else if (this.#options.isCollectingGarbage === true && finalizers.some((one) => ofCollector.includes(one))) {
      await this.#write(found, { metadata: { finalizers: finalizers.filter((one) => !ofCollector.includes(one)) } });
    }
  }

  #report(application: PlayedApplication, patch: MergePatch): Promise<void> {
    const isRefresh = application.metadata.annotations?.[annotations.refresh] !== undefined;
    return this.#write(application, patch, isRefresh ? 'refreshed' : undefined);
  }

  async #operate(key: string, found: PlayedApplication, now: string, revision: string): Promise<Requeue | undefined> {
    if (!isOperating(found)) {
      this.#ends.set(key, Date.now() + (this.#options.syncMs?.() ?? 0));
      await this.#write(found, beginOperation(found, now), 'began');
      return undefined;
    }
    const isTerminated = found.status?.operationState?.phase === 'Terminating';
    const left = (this.#ends.get(key) ?? 0) - Date.now();
    if (isTerminated || (left <= 0 && !this.#isHolding)) {
      await this.#write(found, endOperation(found, now, revision), isTerminated ? 'terminated' : 'ended');
      return undefined;
    }
    return left > 0 ? { requeueAfterMs: left } : undefined;
  }

  /** Writes what it does and notes it. What was not written is done again with what is there then. */
  async #write(application: PlayedApplication, patch: MergePatch, kind?: DeedKind): Promise<void> {
    const { resourceVersion, uid } = application.metadata;
    const conditional = { ...patch, metadata: { ...(patch.metadata as object), resourceVersion, uid } };
    const deed = kind && { kind, application };
    if (deed) {
      // Noted first: others may see the write before its answer arrives here.
      this.deeds.push(deed);
    }
    try {
      await this.#options.client.mergePatch(applications, application.metadata, conditional);
    } catch (error) {
      if (
        deed &&
        (isConflict(error) || !isRetryable(error) || !(await this.#hasHappened(application.metadata, patch)))
      ) {
        this.deeds.splice(this.deeds.lastIndexOf(deed), 1);
      }
      if (!isNotFound(error)) {
        throw error;
      }
    }
  }

  /** After a lost answer: whether the write has happened, once the API server answers again. */
  async #hasHappened(key: ObjectKey, patch: MergePatch): Promise<boolean> {
    for (;;) {
      try {
        const found = await this.#options.client.get(applications, key);
        return found === undefined || isEqual(applyMergePatch(found, lasting(patch)), found);
      } catch (error) {
        if (!isRetryable(error)) {
          throw error;
        }
        await sleep(100);
      }
    }
  }
}

/** The part of a patch that nobody changes at once: an operation may have been terminated since, and the next one asked for. */
function lasting({ operation: _, status, ...rest }: MergePatch): MergePatch {
  const { operationState, ...others } = (status ?? {}) as NonNullable<Application['status']>;
  const { phase: __, ...state } = operationState ?? {};
  return { ...rest, status: { ...others, ...(operationState && { operationState: state }) } };
}

const targetRevision = ({ spec }: PlayedApplication) =>
  (spec.source as { targetRevision?: string } | undefined)?.targetRevision ?? '';
