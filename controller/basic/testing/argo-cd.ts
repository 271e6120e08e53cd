import {
  Informer,
  isConflict,
  isNotFound,
  type KubeClient,
  keyOf,
  parseKey,
  rfc3339,
  WorkQueue,
} from '../../../lib/kube/index.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { isArgoCdFinalizer, pullKeys } from '../names.ts';
import { type PullApplication, pullApplications } from '../resources.ts';

/** A stand-in for the application controller. It deploys nothing and handles operations, refreshes and finalizers. */
export class ArgoCdStandIn {
  /** Operations that ended, by Application. */
  readonly ended: string[] = [];
  /** Operations that were terminated, by Application. */
  readonly terminated: string[] = [];
  /** Applications that were refreshed on request. */
  readonly refreshed: string[] = [];
  /** Applications that were deleted together with their deployed resources. */
  readonly cascaded: string[] = [];
  /** Whether operations that begin do not end. */
  isHolding = false;
  readonly #client: KubeClient;
  readonly #stop = new AbortController();
  readonly #queue: WorkQueue;
  readonly #informer: Informer<PullApplication>;
  readonly #running: Promise<unknown>;

  constructor(client: KubeClient) {
    this.#client = client;
    const logger = createLogger({ level: 'fatal' });
    this.#informer = new Informer({ client, type: pullApplications, logger });
    this.#queue = new WorkQueue({
      name: 'argocd',
      handler: (key) =>
        this.#reconcile(key).catch((error) => {
          if (!isNotFound(error)) {
            throw error;
          }
        }),
      backoff: { maxMs: 200 },
      logger,
    });
    const enqueue = (one: PullApplication) => this.#queue.add(keyOf(one));
    this.#informer.subscribe({ added: enqueue, updated: (_, now) => enqueue(now) });
    const { signal } = this.#stop;
    this.#running = Promise.all([this.#informer.run(signal), this.#queue.run(signal)]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Ends the operations that were held. */
  release(): void {
    this.isHolding = false;
    for (const one of this.#informer.list()) {
      this.#queue.add(keyOf(one));
    }
  }

  async #reconcile(key: string): Promise<void> {
    const one = await this.#client.get(pullApplications, parseKey(key));
    if (!one) {
      return;
    }
    const { finalizers = [], annotations, resourceVersion, deletionTimestamp } = one.metadata;
    if (deletionTimestamp) {
      if (!finalizers.some(isArgoCdFinalizer)) {
        return;
      }
      await this.#patch(
        key,
        { metadata: { resourceVersion, finalizers: finalizers.filter((f) => !isArgoCdFinalizer(f)) } },
        this.cascaded,
      );
      return;
    }
    if (annotations?.[pullKeys.refresh]) {
      await this.#patch(
        key,
        { metadata: { resourceVersion, annotations: { [pullKeys.refresh]: null } } },
        this.refreshed,
      );
      return;
    }
    const now = rfc3339(new Date());
    const state = one.status?.operationState;
    if (!one.operation) {
      if (one.status?.health) {
        return;
      }
      await this.#patch(key, {
        status: { health: { status: 'Healthy' }, sync: { status: 'OutOfSync', revision: '' } },
      });
      return;
    }
    if (state?.phase !== 'Running' && state?.phase !== 'Terminating') {
      const operationState = { phase: 'Running', startedAt: now, finishedAt: null, operation: one.operation };
      await this.#patch(key, { metadata: { resourceVersion }, status: { operationState } });
      return;
    }
    if (state.phase === 'Terminating') {
      const operationState = { phase: 'Failed', finishedAt: now, message: 'Operation terminated' };
      await this.#patch(
        key,
        { metadata: { resourceVersion }, operation: null, status: { operationState } },
        this.terminated,
      );
      return;
    }
    if (this.isHolding) {
      return;
    }
    await this.#patch(
      key,
      {
        metadata: { resourceVersion },
        operation: null,
        status: {
          health: { status: 'Healthy' },
          sync: { status: 'Synced', revision: 'abc' },
          operationState: {
            phase: 'Succeeded',
            finishedAt: now,
            message: 'successfully synced',
            syncResult: { revision: 'abc' },
          },
        },
      },
      this.ended,
    );
  }

  /** Writes a patch and records `key` in `done`, unless the write fails. A conflict is retried. */
  async #patch(key: string, patch: object, done: string[] = []): Promise<void> {
    // Recorded first: others may see the write before its response arrives here.
    done.push(key);
    try {
      await this.#client.mergePatch(pullApplications, parseKey(key), patch);
    } catch (error) {
      done.splice(done.lastIndexOf(key), 1);
      if (!isConflict(error)) {
        throw error;
      }
      this.#queue.add(key);
    }
  }
}
