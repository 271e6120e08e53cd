import { setTimeout as sleep } from 'node:timers/promises';
import { isNotFound, isRetryable, type KubeClient } from '../../lib/kube/index.ts';
import { type Deed, PlayedApplicationController, type WorkloadBook } from '../application-controller/index.ts';
import { namespace } from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import { isRefused } from './admission.ts';
import type { GoneCopy, OperationRun, RemovedWorkload } from './invariants.ts';

/** How a {@link BusyController} works. */
export interface BusyControllerOptions {
  readonly agent: string;
  readonly client: KubeClient;
  readonly random: Random;
  /** Gets what is a copy of what. */
  readonly workloads?: WorkloadBook;
}

/** The played application controller of an agent's cluster, whose syncs take a while, and which can be made busy. */
export class BusyController {
  readonly #options: BusyControllerOptions;
  readonly #played: PlayedApplicationController;

  constructor(options: BusyControllerOptions) {
    const { client, random, workloads } = options;
    this.#options = options;
    this.#played = new PlayedApplicationController({
      client,
      namespace,
      syncMs: () => random.integer(10, 800),
      isCollectingGarbage: true,
      ...(workloads && { seen: (application) => workloads.follow(application) }),
    });
  }

  /** Works until aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#played.run(signal);
  }

  /** Every sync that it began. */
  get runs(): OperationRun[] {
    return this.#played.did('began').map(({ application: { metadata, operation } }) => {
      const { info } = operation as { info?: readonly { readonly name: string; readonly value: string }[] };
      const id = info?.find(({ name }) => name === 'id')?.value ?? 'unknown';
      return { agent: this.#options.agent, name: metadata.name, id };
    });
  }

  /** Every Application that went away. */
  get goneCopies(): GoneCopy[] {
    return this.#played.did('gone').map(({ application: { metadata } }: Deed) => {
      const { name, uid = '', annotations } = metadata;
      return { agent: this.#options.agent, name, uid, sourceUid: annotations?.['argocd.argoproj.io/source-uid'] ?? '' };
    });
  }

  /** Every workload that it removed, as Argo CD does for an Application with its finalizer. */
  get removedWorkloads(): RemovedWorkload[] {
    return this.#played.removedWorkloads.map(({ metadata: { name, uid = '', annotations } }) => {
      return {
        agent: this.#options.agent,
        name,
        uid,
        sourceUid: annotations?.['argocd.argoproj.io/source-uid'] ?? uid,
      };
    });
  }

  /** How often it has answered a refresh of an Application. */
  refreshesOf(name: string): number {
    return this.#played.did('refreshed').filter(({ application }) => application.metadata.name === name).length;
  }

  /** Reports some other health of Applications taken at random, so many a second, until aborted. */
  async changeHealth(perSecond: number, signal: AbortSignal): Promise<void> {
    const { random } = this.#options;
    while (!signal.aborted) {
      await sleep(random.integer(0, 2_000 / perSecond), undefined, { signal }).catch(() => undefined);
      const all = this.#played.list().filter(({ status }) => status !== undefined);
      if (all.length === 0 || signal.aborted) {
        continue;
      }
      const health = random.pick(['Healthy', 'Progressing', 'Degraded']);
      await this.#played.report(random.pick(all), health).catch(passOver);
    }
  }
}

/** Load that an outage prevents is not made up for. */
function passOver(error: unknown): void {
  if (!isRetryable(error) && !isNotFound(error) && !isRefused(error)) {
    throw error;
  }
}
