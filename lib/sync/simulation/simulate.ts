import { AgentSync, PrincipalSync, type SyncLog, type SyncStats } from '../../argocd/index.ts';
import { ArgoCD } from './argo-cd.ts';
import { differences } from './check.ts';
import { Cluster, ClusterStore } from './cluster.ts';
import { Dice } from './dice.ts';
import { agentNamespace, byDestination, byNamespace, type Layout } from './layout.ts';
import { Stream } from './network.ts';
import { attempt, Users } from './scenario.ts';
import { VirtualTime } from './virtual-time.ts';

/** What came out of one simulated history. */
export interface Outcome {
  readonly seed: number;
  /** What was wrong in the end; empty when all is well. */
  readonly problems: readonly string[];
  readonly events: number;
  /** Writes to API servers. */
  readonly writes: number;
  /** Virtual time in milliseconds. */
  readonly time: number;
}

const principalUid = 'principal';
const maxEvents = 20_000;

/**
 * Runs one history: a hub and up to three managed clusters, users on all of them, and every kind of fault, for about a
 * minute; then nothing happens any more, and everything must come to rest with both sides equal.
 * @param trace called for everything that happens
 */
export async function simulate(seed: number, trace?: (line: string) => void): Promise<Outcome> {
  const world = new World(seed, trace);
  const calm = await world.live();
  const problems = calm ? world.problems() : ['it never comes to rest'];
  world.end();
  return { seed, problems, events: world.time.events, writes: world.writes, time: world.time.now() };
}

/** A program that can be killed and started again, without memory of before. */
interface Process<T> {
  readonly sync: T;
  readonly store: ClusterStore;
  readonly stop: AbortController;
}

interface Site {
  readonly name: string;
  readonly cluster: Cluster;
  readonly argoCD: ArgoCD;
  agent: Process<AgentSync>;
  stream: Stream | undefined;
  /** Users did something on this cluster. */
  meddled: boolean;
}

class World {
  readonly time = new VirtualTime();
  readonly #dice: Dice;
  readonly #users: Users;
  readonly #layout: Layout;
  readonly #trace: ((line: string) => void) | undefined;
  readonly #hub: Cluster;
  readonly #sites: Site[];
  #principal: Process<PrincipalSync>;
  #starts = 0;
  #restarted = false;
  #quiet = false;

  constructor(seed: number, trace: ((line: string) => void) | undefined) {
    this.#dice = new Dice(seed);
    this.#layout = seed % 2 === 0 ? byNamespace : byDestination;
    this.#users = new Users(this.#dice, this.#layout);
    this.#trace = trace;
    this.#hub = new Cluster('hub', this.time);
    this.#sites = Array.from({ length: this.#dice.integer(1, 2) }, (_, i) => {
      const name = `agent${i}`;
      const cluster = new Cluster(name, this.time);
      const argoCD = new ArgoCD(cluster, this.time, this.#dice);
      return { name, cluster, argoCD, agent: this.#startAgent(name, cluster), stream: undefined, meddled: false };
    });
    if (trace !== undefined) {
      for (const cluster of [this.#hub, ...this.#sites.map((site) => site.cluster)]) {
        cluster.watch(({ now, old }) =>
          this.#say(`${cluster.name}| ${now === undefined ? 'gone ' : ''}${JSON.stringify(now ?? old)}`),
        );
      }
    }
    this.#principal = this.#startPrincipal();
  }

  get writes(): number {
    return this.#sites.reduce((sum, { cluster }) => sum + cluster.writes, this.#hub.writes);
  }

  /** Lives through the turmoil and then the calm. False when it does not come to rest. */
  async live(): Promise<boolean> {
    for (const site of this.#sites) {
      this.#connect(site);
    }
    const steps = this.#dice.integer(5, 40);
    for (let step = 0; step < steps; step++) {
      if (
        !(await this.time.runUntil(this.time.now() + this.#dice.delay(this.#dice.chance(0.5) ? 20 : 1_500), maxEvents))
      ) {
        return false;
      }
      this.#say(this.#somethingHappens());
    }
    this.#quiet = true;
    this.#hub.down = false;
    for (const site of this.#sites) {
      site.cluster.down = false;
    }
    this.#say('quiet');
    return this.time.runUntil(Number.POSITIVE_INFINITY, maxEvents);
  }

  problems(): string[] {
    return this.#sites.flatMap((site) => [
      ...differences(this.#hub, site.name, site.cluster, principalUid, this.#layout),
      ...this.#operationProblems(site),
      ...atRest('agent', site.agent.sync.stats()),
      ...atRest('principal', this.#principal.sync.stats(site.name)),
    ]);
  }

  /**
   * The last operation of an Application must have been started, and once only while no program lost its memory. On a
   * cluster where users delete copies an operation may be refused, and shows so by being gone.
   */
  #operationProblems(site: Site): string[] {
    const problems: string[] = [];
    for (const [id, { uid, revision }] of this.#users.operations) {
      const [namespace = '', name = ''] = id.split('/');
      const app = this.#hub.get({ namespace, name });
      if (app?.metadata.uid === uid && this.#layout.agentOf(app) === site.name && !site.meddled) {
        const started = site.argoCD.started.get(revision) ?? 0;
        if (started === 0 || (started > 1 && !this.#restarted)) {
          problems.push(`${id}: ${revision} was started ${started} times`);
        }
      }
    }
    return problems;
  }

  end(): void {
    this.#principal.stop.abort();
    for (const { agent } of this.#sites) {
      agent.stop.abort();
    }
  }

  #somethingHappens(): string {
    const site = this.#dice.pick(this.#sites) as Site;
    if (this.#layout.otherDestinations.length > 0 && this.#dice.chance(0.15)) {
      return this.#somethingMoves();
    }
    const choice = this.#dice.roll();
    if (choice < 0.45) {
      return `user on hub: ${attempt(() => this.#users.actOnHub(this.#hub, site.name))}`;
    }
    if (choice < 0.6) {
      site.meddled = true;
      return `user on ${site.name}: ${attempt(() => this.#users.actOnManaged(site.cluster))}`;
    }
    if (choice < 0.7) {
      site.stream?.break();
      return `${site.name}: connection breaks`;
    }
    if (choice < 0.77) {
      return this.#restartAgent(site);
    }
    if (choice < 0.84) {
      return this.#restartPrincipal();
    }
    if (choice < 0.92) {
      const store = this.#dice.chance(0.5) ? this.#principal.store : site.agent.store;
      store.breakWatch();
      return 'a watch breaks';
    }
    const cluster = this.#dice.chance(0.5) ? this.#hub : site.cluster;
    cluster.down = true;
    this.time.after(this.#dice.delay(1_000), () => {
      cluster.down = false;
    });
    return `${cluster.name}: API server down`;
  }

  #somethingMoves(): string {
    const agents = this.#sites.map(({ name }) => name);
    const ref = this.#users.anyOnHub(this.#hub);
    if (ref === undefined) {
      return 'nothing';
    }
    const move = () => attempt(() => this.#users.moveOnHub(this.#hub, ref, agents));
    if (this.#dice.chance(0.5)) {
      return `user on hub: ${move()}`;
    }
    // There and perhaps back while nobody can be told.
    for (const { stream } of this.#sites) {
      stream?.break();
    }
    return `links break, user on hub: ${move()}, ${move()}, ${move()}`;
  }

  #connect(site: Site): void {
    if (site.stream?.open) {
      return;
    }
    site.stream = new Stream(this.time, this.#dice, {
      agent: site.agent.sync,
      principal: this.#principal.sync,
      name: site.name,
      layout: this.#layout,
      trace: (line) => this.#say(line),
    });
    this.#watchStream(site, site.stream);
  }

  /** The agent dials again some time after its stream broke. */
  #watchStream(site: Site, stream: Stream): void {
    stream.onBreak = () =>
      this.time.after(this.#quiet ? 100 : this.#dice.delay(2_000), () => {
        if (site.stream === stream) {
          this.#connect(site);
        }
      });
  }

  #restartAgent(site: Site): string {
    this.#restarted = true;
    site.agent.stop.abort();
    site.stream?.break();
    site.agent = this.#startAgent(site.name, site.cluster);
    return `${site.name}: agent restarts`;
  }

  #restartPrincipal(): string {
    this.#restarted = true;
    this.#principal.stop.abort();
    for (const site of this.#sites) {
      site.stream?.break();
    }
    this.#principal = this.#startPrincipal();
    return 'principal restarts';
  }

  #startAgent(name: string, cluster: Cluster): Process<AgentSync> {
    const stop = new AbortController();
    const store = new ClusterStore(cluster, this.time, this.#dice, stop.signal);
    const sync = new AgentSync({
      applications: store,
      namespace: agentNamespace,
      ...(this.#layout.mapping === undefined ? {} : { mapping: this.#layout.mapping, isAllowed: () => true }),
      mismatchPolicy: this.#dice.chance(0.5) ? 'recreate' : 'upsert',
      adoptionPolicy: 'always',
      onRecreate: 'ignore',
      ...this.#common(name),
    });
    sync.start(stop.signal);
    return { sync, store, stop };
  }

  #startPrincipal(): Process<PrincipalSync> {
    const stop = new AbortController();
    const store = new ClusterStore(this.#hub, this.time, this.#dice, stop.signal);
    const sync = new PrincipalSync({
      applications: store,
      principalUid,
      agentOf: this.#layout.agentOf,
      ...(this.#layout.namespaceOf === undefined ? {} : { namespaceOf: this.#layout.namespaceOf }),
      ...this.#common('principal'),
    });
    sync.start(stop.signal);
    return { sync, store, stop };
  }

  #common(who: string) {
    let ids = 0;
    const incarnation = ++this.#starts;
    const say = (fields: object, message: string) =>
      this.#say(`${who}: ${message} ${JSON.stringify(fields, (_, v) => (v instanceof Error ? v.message : v))}`);
    const log: SyncLog = { debug: say, info: say, warn: say, error: say };
    return {
      log,
      clock: this.time,
      random: this.#dice.roll,
      newId: () => `${who}.${incarnation}.${++ids}`,
      today: () => new Date(0),
      maxInFlight: this.#dice.integer(1, 4),
      concurrency: this.#dice.integer(1, 4),
    };
  }

  #say(line: string): void {
    this.#trace?.(`${Math.round(this.time.now())} ${line}`);
  }
}

function atRest(who: string, stats: SyncStats): string[] {
  return Object.values(stats).some((count) => count !== 0) ? [`${who} is not idle: ${JSON.stringify(stats)}`] : [];
}
