import { Registry } from 'prom-client';
import type { SyncStats } from '../../lib/argocd/index.ts';
import type { EngineListener } from '../../lib/bridge/index.ts';
import { type ProgramLogger, versionInfo } from '../../lib/ops/index.ts';
import { freshCaches } from '../../principal/fresh-caches.ts';
import type { HubSynchronisation } from '../../principal/hub-sync.ts';
import { Replicas } from '../../principal/replicas/index.ts';
import { AgentIntroductions } from '../../principal/sessions/introductions.ts';
import { OpenSessions } from '../../principal/sessions/open-sessions.ts';
import { Sessions, type SessionsOptions } from '../../principal/sessions/sessions.ts';
import { shareAgents } from '../../principal/share-agents.ts';
import {
  type Answering,
  Machine,
  pickOne,
  principalNamespace,
  type Scene,
  type SimulatedEngine,
  type Site,
  startPrincipalProgram,
} from '../index.ts';
import { type AuditedReplica, type Auditor, replicaTiming } from './auditor.ts';
import { waitableCache } from './cache.ts';
import { type LeaseAccess, leaseAccess } from './lease-access.ts';
import { SimulatedSession } from './simulated-session.ts';

const programVersion = versionInfo().version;
const nothing = () => undefined;

/** What runs in a replica once it has started. */
interface Running {
  readonly replicas: Replicas;
  readonly engine: SimulatedEngine;
  readonly open: OpenSessions;
  readonly sessions: Sessions;
  readonly leases: LeaseAccess;
  readonly ended: Promise<void>;
}

/** One principal of several: everything real between the agents' streams and the hub's API server. */
export class SimulatedReplica implements AuditedReplica {
  readonly name: string;
  readonly pod: string;
  readonly machine: Machine;
  readonly #scene: Scene;
  readonly #auditor: Auditor;
  readonly #sessions = new Set<SimulatedSession>();
  #running: Running | undefined;
  /** No agent is in its reach. */
  isUnreachable = false;
  wasKilled = false;
  /** It takes no more agents, and ends. */
  isEnding = false;

  constructor(scene: Scene, name: string, pod: string, auditor: Auditor) {
    this.name = name;
    this.pod = pod;
    this.#scene = scene;
    this.#auditor = auditor;
    this.machine = new Machine(scene.time, { leavesRequests: true });
    this.machine.after(0, () => this.#start());
  }

  /** Whether an agent that dials can get it. */
  get isOpen(): boolean {
    return this.#running !== undefined && !this.isUnreachable && !this.isEnding && !this.machine.isStopped;
  }

  get identity(): string {
    return this.#running?.replicas.directory.identity ?? '';
  }

  get leads(): boolean {
    return this.#running?.replicas.isResponsible(undefined) ?? false;
  }

  leavesToOther(agent: string): boolean {
    return typeof this.#running?.replicas.directory.holderOf(agent) === 'object';
  }

  /** An object of the agent's that it knows in an older state than it had at this version of the hub; undefined: none is. */
  lacks(agent: string, version: number): string | undefined {
    const { Applications, ...others } = (this.#running as Running).engine.caches;
    const isAll = this.#scene.layout.projectMapping === 'destination';
    const lacking =
      Applications.lacks(version, ({ metadata }) => isAll || metadata.namespace === agent) ??
      Object.values(others)
        .map((store) => store?.lacks(version, () => true))
        .find((object) => object !== undefined);
    return lacking?.metadata.name;
  }

  /** Whether it serves the agent. */
  serves(agent: string): boolean {
    return this.#running?.open.get(agent)?.isServed ?? false;
  }

  /** Whether it has a stream of the agent. */
  hasStreamOf(agent: string): boolean {
    return this.#running?.open.get(agent) !== undefined;
  }

  stats(agent: string): SyncStats {
    return this.#running?.engine.program.stats(agent) ?? { pending: 0, inFlight: 0, queued: 0, retrying: 0 };
  }

  /** A new stream of an agent. */
  answer(hangUp: () => void): Answering {
    const session: SimulatedSession = new SimulatedSession(
      this.machine,
      (opened) => (this.#running as Running).sessions.subscribe(opened),
      hangUp,
    );
    this.#sessions.add(session);
    return { program: session, machine: this.machine };
  }

  breakWatch(): void {
    const { engine, leases } = this.#running ?? {};
    if (engine !== undefined && leases !== undefined) {
      pickOne(this.#scene.dice, [leases.store, ...engine.stores]).breakWatch();
    }
  }

  /** The API server is out of reach. */
  cutOff(): void {
    this.machine.cutOff();
    for (const store of [this.#running?.leases.store, ...(this.#running?.engine.stores ?? [])]) {
      store?.breakWatch();
    }
  }

  /** As the spread over the replicas does it: an agent has to find another one. */
  sendAway({ name }: Site): void {
    this.machine.after(0, () => this.#running?.sessions.lost(name, 'another principal has fewer agents'));
  }

  kill(): void {
    this.wasKilled = !this.machine.isDead;
    this.machine.die();
  }

  /**
   * After the history. What waits in a killed program waits for ever, and the runtime keeps signals that follow others for those that
   * listen to them: with an end to the program, they go.
   */
  discard(): void {
    this.machine.die();
    this.#running?.engine.stop.abort();
  }

  /** A clean end, in the order of `principal/run.ts`. */
  end(): void {
    this.isEnding = true;
    this.machine.after(0, () => void this.#end());
  }

  async #end(): Promise<void> {
    const running = this.#running;
    if (running !== undefined) {
      running.engine.stop.abort();
      for (const session of this.#sessions) {
        session.close();
      }
      await running.ended;
      await running.replicas.close();
    }
    this.machine.die();
  }

  #start(): void {
    const scene = this.#scene;
    const { machine, name, pod } = this;
    const auditor = this.#auditor;
    const say = (fields: object, message: string) =>
      scene.trace(`${name}: ${message} ${JSON.stringify(fields, (_, v) => (v instanceof Error ? v.message : v))}`);
    const logger: ProgramLogger = { debug: say, info: say, warn: say, error: say, child: () => logger } as never;
    const leases = leaseAccess(scene.hub, scene.dice, machine, auditor.ofLeases(this));
    let lives = 0;
    const replicas = new Replicas({
      client: leases.client,
      namespace: principalNamespace,
      informer: leases.informer,
      timing: replicaTiming,
      caughtUp: (agent, signal) => caughtUp(agent, signal),
      address: '',
      fingerprint: '',
      version: programVersion,
      env: { POD_NAME: pod },
      newName: () => `${name}-${++lives}`,
      registry: new Registry(),
      logger,
    });
    const engine = startPrincipalProgram(scene, {
      machine,
      audit: (ownerOf, seenOwnerOf) => auditor.ofObjects(this, ownerOf, seenOwnerOf),
      guard: (store, kind) => replicas.fence.guard(store, kind),
      isResponsible: (agent) => replicas.isResponsible(agent),
      lastSeen: (agent) => replicas.holds.lastSeen(agent),
      managedLastSeen: (agent) => replicas.holds.managedLastSeen(agent),
    });
    const { caches } = engine;
    const caughtUp = freshCaches(
      {
        Applications: waitableCache(caches.Applications),
        AppProjects: waitableCache(caches.AppProjects),
        'all AppProjects': waitableCache(caches.AppProjects),
        'Argo CD settings': waitableCache(undefined),
        Secrets: waitableCache(caches.Secrets),
        'GPG keys': waitableCache(caches['GPG keys']),
      },
      { mapping: scene.layout.projectMapping, signal: engine.stop.signal },
    );
    const isMapped = () => true;
    const names = scene.sites.map((site) => site.name);
    const open = new OpenSessions(isMapped);
    const clusterInfos = { connected: nothing, disconnected: nothing, servedElsewhere: nothing };
    const sessions = new Sessions({
      open,
      introductions: new AgentIntroductions(isMapped),
      sync: engine.program,
      isMapped,
      clusterChanged: nothing,
      pinnedMode: nothing,
      records: replicas.holds,
      clusterInfos,
      live: { connected: nothing, disconnected: nothing, answered: nothing },
      receiveWindow: {},
      metrics: { connected: nothing, refusedEvent: nothing },
      tracer: undefined,
      detail: new Set(),
      logger,
      eventLogger: logger,
      adapt: ({ stream, listener }: { stream: unknown; listener: EngineListener }) =>
        (stream as SimulatedSession).adapt(listener),
    } as unknown as SessionsOptions);
    const hub = {
      sync: engine.program,
      servedElsewhere: (agent, isServed, isManaged) => engine.applications.servedElsewhere(agent, isServed, isManaged),
      responsibleFor: (agent) => engine.applications.responsibleFor(agent),
    } as Partial<HubSynchronisation> as HubSynchronisation;
    shareAgents({
      replicas,
      sessions: {
        held: (agent) => {
          auditor.attaches(this, agent);
          sessions.held(agent);
        },
        lost: (agent, why) => sessions.lost(agent, why),
      },
      hub,
      agents: { has: isMapped, names: () => names },
      records: replicas.holds,
      clusterInfos: clusterInfos as never,
      protectMirrors: (agent) => {
        if (replicas.holds.modeOf(agent) === 'autonomous') {
          engine.program.expect(agent, 'autonomous');
        }
      },
    });
    this.#running = { replicas, engine, open, sessions, leases, ended: replicas.run(engine.stop.signal) };
  }
}
