import { aborted, type Logger, onAbort } from '../../lib/base/index.ts';
import { type RunningProgram, retryForever } from '../../lib/bridge/index.ts';
import { type Detail, FatalError, type Loggers } from '../../lib/ops/index.ts';
import { GrpcError, grpcStatus, serveHaAdmin } from '../../lib/wire/index.ts';
import type { HAStatusResponse } from '../../proto/gen/haadminapi/haadmin.ts';
import { ensurePrincipalUid } from '../principal-uid.ts';
import type { PrincipalSettings } from '../settings.ts';
import { ActiveLease } from './active-lease.ts';
import { type ActiveHub, startActiveHub } from './active-phase.ts';
import { type HaMetrics, haMetrics } from './metrics.ts';
import type { HaSettings } from './settings.ts';
import type { Standby } from './standby.ts';
import { startStandbyHub } from './standby-phase.ts';
import { demotionObjection, type HaState, HaStateMachine, promotionObjection } from './states.ts';

/** How long a promotion waits for the Lease; argocd-agentctl waits 30 s for the answer. */
const promotionMs = 25_000;

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
 * Runs a principal of a pair: active, or following the other one, until the program ends. With each change of the role
 * everything starts over as after a restart, so that a promoted principal compares every agent's state with its hub's.
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
  const lease = ha.lease && new ActiveLease(ha.lease, hub, logger);
  if (lease === undefined) {
    logger.warn({}, unfenced);
  }
  const pair = new Pair(options, lease);
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
  readonly #lease: ActiveLease | undefined;
  readonly #machine = new HaStateMachine();
  readonly #metrics: HaMetrics;
  readonly #logger: Logger;
  #active: ActiveHub | undefined;
  #standby: Standby | undefined;
  #peer: { readonly isReachable: boolean; readonly state: HaState | undefined } = {
    isReachable: false,
    state: undefined,
  };
  /** The phase that runs, ended by an order. */
  #phase = new AbortController();
  #promotion: Order | undefined;
  #demotion: Order | undefined;
  #problem: string | undefined = 'waiting for the API server';

  constructor(options: HaPairOptions, lease: ActiveLease | undefined) {
    this.#options = options;
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
      this.#showHealth();
    });
    this.#showHealth();
  }

  /** Runs phase after phase until the program ends. */
  async run(): Promise<void> {
    const { signal } = this.#options.program;
    let role: 'active' | 'standby' = this.#options.ha.role === 'primary' ? 'active' : 'standby';
    if (role === 'standby') {
      this.#machine.to('syncing');
    }
    while (!signal.aborted) {
      role = role === 'active' ? await this.#beActive() : await this.#beStandby();
    }
    this.#promotion?.reject(new GrpcError(grpcStatus.unavailable, 'the principal is shutting down'));
  }

  status(): HAStatusResponse {
    const { ha } = this.#options;
    const followers = this.#active?.source.followers ?? [];
    const isActive = this.#machine.current === 'active';
    const lag = this.#lag();
    const peerState = isActive
      ? followers.length === 0
        ? ''
        : followers.some((one) => one.isReady)
          ? 'replicating'
          : 'syncing'
      : this.#standby?.isConnected
        ? 'active'
        : (this.#peer.state ?? '');
    return {
      state: this.#machine.current,
      preferredRole: ha.role,
      peerAddress: ha.peer?.address ?? '',
      peerReachable: isActive ? followers.length > 0 : this.#standby?.isConnected === true || this.#peer.isReachable,
      peerState,
      connectedReplicas: followers.length,
      lastEventTimestamp: BigInt(this.#active?.source.lastChange ?? this.#standby?.lastEventAt ?? 0),
      lastSequenceNum: this.#standby?.lastSequence ?? highestSequence(followers),
      connectedAgents: this.#active?.connectedAgents() ?? 0,
      fencing: this.#lease?.description ?? `none: ${unfenced}`,
      lagObjects: BigInt(lag.objects),
      lagSeconds: lag.ms / 1000,
    };
  }

  async promote(force: boolean): Promise<string> {
    const objection =
      this.#promotion === undefined
        ? promotionObjection(this.#machine.current, force)
        : 'a promotion is under way already';
    if (objection !== undefined) {
      throw new GrpcError(grpcStatus.failedPrecondition, objection);
    }
    this.#logger.warn({ force, state: this.#machine.current }, 'an operator promotes this principal');
    this.#promotion = newOrder();
    const { promise } = this.#promotion;
    this.#phase.abort(new Error('this principal is promoted'));
    try {
      return await promise;
    } finally {
      this.#promotion = undefined;
    }
  }

  async demote(): Promise<string> {
    const objection = demotionObjection(this.#machine.current);
    if (objection !== undefined) {
      throw new GrpcError(grpcStatus.failedPrecondition, objection);
    }
    this.#logger.warn({}, 'an operator demotes this principal');
    this.#demotion = newOrder();
    const { promise } = this.#demotion;
    this.#machine.to('replicating');
    this.#phase.abort(new Error('this principal is demoted'));
    return promise;
  }

  /** Becomes active when the Lease allows it, and is until something ends that. */
  async #beActive(): Promise<'active' | 'standby'> {
    const { signal } = this.#options.program;
    const promotion = this.#promotion;
    if (this.#lease === undefined) {
      await this.#lead(signal, () => undefined);
      return 'standby';
    }
    const waiting = new AbortController();
    const timer = promotion && setTimeout(() => waiting.abort(), promotionMs);
    // Only an operator's order takes over from another hub.
    const end = await this.#lease.hold(
      AbortSignal.any([signal, waiting.signal]),
      promotion === undefined,
      (leading, fence) => {
        clearTimeout(timer);
        return this.#lead(leading, fence);
      },
    );
    clearTimeout(timer);
    if (end === 'lost') {
      // Nobody else is known to be active: if the Lease is still free when it can be reached again, this one goes on.
      return 'active';
    }
    if (waiting.signal.aborted) {
      const text = `not active: ${this.#lease.description}`;
      promotion?.reject(new GrpcError(grpcStatus.failedPrecondition, text));
    }
    if (end === 'other-hub') {
      this.#logger.warn(
        { lease: this.#lease.description },
        'the other hub is active, or was last: this principal follows it',
      );
      this.#machine.to('syncing');
    }
    return 'standby';
  }

  async #lead(signal: AbortSignal, fence: () => void): Promise<void> {
    const phase = this.#newPhase(signal);
    this.#machine.to('active');
    this.#promotion?.resolve(this.#machine.current);
    const registered = this.#registered();
    const demoted = () => this.#demotion !== undefined;
    const ending = new AbortController();
    // While it starts, the end of the phase ends it at once; later it ends in order.
    const unlisten = onAbort(phase, () => ending.abort(phase.reason));
    try {
      const program = this.#programOf(ending.signal);
      this.#active = await startActiveHub({ ...this.#context(), program }, fence);
      unlisten();
      await aborted(phase);
    } catch (error) {
      if (!phase.aborted) {
        ending.abort();
        throw error;
      }
    }
    const isLost = signal.aborted && !this.#options.program.signal.aborted;
    if (!demoted() && isLost) {
      this.#machine.to('replicating');
      this.#machine.to('disconnected');
      this.#logger.error({}, 'this principal may have been replaced by the other hub: it serves no agents any more');
    }
    const left = await this.#active?.stop(isLost ? 'lost' : demoted() ? 'demoted' : 'stopped');
    this.#active = undefined;
    ending.abort(new Error('the phase has ended'));
    this.#unregister(registered);
    if (left !== undefined && left.objects > 0) {
      this.#logger.error({ objects: left.objects }, 'no standby has acknowledged the newest state of some objects');
    } else if (demoted() && !(left?.isFollowed && left.isKnown)) {
      this.#logger.error(
        {},
        'no standby has acknowledged the newest changes, as far as is known: they may be on this hub alone',
      );
    }
    this.#demotion?.resolve(this.#machine.current);
    this.#demotion = undefined;
  }

  async #beStandby(): Promise<'active' | 'standby'> {
    const phase = this.#newPhase(this.#options.program.signal);
    const registered = this.#registered();
    try {
      const hub = await startStandbyHub({ ...this.#context(), program: this.#programOf(phase) }, (peer) => {
        this.#peer = peer;
      });
      this.#standby = hub.standby;
      await hub.ended;
    } catch (error) {
      if (!phase.aborted) {
        throw error;
      }
    } finally {
      this.#unregister(registered);
      this.#standby = undefined;
      this.#peer = { isReachable: false, state: undefined };
    }
    return 'active';
  }

  #newPhase(signal: AbortSignal): AbortSignal {
    const phase = new AbortController();
    this.#phase = phase;
    onAbort(signal, () => phase.abort(signal.reason));
    return phase.signal;
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

  /** argocd-agent's answer. Traffic goes to the active principal alone; `/livez` is the probe for restarts. */
  #showHealth(): void {
    const state = this.#machine.current;
    const problem = state === 'active' ? this.#problem : `HA state: ${state} - not accepting traffic`;
    this.#options.program.health(problem, { 'X-HA-State': state });
  }

  #lag(): { readonly objects: number; readonly ms: number } {
    if (this.#active === undefined) {
      return this.#standby?.lag ?? { objects: 0, ms: 0 };
    }
    const { followers } = this.#active.source;
    return {
      objects: Math.max(0, ...followers.map(({ lag }) => lag)),
      ms: Math.max(0, ...followers.map(({ lagMs }) => lagMs)),
    };
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

function highestSequence(followers: readonly { readonly sequence: bigint }[]): bigint {
  return followers.map(({ sequence }) => sequence).sort((a, b) => (a < b ? 1 : -1))[0] ?? 0n;
}

function newOrder(): Order {
  const { promise, resolve, reject } = Promise.withResolvers<HaState>();
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
