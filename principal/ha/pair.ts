import { aborted, type Logger, onAbort, withDeadline } from '../../lib/base/index.ts';
import { type RunningProgram, retryForever } from '../../lib/bridge/index.ts';
import { type Detail, FatalError, type Loggers } from '../../lib/ops/index.ts';
import { GrpcError, grpcStatus, serveHaAdmin } from '../../lib/wire/index.ts';
import type { HAStatusResponse } from '../../proto/gen/haadminapi/haadmin.ts';
import { ensurePrincipalUid } from '../principal-uid.ts';
import type { PrincipalSettings } from '../settings.ts';
import { ActiveLease } from './active-lease.ts';
import { type ActiveHub, drainMs, startActiveHub } from './active-phase.ts';
import { nobodyFollows } from './follower-lease.ts';
import { type HubRole, type HubRoleName, OwnRole, roleLeft, SharedRole } from './hub-role.ts';
import { type HaMetrics, haMetrics } from './metrics.ts';
import type { HaSettings } from './settings.ts';
import type { Standby } from './standby.ts';
import { startStandbyHub } from './standby-phase.ts';
import { demotionObjection, type HaState, HaStateMachine, promotionObjection } from './states.ts';
import { haStatus, type KnownPeer } from './status.ts';

/** How long a promotion waits for the Lease; argocd-agentctl waits 30 s for the answer. */
const promotionMs = 25_000;
/** After this time another principal finishes a change of the role whose principal must have died. */
const changeMs = 60_000;

const unfenced =
  'nothing keeps both principals from being active at the same time (split brain): promote one only when the other has been demoted or has stopped, or set --ha-lease-kubeconfig';

/** What {@link runPair} needs. */
export interface HaPairOptions {
  readonly settings: PrincipalSettings;
  readonly ha: HaSettings;
  readonly program: RunningProgram;
  readonly loggers: Loggers & { readonly detail: Detail };
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Runs a principal of one of two hubs: active, or following the other hub, until the program ends. With each change of the role
 * everything starts over as after a restart, so that a promoted principal compares every agent's state with its hub's. All
 * principals of a hub have the same role; an order to any of them is one to all.
 * @throws FatalError when it cannot start, with what to do
 */
export async function runPair(options: HaPairOptions): Promise<void> {
  const { settings, ha, program, loggers } = options;
  const logger = loggers.root;
  const { client, signal } = program;
  const { namespace } = settings.flags;
  const hub = await retryForever(
    'establish the identity',
    () => ensurePrincipalUid({ client, namespace, logger, signal }),
    { signal, logger, isFinal: (error) => error instanceof FatalError },
  );
  const isShared = settings.flags['enable-replicas'];
  const lease = ha.lease && new ActiveLease(ha.lease, hub, isShared, logger);
  if (lease === undefined) {
    logger.warn({}, unfenced);
  }
  const preferred = ha.role === 'primary' ? 'active' : 'standby';
  const role = isShared
    ? await SharedRole.open({ client, namespace, preferred, logger, signal, failed: program.failed })
    : new OwnRole(preferred);
  const pair = new Pair(options, role, lease);
  const admin = await serveHaAdmin({ port: ha.adminPort, service: pair, logger }).catch((cause: Error) => {
    throw new FatalError(
      `cannot serve the administration on port ${ha.adminPort} (--ha-admin-port): ${cause.message}`,
      {
        cause,
      },
    );
  });
  await pair.run().catch(program.failed);
  logger.info('principal stops');
  await Promise.all([admin.close(), lease?.close()]);
}

interface Order {
  readonly promise: Promise<HaState>;
  resolve(state: HaState): void;
  reject(error: Error): void;
}

class Pair {
  readonly #options: HaPairOptions;
  readonly #role: HubRole;
  readonly #lease: ActiveLease | undefined;
  readonly #machine = new HaStateMachine();
  readonly #metrics: HaMetrics;
  readonly #logger: Logger;
  #active: ActiveHub | undefined;
  #standby: Standby | undefined;
  #peer: KnownPeer = { isReachable: false, state: undefined };
  /** What runs, and for which role; it ends when the hub has another one. */
  #phase = new AbortController();
  #phaseRole: HubRoleName | undefined;
  #isServing = false;
  /** Whether no principal of this hub needs the Lease when this one is not active any more. */
  #isLast = true;
  /** Aborted by an order that joins a change of the role. */
  #ordered = new AbortController();
  #promotion: Order | undefined;
  #demotion: Order | undefined;
  #problem: string | undefined = 'waiting for the API server';

  constructor(options: HaPairOptions, role: HubRole, lease: ActiveLease | undefined) {
    this.#options = options;
    this.#role = role;
    this.#lease = lease;
    this.#logger = options.loggers.root;
    this.#metrics = haMetrics(options.program.registry, this.#machine, {
      followers: () => this.#active?.source.followers.length ?? 0,
      lag: () => this.#lag(),
      isFollowing: () => this.#standby?.isConnected === true,
      lastSequence: () => Number(this.#standby?.lastSequence ?? 0n),
      isFenced: () => lease !== undefined,
    });
    this.#machine.subscribe((now, before) => {
      this.#logger.info({ state: now, before }, `this principal of the pair is ${now}`);
      if (this.#standby !== undefined && now !== 'active') {
        role.report(now);
      }
      this.#showHealth();
    });
    role.subscribe(() => this.#roleSeen());
    this.#showHealth();
  }

  /** Whether other principals of this hub may run. */
  get #isShared(): boolean {
    return this.#options.settings.flags['enable-replicas'];
  }

  /** Runs phase after phase until the program ends. */
  async run(): Promise<void> {
    const { signal } = this.#options.program;
    while (!signal.aborted) {
      switch (this.#role.current) {
        case 'active':
          await this.#beActive();
          break;
        case 'standby':
          await this.#beStandby();
          break;
        case 'promoting':
          await this.#bePromoted();
          break;
        case 'demoting':
          await this.#beDemoted();
          break;
      }
    }
    for (const order of [this.#promotion, this.#demotion]) {
      order?.reject(new GrpcError(grpcStatus.unavailable, 'the principal is shutting down'));
    }
  }

  status(): HAStatusResponse {
    return haStatus({
      ha: this.#options.ha,
      state: this.#machine.current,
      active: this.#active,
      standby: this.#standby,
      peer: this.#peer,
      lag: this.#lag(),
      fencing: this.#lease?.description ?? `none: ${unfenced}`,
    });
  }

  async promote(force: boolean): Promise<string> {
    const objection =
      this.#promotion === undefined
        ? promotionObjection(this.#machine.current, force)
        : 'a promotion is under way already';
    if (objection !== undefined && !this.#joins('promoting', this.#promotion)) {
      throw new GrpcError(grpcStatus.failedPrecondition, objection);
    }
    this.#logger.warn({ force, state: this.#machine.current }, 'an operator promotes this hub');
    this.#promotion = newOrder();
    const { promise } = this.#promotion;
    try {
      await this.#begin('standby', 'promoting');
      return await promise;
    } finally {
      this.#promotion = undefined;
    }
  }

  async demote(): Promise<string> {
    const objection =
      this.#demotion === undefined ? demotionObjection(this.#machine.current) : 'a demotion is under way already';
    if (objection !== undefined && !this.#joins('demoting', this.#demotion)) {
      throw new GrpcError(grpcStatus.failedPrecondition, objection);
    }
    this.#logger.warn({}, 'an operator demotes this hub');
    this.#demotion = newOrder();
    const { promise } = this.#demotion;
    try {
      await this.#begin('active', 'demoting');
      return await promise;
    } finally {
      this.#demotion = undefined;
    }
  }

  /** Whether an order joins another principal that has begun. */
  #joins(role: HubRoleName, order: Order | undefined): boolean {
    return this.#role.current === role && order === undefined;
  }

  /**
   * Begins to change the role, or joins another principal that has begun, and may have died.
   * @throws GrpcError when the role is another one meanwhile, or cannot be recorded
   */
  async #begin(from: HubRoleName, to: HubRoleName): Promise<void> {
    if (this.#role.current === to) {
      this.#ordered.abort();
      return;
    }
    const isBegun = await this.#role.change(from, to).catch((cause: Error) => {
      throw new GrpcError(grpcStatus.unavailable, `the role of this hub cannot be recorded: ${cause.message}`);
    });
    if (!isBegun) {
      throw new GrpcError(grpcStatus.failedPrecondition, `this hub is ${this.#role.current}`);
    }
  }

  /** Is active while the Lease allows it and the hub is. */
  async #beActive(): Promise<void> {
    const phase = this.#newPhase('active');
    // Others of this hub may have the Lease while this one waits for it.
    this.#isLast = !this.#isShared;
    if (this.#lease === undefined) {
      return await this.#lead(phase, phase, () => undefined);
    }
    const end = await this.#lease.hold(
      phase,
      (leading, fence) => this.#lead(phase, leading, fence),
      () => this.#isLast,
    );
    // After 'lost' nobody else is known to be active: if the Lease is still free when it can be reached again, this one goes on.
    if (end === 'other-hub') {
      this.#logger.warn(
        { lease: this.#lease.description },
        'the other hub is active, or was last: this principal follows it',
      );
      const text = `not active: ${this.#lease.description}`;
      this.#promotion?.reject(new GrpcError(grpcStatus.failedPrecondition, text));
      this.#machine.to('syncing');
      await this.#roleIs('active', 'standby');
    }
  }

  /**
   * @param phase ends with the role
   * @param leading ends with the Lease, too
   */
  async #lead(phase: AbortSignal, leading: AbortSignal, fence: () => void): Promise<void> {
    this.#machine.to('active');
    this.#promotion?.resolve(this.#machine.current);
    const registered = this.#registered();
    const ending = new AbortController();
    // While it starts, the end of the phase ends it at once; later it ends in order.
    const unlisten = onAbort(leading, () => ending.abort(leading.reason));
    try {
      const program = this.#programOf(ending.signal);
      this.#active = await startActiveHub({ ...this.#context(), program }, fence);
      unlisten();
      await aborted(leading);
    } catch (error) {
      if (!leading.aborted) {
        ending.abort();
        throw error;
      }
    }
    const isStopped = this.#options.program.signal.aborted;
    const isDemoted = !isStopped && phase.aborted;
    const isLost = !isStopped && !isDemoted;
    if (!isStopped) {
      this.#machine.to('replicating');
    }
    if (isLost) {
      this.#machine.to('disconnected');
      this.#logger.error({}, 'this principal may have been replaced by the other hub: it serves no agents any more');
    }
    const left = await this.#active?.stop(isLost ? 'lost' : isDemoted ? 'demoted' : 'stopped');
    // The Lease is kept until a standby has everything.
    const ends = !isDemoted || this.#demotion !== undefined || left?.isFollowed === true;
    this.#isLast = ends && this.#active?.hasPeers() !== true;
    this.#active = undefined;
    ending.abort(new Error('the phase has ended'));
    this.#unregister(registered);
    if (left !== undefined && left.objects > 0) {
      this.#logger.error({ objects: left.objects }, 'no standby has acknowledged the newest state of some objects');
    }
    if (isDemoted) {
      await this.#demoted(left?.isFollowed === true, left?.isKnown === true);
    }
  }

  /** The demotion ends when a standby has everything, as the principal knows that it follows; without one, when the order does. */
  async #demoted(isFollowed: boolean, isKnown: boolean): Promise<void> {
    const order = this.#demotion;
    const { signal } = this.#options.program;
    if (isFollowed || (order !== undefined && !(await this.#isDemotedElsewhere(signal)))) {
      if (!(isFollowed && isKnown)) {
        this.#logger.error(
          {},
          'no standby has acknowledged the newest changes, as far as is known: they may be on this hub alone',
        );
      }
      await this.#roleIs('demoting', 'standby');
    }
    order?.resolve(this.#machine.current);
  }

  /** Whether another principal of this hub has ended the demotion, because a standby follows that one. */
  async #isDemotedElsewhere(signal: AbortSignal): Promise<boolean> {
    return this.#isShared && (await roleLeft(this.#role, 'demoting', drainMs, signal));
  }

  /** Takes the Lease for the whole hub when nobody of it follows the other one any more. */
  async #bePromoted(): Promise<void> {
    const order = this.#promotion;
    if (order === undefined) {
      return await this.#changeEnds('promoting');
    }
    const { program, settings } = this.#options;
    const problem = await withDeadline(program.signal, promotionMs, async (signal) => {
      const { flags } = settings;
      const isFree = !this.#isShared || (await nobodyFollows({ flags, program, logger: this.#logger, signal }));
      if (!isFree) {
        return 'a principal of this hub still follows the other one';
      }
      const isTaken = this.#lease === undefined || (await this.#lease.take(signal));
      return isTaken ? undefined : `not active: ${this.#lease?.description}`;
    }).catch((error: Error) => error.message);
    if (problem !== undefined) {
      order.reject(new GrpcError(grpcStatus.failedPrecondition, problem));
    }
    await this.#roleIs('promoting', problem === undefined ? 'active' : 'standby');
  }

  async #beDemoted(): Promise<void> {
    if (this.#demotion === undefined) {
      return await this.#changeEnds('demoting');
    }
    await this.#demoted(false, false);
  }

  /**
   * Waits for the principal that changes the role of the hub, or for an order to join it; when it does not come to an end, the hub
   * is a standby.
   */
  async #changeEnds(role: HubRoleName): Promise<void> {
    this.#ordered = new AbortController();
    const signal = AbortSignal.any([this.#options.program.signal, this.#ordered.signal]);
    if (!(await roleLeft(this.#role, role, changeMs * (1 + Math.random() / 4), signal)) && !signal.aborted) {
      this.#logger.warn({ role }, 'the principal that was changing the role of this hub has not come to an end');
      await this.#roleIs(role, 'standby');
    }
  }

  /** Records the role, for as long as it takes. */
  async #roleIs(from: HubRoleName, to: HubRoleName): Promise<void> {
    const { signal } = this.#options.program;
    try {
      await retryForever('record the role of this hub', () => this.#role.change(from, to), {
        signal,
        logger: this.#logger,
      });
    } catch (error) {
      if (!signal.aborted) {
        throw error;
      }
    }
  }

  async #beStandby(): Promise<void> {
    const phase = this.#newPhase('standby');
    this.#machine.to('syncing');
    this.#mirrorFollower();
    const registered = this.#registered();
    try {
      const hub = await startStandbyHub(
        { ...this.#context(), program: this.#programOf(phase) },
        {
          follows: (standby) => {
            if (standby !== undefined && this.#standby === undefined) {
              // The one that followed before has died, or has ended: nothing is received until this one has a snapshot.
              this.#machine.to('disconnected');
            }
            this.#standby = standby;
            if (standby !== undefined) {
              this.#role.report(this.#machine.current);
            }
          },
          disconnected: (peer) => {
            this.#peer = peer;
          },
        },
      );
      this.#isServing = true;
      this.#showHealth();
      await hub.ended;
    } catch (error) {
      if (!phase.aborted) {
        throw error;
      }
    } finally {
      this.#isServing = false;
      this.#unregister(registered);
      this.#standby = undefined;
      this.#peer = { isReachable: false, state: undefined };
    }
  }

  #newPhase(role: HubRoleName): AbortSignal {
    const { signal } = this.#options.program;
    const phase = new AbortController();
    this.#phase = phase;
    this.#phaseRole = role;
    const unlisten = onAbort(signal, () => phase.abort(signal.reason));
    onAbort(phase.signal, unlisten);
    this.#roleSeen();
    return phase.signal;
  }

  #roleSeen(): void {
    const { current } = this.#role;
    if (current !== this.#phaseRole) {
      this.#phase.abort(new Error(`this hub is ${current}`));
    } else {
      this.#mirrorFollower();
    }
  }

  /** While another principal of this hub follows the other one, this one shows the state of that. */
  #mirrorFollower(): void {
    const { current, followerState } = this.#role;
    if (current !== 'standby' || this.#standby !== undefined || followerState === undefined) {
      return;
    }
    if (followerState === 'disconnected') {
      this.#machine.to('replicating');
    }
    if (followerState !== 'active') {
      this.#machine.to(followerState);
    }
  }

  #context() {
    const { settings, ha, loggers, env } = this.#options;
    return { settings, ha, loggers, env, machine: this.#machine, metrics: this.#metrics };
  }

  #programOf(signal: AbortSignal): RunningProgram {
    const { program } = this.#options;
    return {
      ...program,
      signal,
      failed: (error) => {
        if (!signal.aborted) {
          program.failed(error);
        }
      },
      health: (problem) => {
        this.#problem = problem;
        this.#showHealth();
      },
    };
  }

  /**
   * argocd-agent's answer: traffic goes to the active principal alone. `/livez` is the probe for restarts, and `/readyz` for rolling
   * updates, where a standby that follows, and tells agents so, is ready.
   */
  #showHealth(): void {
    const state = this.#machine.current;
    const problem = state === 'active' ? this.#problem : `HA state: ${state} - not accepting traffic`;
    const isReady = state !== 'active' && this.#isServing;
    this.#options.program.health(problem, { headers: { 'X-HA-State': state }, isReady });
  }

  #lag(): { readonly objects: number; readonly ms: number } {
    return this.#active?.source.lag ?? this.#standby?.lag ?? { objects: 0, ms: 0 };
  }

  #registered(): ReadonlySet<string> {
    return new Set(this.#options.program.registry.getMetricsAsArray().map(({ name }) => name));
  }

  /** The next phase registers its own. */
  #unregister(before: ReadonlySet<string>): void {
    const { registry } = this.#options.program;
    for (const { name } of registry.getMetricsAsArray()) {
      if (!before.has(name)) {
        registry.removeSingleMetric(name);
      }
    }
  }
}

function newOrder(): Order {
  const { promise, resolve, reject } = Promise.withResolvers<HaState>();
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
