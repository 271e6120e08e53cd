import { Inbox, type InboxOutcome, type ObjectRef, type Runtime, refOf, type Tuning } from '../../sync/index.ts';
import type { Metadata } from '../object.ts';
import type { KindNames } from './kind-names.ts';
import type { Plan } from './plan.ts';
import type { PlanWriter } from './plan-writer.ts';

/** How {@link DepartedMirrors} work. */
export interface DepartedMirrorsOptions<T extends { readonly metadata: Metadata }> {
  readonly names: KindNames;
  readonly writer: PlanWriter<T>;
  /** The agent whose object this is a mirror of; undefined when it is none. */
  readonly agentOf: (object: T) => string | undefined;
  /** Whether an agent of this name belongs to the fleet no more. Default: none has left. */
  readonly hasLeft?: ((agent: string) => boolean) | undefined;
  /** Whether this principal, and no other one, does now what is to be done for this agent. Default: yes. */
  readonly isResponsible?: ((agent: string) => boolean) | undefined;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

interface Work {
  readonly ref: ObjectRef;
  readonly agent: string;
  readonly id: string;
}

/**
 * Lets mirrors go that somebody deletes after their agent has left the fleet. A mirror has the finalizers of its source, and nobody
 * on the hub carries them out: the mirror, and its namespace if that goes, would be deleted for ever.
 */
export class DepartedMirrors<T extends { readonly metadata: Metadata }> {
  readonly #options: DepartedMirrorsOptions<T>;
  readonly #inbox: Inbox<Work>;

  /** @param signal ends all work when it is aborted */
  constructor(options: DepartedMirrorsOptions<T>, signal: AbortSignal) {
    this.#options = options;
    const { names, runtime, tuning } = options;
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, aborted) => this.#release(work, aborted),
        acknowledge: () => undefined,
        laneOf: ({ ref: { namespace, name } }) => `${namespace}/${name}`,
        idOf: ({ id }) => id,
        supersedes: () => true,
        isOwn: () => true,
        onError: (error, { ref, agent }, attempt) =>
          runtime.log.warn(
            { ...names.logFields(ref), agent, attempt, error },
            'the mirror of an agent that has left is deleted, and keeps its finalizers so far, will retry',
          ),
        runtime,
        tuning,
      },
      signal,
    );
  }

  /** Looks at an object whose agent may have left. */
  consider(object: T): void {
    const agent = isHeld(object) ? this.#options.agentOf(object) : undefined;
    if (agent !== undefined) {
      this.#inbox.receive({ ref: refOf(object), agent, id: this.#options.runtime.newId() });
    }
  }

  async #release({ ref, agent }: Work, signal: AbortSignal): Promise<InboxOutcome> {
    const { writer, agentOf, hasLeft = () => false, isResponsible = () => true } = this.#options;
    if (!hasLeft(agent)) {
      return 'done';
    }
    const isMeant = (now: T | undefined) => now !== undefined && isHeld(now) && agentOf(now) === agent;
    let waits = false;
    const plan = (now: T | undefined): Plan<T> => {
      waits = isMeant(now) && !isResponsible(agent);
      return isMeant(now) && !waits
        ? { action: 'update', reason: 'changed', patch: { metadata: { uid: now?.metadata.uid, finalizers: null } } }
        : { action: 'none' };
    };
    const outcome = await writer.once(ref, plan, signal);
    return waits ? 'retry' : outcome;
  }
}

function isHeld({ metadata }: { readonly metadata: Metadata }): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length > 0;
}
