import { hostname } from 'node:os';
import { aborted, type Logger, onAbort } from '../../lib/base/index.ts';
import { type RunningProgram, retryForever } from '../../lib/bridge/index.ts';
import { type Detail, FatalError, type Loggers } from '../../lib/ops/index.ts';
import type { HAStatusResponse } from '../../proto/gen/haadminapi/haadmin.ts';
import { ensurePrincipalUid } from '../principal-uid.ts';
import type { PrincipalSettings } from '../settings.ts';
import { ActiveLease } from './active-lease.ts';
import { type ActiveHub, startActiveHub } from './active-phase.ts';
import { serveAdministration } from './administration.ts';
import { type HubRole, type HubRoleName, OwnRole, SharedRole } from './hub-role.ts';
import { type HaMetrics, haMetrics } from './metrics.ts';
import { RoleChanges } from './role-changes.ts';
import type { HaSettings } from './settings.ts';
import type { Standby } from './standby.ts';
import { type StandbyHub, startStandbyHub } from './standby-phase.ts';
import { HaStateMachine } from './states.ts';
import { haStatus, type KnownPeer } from './status.ts';

const unfenced =
  'nothing keeps both principals from being active at the same time (split brain): promote one only when the other has been demoted or has stopped, or set --ha-lease-kubeconfig';

/** How long an order to promote may wait for the comparison with what the other hub had last, ms. */
const comparisonMs = 5_000;

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
    ? await SharedRole.open({
        client,
        namespace,
        preferred,
        pod: options.env.POD_NAME ?? hostname(),
        logger,
        signal,
        failed: program.failed,
      })
    : new OwnRole(preferred);
  const pair = new Pair(options, role, lease);
  const isAgent = (name: string) => pair.isAgent(name);
  // Before any role: whoever waits for one answers, too.
  const admin = await serveAdministration({ settings, ha, program, service: pair, isAgent, logger }).catch(
    (error: unknown) => {
      if (!signal.aborted) {
        throw error;
      }
      return undefined;
    },
  );
  await pair.run().catch(program.failed);
  logger.info('principal stops');
  await Promise.all([admin?.close(), lease?.close()]);
}

class Pair {
  readonly #options: HaPairOptions;
  readonly #role: HubRole;
  readonly #lease: ActiveLease | undefined;
  readonly #changes: RoleChanges;
  readonly #machine = new HaStateMachine();
  readonly #metrics: HaMetrics;
  readonly #logger: Logger;
  #active: ActiveHub | undefined;
  /**
   * What both hubs had when the Lease was lost, or as this one stopped following: what is deleted until this principal has caches as
   * an active one is found by comparing.
   */
  #bothHad: ReadonlySet<string> | undefined;
  #standby: Standby | undefined;
  #standbyHub: StandbyHub | undefined;
  #peer: KnownPeer = { isReachable: false, state: undefined };
  /** What runs, and for which role; it ends when the hub has another one. */
  #phase = new AbortController();
  #phaseRole: HubRoleName | undefined;
  #isServing = false;
  /** Whether no principal of this hub needs the Lease when this one is not active any more. */
  #isLast = true;
  #problem: string | undefined = 'waiting for the API server';
  /** Of the newest phase, also after it. */
  #isAgent: (name: string) => boolean = () => false;

  constructor(options: HaPairOptions, role: HubRole, lease: ActiveLease | undefined) {
    this.#options = options;
    this.#role = role;
    this.#lease = lease;
    this.#logger = options.loggers.root;
    const { program, settings } = options;
    this.#changes = new RoleChanges({
      role,
      lease,
      machine: this.#machine,
      program,
      flags: settings.flags,
      changedHere: async () => (await this.#standby?.changedHere(comparisonMs, program.signal)) ?? role.changedHere,
      logger: this.#logger,
    });
    this.#metrics = haMetrics(options.program.registry, this.#machine, {
      followers: () => this.#active?.source.followers.length ?? 0,
      lag: () => this.#lag(),
      refused: () => this.#refused().length,
      isFollowing: () => this.#standby?.isConnected === true,
      lastSequence: () => Number(this.#standby?.lastSequence ?? 0n),
      isFenced: () => lease !== undefined,
    });
    this.#machine.subscribe((now, before) => {
      this.#logger.info({ state: now, before }, `this principal of the pair is ${now}`);
      if (this.#standby !== undefined && now !== 'active') {
        this.#report();
      }
      this.#showHealth();
    });
    role.subscribe(() => this.#roleSeen());
    this.#showHealth();
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
          await this.#changes.carryOutPromotion();
          break;
        case 'demoting':
          await this.#changes.carryOutDemotion();
          break;
      }
    }
    this.#changes.end();
  }

  status(): HAStatusResponse {
    return haStatus({
      ha: this.#options.ha,
      state: this.#machine.current,
      active: this.#active,
      standby: this.#standby,
      peer: this.#peer,
      lag: this.#lag(),
      refused: this.#refused(),
      problem: this.#active?.problem() ?? this.#standbyHub?.problem(),
      fencing: this.#lease?.description ?? `none: ${unfenced}`,
    });
  }

  /** Whether an agent of that name has a cluster Secret, as far as a phase of this principal has seen. */
  isAgent(name: string): boolean {
    return this.#isAgent(name);
  }

  promote(force: boolean): Promise<string> {
    return this.#changes.promote(force);
  }

  demote(): Promise<string> {
    return this.#changes.demote();
  }

  /** Is active while the Lease allows it and the hub is. */
  async #beActive(): Promise<void> {
    const phase = this.#newPhase('active');
    // Others of this hub may have the Lease while this one waits for it.
    this.#isLast = !this.#options.settings.flags['enable-replicas'];
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
      this.#machine.to('syncing');
      await this.#changes.yielded();
    }
  }

  /**
   * @param phase ends with the role
   * @param leading ends with the Lease, too
   */
  async #lead(phase: AbortSignal, leading: AbortSignal, fence: () => void): Promise<void> {
    this.#machine.to('active');
    this.#changes.becameActive();
    const registered = this.#registered();
    const ending = new AbortController();
    // While it starts, the end of the phase ends it at once; later it ends in order.
    const unlisten = onAbort(leading, () => ending.abort(leading.reason));
    try {
      const program = this.#programOf(ending.signal);
      this.#active = await startActiveHub({ ...this.#context(), program }, fence, this.#bothHad);
      this.#isAgent = this.#active.isAgent;
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
    const ends = !isDemoted || this.#changes.isDemotionOrdered || left?.isFollowed === true;
    this.#isLast = ends && this.#active?.hasPeers() !== true;
    this.#bothHad = isLost ? (this.#active?.source.bothHad() ?? this.#bothHad) : undefined;
    this.#active = undefined;
    ending.abort(new Error('the phase has ended'));
    this.#unregister(registered);
    if (left !== undefined && left.objects > 0) {
      this.#logger.error({ objects: left.objects }, 'no standby has acknowledged the newest state of some objects');
    }
    if (isDemoted) {
      await this.#changes.demoted(left);
    }
  }

  async #beStandby(): Promise<void> {
    const phase = this.#newPhase('standby');
    this.#bothHad = undefined;
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
              this.#report();
            }
          },
          disconnected: (peer) => {
            this.#peer = peer;
          },
          changedHere: () => this.#report(),
          isPromoted: () => this.#role.current !== 'standby',
        },
      );
      this.#isServing = true;
      this.#standbyHub = hub;
      this.#isAgent = hub.isAgent;
      this.#showHealth();
      await hub.ended;
      this.#bothHad = hub.bothHad();
    } catch (error) {
      if (!phase.aborted) {
        throw error;
      }
    } finally {
      this.#isServing = false;
      this.#unregister(registered);
      this.#standby = undefined;
      this.#standbyHub = undefined;
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

  #refused(): readonly string[] {
    return this.#active?.source.refusedObjects ?? this.#standby?.refusedObjects ?? [];
  }

  /** This principal follows the other hub: the others of this hub are told what they need to know. */
  #report(): void {
    if (this.#standby !== undefined) {
      this.#role.report(this.#machine.current, this.#standby.unrestored);
    }
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
