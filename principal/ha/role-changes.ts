import { type Logger, withDeadline } from '../../lib/base/index.ts';
import { type RunningProgram, retryForever } from '../../lib/bridge/index.ts';
import { GrpcError, grpcStatus } from '../../lib/wire/index.ts';
import type { PrincipalFlags } from '../flags.ts';
import type { ActiveLease } from './active-lease.ts';
import { drainMs } from './active-phase.ts';
import { forgetDeletedObjects } from './deleted-objects.ts';
import { nobodyFollows } from './follower-lease.ts';
import { type HubRole, type HubRoleName, roleLeft } from './hub-role.ts';
import type { Undelivered } from './replication-source.ts';
import {
  changedHereObjection,
  demotionObjection,
  type HaState,
  type HaStateMachine,
  promotionObjection,
} from './states.ts';

/** How long a promotion waits for the Lease; argocd-agentctl waits 30 s for the answer. */
const promotionMs = 25_000;
/** After this time another principal finishes a change of the role whose principal must have died. */
const changeMs = 60_000;

/** What {@link RoleChanges} needs. */
export interface RoleChangesOptions {
  readonly role: HubRole;
  readonly lease: ActiveLease | undefined;
  readonly machine: HaStateMachine;
  readonly program: RunningProgram;
  readonly flags: PrincipalFlags;
  /** What was changed on this standby hub and cannot be put back, by name. @throws Error when that cannot be compared */
  changedHere(): Promise<readonly string[]>;
  readonly logger: Logger;
}

/**
 * The orders of operators, and how they change the role of a hub. The principal that got the order carries it out. Another one joins
 * when it gets the same order: the first may have died. Without that, a change that does not come to an end makes the hub a standby.
 */
export class RoleChanges {
  readonly #options: RoleChangesOptions;
  readonly #orders: { promotion?: Order; demotion?: Order } = {};
  /** Aborted by an order that joins a change of the role. */
  #ordered = new AbortController();

  constructor(options: RoleChangesOptions) {
    this.#options = options;
  }

  /** Whether an operator waits for this principal to demote its hub. */
  get isDemotionOrdered(): boolean {
    return this.#orders.demotion !== undefined;
  }

  /** Resolves with the state when this principal is active. @throws GrpcError that says why it is not */
  async promote(force: boolean): Promise<string> {
    const { machine } = this.#options;
    const changed = force || promotionObjection(machine.current, force) ? undefined : await this.#changedHere();
    const objection = promotionObjection(machine.current, force) ?? changed;
    return await this.#obey('promotion', { from: 'standby', to: 'promoting', objection });
  }

  /** Resolves with the state when no principal of this hub is active. @throws GrpcError that says why that cannot be */
  demote(): Promise<string> {
    const objection = demotionObjection(this.#options.machine.current);
    return this.#obey('demotion', { from: 'active', to: 'demoting', objection });
  }

  /** This principal is active now. */
  becameActive(): void {
    this.#orders.promotion?.resolve(this.#options.machine.current);
  }

  /** The other hub holds the Lease, or did last: this hub follows it. */
  async yielded(): Promise<void> {
    const text = `not active: ${this.#options.lease?.description}`;
    this.#orders.promotion?.reject(new GrpcError(grpcStatus.failedPrecondition, text));
    await this.#recorded('active', 'standby');
  }

  /**
   * This principal is not active any more, because its hub is demoted. That ends when a standby has everything, as the principal knows
   * that it follows; without one, when the order does.
   */
  async demoted(left: Undelivered | undefined): Promise<void> {
    const { machine, logger } = this.#options;
    const order = this.#orders.demotion;
    const isFollowed = left?.isFollowed === true;
    if (isFollowed || (order !== undefined && !(await this.#isDemotedElsewhere()))) {
      if (!(isFollowed && left.isKnown)) {
        logger.error(
          {},
          'no standby has acknowledged the newest changes, as far as is known: they may be on this hub alone',
        );
      }
      await this.#recorded('demoting', 'standby');
    }
    order?.resolve(machine.current);
  }

  /** Takes the Lease for the whole hub when nobody of it follows the other one any more; or waits for who does. */
  async carryOutPromotion(): Promise<void> {
    const order = this.#orders.promotion;
    if (order === undefined) {
      return await this.#changeEnds('promoting');
    }
    const { program, flags, lease, logger, role } = this.#options;
    const problem = await withDeadline(program.signal, promotionMs, async (signal) => {
      if (this.#isShared && !(await nobodyFollows({ flags, program, logger, signal }))) {
        return 'a principal of this hub still follows the other one';
      }
      // This asks the API server: the watch may be behind.
      const isPromoting = () => role.change('promoting', 'promoting');
      await forgetDeletedObjects(program.client, flags.namespace, isPromoting, signal).catch((error: Error) => {
        // A failover does not wait for this: an older chart does not grant it.
        signal.throwIfAborted();
        logger.warn({ error }, 'what was deleted while this hub was active before may be told to the other one again');
      });
      const isTaken = lease === undefined || (await lease.take(signal));
      return isTaken ? undefined : `not active: ${lease.description}`;
    }).catch((error: Error) => error.message);
    if (problem !== undefined) {
      order.reject(new GrpcError(grpcStatus.failedPrecondition, problem));
    }
    await this.#recorded('promoting', problem === undefined ? 'active' : 'standby');
  }

  /** For a principal that is not active any more, or was not: waits for those that are. */
  async carryOutDemotion(): Promise<void> {
    await (this.#orders.demotion === undefined ? this.#changeEnds('demoting') : this.demoted(undefined));
  }

  /** The program ends: nobody waits any more. */
  end(): void {
    for (const order of [this.#orders.promotion, this.#orders.demotion]) {
      order?.reject(new GrpcError(grpcStatus.unavailable, 'the principal is shutting down'));
    }
  }

  async #changedHere(): Promise<string | undefined> {
    try {
      return changedHereObjection(await this.#options.changedHere());
    } catch (error) {
      return `it is not known whether objects were changed on this hub: ${(error as Error).message}; try again, or promote with force`;
    }
  }

  /** Whether other principals of this hub may run. */
  get #isShared(): boolean {
    return this.#options.flags['enable-replicas'];
  }

  async #obey(
    what: 'promotion' | 'demotion',
    change: { readonly from: HubRoleName; readonly to: HubRoleName; readonly objection: string | undefined },
  ): Promise<string> {
    const { role, machine, logger } = this.#options;
    const isUnderWay = this.#orders[what] !== undefined;
    const objection = isUnderWay ? `a ${what} is under way already` : change.objection;
    const isJoining = role.current === change.to && !isUnderWay;
    if (objection !== undefined && !isJoining) {
      throw new GrpcError(grpcStatus.failedPrecondition, objection);
    }
    logger.warn({ state: machine.current }, `an operator orders the ${what} of this hub`);
    const order = newOrder();
    this.#orders[what] = order;
    try {
      await this.#begin(change.from, change.to);
      return await order.promise;
    } finally {
      delete this.#orders[what];
    }
  }

  /** @throws GrpcError when the role is another one meanwhile, or cannot be recorded */
  async #begin(from: HubRoleName, to: HubRoleName): Promise<void> {
    const { role } = this.#options;
    if (role.current === to) {
      this.#ordered.abort();
      return;
    }
    const isBegun = await role.change(from, to).catch((cause: Error) => {
      throw new GrpcError(grpcStatus.unavailable, `the role of this hub cannot be recorded: ${cause.message}`);
    });
    if (!isBegun) {
      throw new GrpcError(grpcStatus.failedPrecondition, `this hub is ${role.current}`);
    }
  }

  /** Whether another principal of this hub has ended the demotion, because a standby follows that one. */
  async #isDemotedElsewhere(): Promise<boolean> {
    const { role, program } = this.#options;
    return this.#isShared && (await roleLeft(role, 'demoting', drainMs, program.signal));
  }

  /** Waits for the principal that changes the role, or for an order to join it. */
  async #changeEnds(from: HubRoleName): Promise<void> {
    const { role, program, logger } = this.#options;
    this.#ordered = new AbortController();
    const signal = AbortSignal.any([program.signal, this.#ordered.signal]);
    if (!(await roleLeft(role, from, changeMs * (1 + Math.random() / 4), signal)) && !signal.aborted) {
      logger.warn({ role: from }, 'the principal that was changing the role of this hub has not come to an end');
      await this.#recorded(from, 'standby');
    }
  }

  /** Records the role, for as long as it takes. */
  async #recorded(from: HubRoleName, to: HubRoleName): Promise<void> {
    const { role, program, logger } = this.#options;
    const { signal } = program;
    try {
      await retryForever('record the role of this hub', () => role.change(from, to), { signal, logger });
    } catch (error) {
      if (!signal.aborted) {
        throw error;
      }
    }
  }
}

interface Order {
  readonly promise: Promise<HaState>;
  resolve(state: HaState): void;
  reject(error: Error): void;
}

function newOrder(): Order {
  const { promise, resolve, reject } = Promise.withResolvers<HaState>();
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
