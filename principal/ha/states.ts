import { GrpcError, WireError } from '../../lib/wire/index.ts';

/** The states of a principal of a pair, as argocd-agent names them. Only `active` accepts agents. */
export const haStates = ['recovering', 'syncing', 'replicating', 'disconnected', 'active'] as const;

/** One of the states. */
export type HaState = (typeof haStates)[number];

/** argocd-agent's transitions. A standby that never reached the other principal may be promoted by force: there it may not. */
const transitions: Readonly<Record<HaState, readonly HaState[]>> = {
  recovering: ['active', 'syncing', 'replicating', 'disconnected'],
  syncing: ['replicating', 'active'],
  replicating: ['disconnected', 'active'],
  disconnected: ['replicating', 'active'],
  active: ['replicating'],
};

/** The state of this principal, and who follows it. */
export class HaStateMachine {
  #state: HaState = 'recovering';
  readonly #listeners = new Set<(now: HaState, before: HaState) => void>();

  get current(): HaState {
    return this.#state;
  }

  /** Goes to another state; false, and nothing changes, when that is not possible from the present one. */
  to(next: HaState): boolean {
    const before = this.#state;
    if (before === next || !transitions[before].includes(next)) {
      return false;
    }
    this.#state = next;
    for (const listener of this.#listeners) {
      listener(next, before);
    }
    return true;
  }

  /** Calls the listener after each change from now on. */
  subscribe(listener: (now: HaState, before: HaState) => void): void {
    this.#listeners.add(listener);
  }
}

/** What agents, and principals that want to follow this one, are told when it is not active: argocd-agent's text. */
export function refusalIn(state: HaState): string | undefined {
  return state === 'active' ? undefined : `not accepting connections in state ${state}`;
}

/** The state in a text of {@link refusalIn}; undefined when it is another text. */
export function stateOfRefusal(text: string): HaState | undefined {
  const [, state] = /not accepting connections in state (\w+)$/.exec(text) ?? [];
  return haStates.find((known) => known === state);
}

/** The state in the refusal that an error comes from; undefined when it comes from something else. */
export function refusedStateIn(error: unknown): HaState | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof GrpcError) {
      return stateOfRefusal(cause.details);
    }
  }
  return undefined;
}

/** Whether an error is an answer of the other principal, whatever it said. */
export function isPrimaryAnswer(error: unknown): boolean {
  return error instanceof WireError && error.code !== 'unreachable' && error.cause instanceof GrpcError;
}

/**
 * Why a principal cannot be promoted; undefined when it can.
 * @param force also while the other principal is known to be active, or when it was never reached
 */
export function promotionObjection(state: HaState, force: boolean): string | undefined {
  switch (state) {
    case 'active':
      return 'already active';
    case 'disconnected':
      return undefined;
    case 'replicating':
      return force
        ? undefined
        : 'the peer is still active and replicates to this principal: demote it first, or promote with force';
    case 'syncing':
      return force
        ? undefined
        : 'can only promote from replicating or disconnected state, current: syncing; nothing was received from the peer yet: with force this principal becomes active with what its own cluster has';
    default:
      return `can only promote from replicating or disconnected state, current: ${state}`;
  }
}

/** Why a principal is not promoted whose hub is not as the active one had it last; undefined when it is. */
export function changedHereObjection(objects: readonly string[]): string | undefined {
  return objects.length === 0
    ? undefined
    : `these objects were changed or deleted on this hub, and cannot be put back; a promotion would carry that out on the clusters, and may delete workloads: ${objects.join(', ')}: see the log why, or promote with force`;
}

/** Why a principal cannot be demoted; undefined when it can. */
export function demotionObjection(state: HaState): string | undefined {
  return state === 'active' ? undefined : `can only demote from active state, current: ${state}`;
}
