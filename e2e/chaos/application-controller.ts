import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Informer, isNotFound, isRetryable, type KubeClient, rfc3339, WorkQueue } from '../../lib/kube/index.ts';
import { type ArgoObject, namespace, pairApplications } from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import type { GoneCopy, OperationRun } from './invariants.ts';

/** The part of an operation's state that is needed here. */
interface State {
  readonly phase?: string;
  readonly message?: string;
  readonly startedAt?: string;
  readonly operation?: Operation;
}

interface Operation {
  readonly info?: readonly { readonly name: string; readonly value: string }[];
  readonly sync?: { readonly revision?: string };
}

/** How a {@link PlayedApplicationController} works. */
export interface PlayedControllerOptions {
  readonly agent: string;
  readonly client: KubeClient;
  readonly random: Random;
}

const historyLength = 3;

/**
 * A stand-in for Argo CD's application controller, which needs more memory than a machine has for many clusters. It deploys
 * nothing. It does to `operation` and `status` what the real one does: a sync that is asked for is executed once per request,
 * its state goes from Running to Succeeded, and `operation` is taken away with the end; sync and health follow the spec; an
 * Application that is deleted loses its finalizers. It writes down every sync that it began and every Application that went away.
 */
export class PlayedApplicationController {
  readonly runs: OperationRun[] = [];
  readonly goneCopies: GoneCopy[] = [];
  readonly #options: PlayedControllerOptions;
  readonly #informer: Informer<ArgoObject>;
  readonly #queue: WorkQueue;
  #number = 0;

  constructor(options: PlayedControllerOptions) {
    this.#options = options;
    const { client, agent } = options;
    this.#informer = new Informer({ client, type: pairApplications, namespace });
    this.#queue = new WorkQueue({
      name: `applications of ${agent}`,
      concurrency: 4,
      backoff: { initialMs: 50, maxMs: 500 },
      handler: (name, signal) => this.#reconcile(name, signal),
    });
    const note = ({ metadata }: ArgoObject) => this.#queue.add(metadata.name);
    this.#informer.subscribe({
      added: note,
      updated: (_, now) => note(now),
      deleted: ({ metadata: { name, uid = '', annotations } }) => {
        this.goneCopies.push({ agent, name, uid, sourceUid: annotations?.['argocd.argoproj.io/source-uid'] ?? '' });
      },
    });
  }

  /** Works until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#informer.run(signal), this.#queue.run(signal)]);
  }

  /** Reports some other health of Applications taken at random, so many a second, until aborted. */
  async changeHealth(perSecond: number, signal: AbortSignal): Promise<void> {
    const { random, client } = this.#options;
    for (let number = 1; !signal.aborted; number++) {
      await sleep(random.integer(0, 2_000 / perSecond), undefined, { signal }).catch(() => undefined);
      const all = this.#informer.list(namespace).filter(({ status }) => status !== undefined);
      if (all.length === 0 || signal.aborted) {
        continue;
      }
      const { name } = random.pick(all).metadata;
      const health = { status: random.pick(['Healthy', 'Progressing', 'Degraded']), message: `report ${number}` };
      const patch = { status: { health, reconciledAt: rfc3339(new Date()) } };
      await client.mergePatch(pairApplications, { namespace, name }, patch).catch(passOver);
    }
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<void> {
    const found = await this.#get(name);
    if (found === undefined) {
      return;
    }
    if (found.metadata.deletionTimestamp !== undefined) {
      await this.#write(found, { metadata: { finalizers: null } });
      return;
    }
    if (found.operation !== undefined && (await this.#operate(found, signal))) {
      return;
    }
    await this.#compare(found);
  }

  /** One step of an operation; whether there was anything to do. */
  async #operate(found: ArgoObject, signal: AbortSignal): Promise<boolean> {
    const operation = found.operation as Operation;
    const state = stateOf(found);
    if (state === undefined || isCompleted(state)) {
      const run = `run ${++this.#number}`;
      const begun = { operation, phase: 'Running', message: run, startedAt: rfc3339(new Date()) };
      const fresh = { ...begun, finishedAt: null, syncResult: null };
      await this.#write(found, { status: { operationState: fresh } });
      const id = operation.info?.find(({ name }) => name === 'id')?.value ?? 'unknown';
      this.runs.push({ agent: this.#options.agent, name: found.metadata.name, id });
      return true;
    }
    await sleep(this.#options.random.integer(10, 800), undefined, { signal });
    const revision = state.operation?.sync?.revision ?? '';
    const finishedAt = rfc3339(new Date());
    const history = (found.status?.history ?? []) as object[];
    const { startedAt: deployStartedAt } = state;
    const entry = { id: history.length, revision, deployStartedAt, deployedAt: finishedAt, source: found.spec.source };
    await this.#write(found, {
      operation: null,
      status: {
        operationState: {
          phase: state.phase === 'Terminating' ? 'Failed' : 'Succeeded',
          message: `${state.message} is over`,
          finishedAt,
          syncResult: { revision, source: found.spec.source },
        },
        history: [...history, entry].slice(-historyLength),
      },
    });
    return true;
  }

  /** Writes what a comparison of Git and cluster finds. */
  async #compare(found: ArgoObject): Promise<void> {
    const { source, destination } = found.spec as { source?: { targetRevision?: string }; destination?: object };
    const revision = source?.targetRevision ?? '';
    const last = (found.status?.history as { revision: string }[] | undefined)?.at(-1)?.revision;
    const sync = { status: last === revision ? 'Synced' : 'OutOfSync', revision, comparedTo: { source, destination } };
    if (!isDeepStrictEqual(found.status?.sync, sync)) {
      const health = found.status?.health ?? { status: 'Healthy' };
      await this.#write(found, { status: { sync, health, reconciledAt: rfc3339(new Date()) } });
    }
  }

  #get(name: string): Promise<ArgoObject | undefined> {
    return this.#options.client.get(pairApplications, { namespace, name });
  }

  /**
   * Writes on condition that nobody has written since. When the answer is lost, it looks whether it was written: the next
   * version has exactly what the patch says.
   */
  async #write(found: ArgoObject, patch: object): Promise<void> {
    const { name, resourceVersion, uid } = found.metadata;
    const conditional = { ...patch, metadata: { ...(patch as Partial<ArgoObject>).metadata, resourceVersion, uid } };
    try {
      await this.#options.client.mergePatch(pairApplications, { namespace, name }, conditional);
    } catch (error) {
      if (!isRetryable(error)) {
        if (isNotFound(error)) {
          return;
        }
        throw error;
      }
      const message = (patch as { status?: { operationState?: State } }).status?.operationState?.message;
      if (message === undefined || !(await this.#hasHappened(name, message))) {
        throw error;
      }
    }
  }

  /** Whether an operation's state says so, once the API server answers again. */
  async #hasHappened(name: string, message: string): Promise<boolean> {
    for (;;) {
      try {
        return stateOf(await this.#get(name))?.message === message;
      } catch (error) {
        if (!isRetryable(error)) {
          throw error;
        }
        await sleep(100);
      }
    }
  }
}

const stateOf = (application: ArgoObject | undefined) => application?.status?.operationState as State | undefined;
const isCompleted = ({ phase }: State) => ['Succeeded', 'Failed', 'Error'].includes(phase ?? '');

/** Load that an outage prevents is not made up for. */
function passOver(error: unknown): void {
  if (!isRetryable(error) && !isNotFound(error)) {
    throw error;
  }
}
