import type { AgentMode, SyncStats } from '../lib/argocd/index.ts';
import { ArgoCD } from './argo-cd.ts';
import { AutonomousProjects } from './autonomous-projects.ts';
import { AutonomousSites } from './autonomous-sites.ts';
import { type LastingAnswer, SimulatedCluster } from './cluster.ts';
import { ClusterSecrets } from './cluster-secrets.ts';
import { pickOne, SeededDice } from './dice.ts';
import { ForeignCopies } from './foreign-copies.ts';
import { byDestination, byNamespace, type Layout } from './layout.ts';
import { ManagedApplications } from './managed-applications.ts';
import { ManagedReplicas } from './managed-replicas.ts';
import { Stream } from './network.ts';
import { OddValues } from './odd-values.ts';
import { OnePrincipal } from './one-principal.ts';
import { Permissions } from './permissions.ts';
import { startAgentProgram } from './programs.ts';
import { UnkindServers } from './unkind-servers.ts';
import { type Ingredient, Unkindness } from './unkindness.ts';
import { VirtualTime } from './virtual-time.ts';
import { Workloads } from './workloads.ts';
import { attempt, endProcess, type HubSide, type Scene, type Site, type Topic } from './world.ts';

/** What came out of one simulated history. */
export interface HistoryOutcome {
  readonly seed: number;
  /** What was wrong in the end; empty when all is well. */
  readonly problems: readonly string[];
  readonly events: number;
  /** Writes to API servers. */
  readonly writes: number;
  /** Virtual time in milliseconds. */
  readonly time: number;
}

const maxEvents = 20_000;
/** How often a hub side whose programs never rest is looked at before its histories end. */
const mostLooks = 60;
/** How often a world is looked at in which something is tried again for ever. */
const lastingRestMs = 60_000;

/** How a history is told. */
export interface HistoryOptions {
  /** Called for everything that happens. */
  readonly trace?: ((line: string) => void) | undefined;
  /** All of this befalls it, and nothing else that may. Default: what the seed draws. */
  readonly unkind?: readonly Ingredient[] | undefined;
  /** What serves the agents on the hub. Default: one principal. */
  readonly hubSide?: ((scene: Scene) => HubSide) | undefined;
  /** Called when the history is over, before anything else of this process runs. */
  readonly over?: (() => void) | undefined;
}

/**
 * Runs one history: a hub and one or two managed clusters, users on all of them, and every kind of fault, for about a
 * minute; then nothing happens any more, and everything must come to rest with both sides equal.
 */
export async function simulate(seed: number, options: HistoryOptions = {}): Promise<HistoryOutcome> {
  const world = new World(seed, options);
  const calm = await world.live();
  const problems = calm ? world.problems() : [...world.violations, 'it never comes to rest'];
  await world.end();
  options.over?.();
  // Without a pause between promises the runtime never frees the targets of weak references (of abort signals).
  await new Promise<void>((resolve) => setImmediate(resolve));
  return { seed, problems, events: world.time.events, writes: world.writes, time: world.time.now() };
}

class World implements Scene {
  readonly time = new VirtualTime();
  readonly dice: SeededDice;
  readonly layout: Layout;
  readonly hub: SimulatedCluster;
  readonly sites: readonly Site[];
  #trace: ((line: string) => void) | undefined;
  readonly #topics: readonly Topic[];
  readonly #hubSide: HubSide;
  readonly unkind: Unkindness;
  readonly values: OddValues;
  readonly #servers: UnkindServers;
  readonly permissions: Permissions;
  readonly clusterSecrets: ClusterSecrets;
  readonly #workloads: Workloads;
  readonly makesNamespaces: boolean = true;
  readonly everyKind: boolean;
  #quiet = false;
  restarted = false;
  principalUid = 'principal';
  readonly foreign: ForeignCopies;

  constructor(seed: number, { trace, unkind, hubSide = (scene) => new OnePrincipal(scene) }: HistoryOptions) {
    this.dice = new SeededDice(seed);
    this.unkind = new Unkindness(seed, unkind);
    this.values = new OddValues(this.unkind);
    this.#servers = new UnkindServers(this);
    this.layout = seed % 2 === 0 ? byNamespace : byDestination;
    this.permissions = new Permissions(this);
    this.clusterSecrets = new ClusterSecrets(this);
    this.#trace = trace;
    // Other sites cover Applications better.
    this.everyKind = seed % 5 === 0;
    this.hub = new SimulatedCluster('hub', this.time);
    this.#workloads = new Workloads(this.hub, this.layout.agentOf);
    // Half of all histories have managed agents only, the others agents of both modes.
    const isMixed = seed % 4 >= 2;
    this.sites = Array.from({ length: this.dice.integer(1, 2) }, (_, i) => {
      const name = `agent${i}`;
      const cluster = new SimulatedCluster(name, this.time);
      const mode: AgentMode = isMixed && (i === 0 || this.dice.chance(0.5)) ? 'autonomous' : 'managed';
      // Half of the histories with autonomous agents have one of argocd-agent's; it does not know of other kinds here.
      const isGoManaged = this.unkind.has('goManaged') && this.layout === byNamespace && mode === 'managed';
      const isGo = i === 0 && !this.everyKind && (mode === 'autonomous' ? seed % 8 >= 6 : isGoManaged);
      const site = { name, mode, isGo, cluster };
      this.#workloads.follow(cluster);
      const argoCD = new ArgoCD(cluster.of('Application'), {
        time: this.time,
        dice: this.dice,
        unkind: this.unkind,
        removesWorkload: (application) => this.#workloads.removed(name, application),
      });
      return { ...site, argoCD, agent: startAgentProgram(this, site), stream: undefined, meddled: false };
    });
    this.foreign = new ForeignCopies(this, () => this.#workloads.isUserActing);
    this.#topics = [
      new ManagedApplications(this),
      ...(isMixed ? [new AutonomousSites(this)] : []),
      ...(this.everyKind ? [new ManagedReplicas(this), new AutonomousProjects(this)] : []),
    ];
    if (isMixed) {
      this.makesNamespaces = this.dice.chance(0.7);
      this.#unready();
    }
    if (trace !== undefined) {
      for (const cluster of [this.hub, ...this.sites.map((site) => site.cluster)]) {
        cluster.watch((object, isGone) =>
          this.trace(`${cluster.name}| ${isGone ? 'gone ' : ''}${JSON.stringify(object)}`),
        );
      }
    }
    this.#hubSide = hubSide(this);
  }

  get writes(): number {
    return this.sites.reduce((sum, { cluster }) => sum + cluster.writes, this.hub.writes);
  }

  /** Lives through the turmoil and then the calm. False when it does not come to rest. */
  async live(): Promise<boolean> {
    for (const site of this.sites) {
      this.#connect(site);
    }
    const steps = this.dice.integer(5, 40);
    for (let step = 0; step < steps; step++) {
      const pause = this.dice.delay(this.dice.chance(0.5) ? 20 : 1_500);
      if (!(await this.time.runUntil(this.time.now() + pause, maxEvents))) {
        return false;
      }
      this.trace(this.#somethingHappens());
    }
    this.#quiet = true;
    this.hub.missing.clear();
    for (const cluster of [this.hub, ...this.sites.map((site) => site.cluster)]) {
      cluster.down = false;
      cluster.forbids = false;
    }
    this.#servers.calm();
    this.permissions.calm();
    this.clusterSecrets.calm();
    this.#hubSide.calm();
    this.trace('quiet');
    // What is refused for good is tried again for ever.
    const restMs = this.#hubSide.restMs ?? (this.lasting.length > 0 ? lastingRestMs : undefined);
    return restMs === undefined ? this.time.runUntil(Number.POSITIVE_INFINITY, maxEvents) : this.#comesToRest(restMs);
  }

  /** What happened and must never happen. */
  get violations(): string[] {
    return [
      ...this.#hubSide.problems(false),
      ...this.foreign.problems,
      ...(this.unkind.has('workloads') ? this.#workloads.problems : []),
    ];
  }

  problems(): string[] {
    // After what must never happen, the rest means nothing.
    const { violations } = this;
    return violations.length > 0 ? violations : [...this.#hubSide.problems(true), ...this.#differences()];
  }

  /** All is well twice, and nothing was written in between. What is not well in the end is for {@link problems}. */
  async #comesToRest(restMs: number): Promise<boolean> {
    let writes = -1;
    for (let look = 0; look < mostLooks; look++) {
      if (!(await this.time.runUntil(this.time.now() + restMs, maxEvents))) {
        return false;
      }
      const isQuiet = writes === this.#objectWrites;
      writes = this.#objectWrites;
      if (isQuiet && (this.problems().length === 0 || this.violations.length > 0)) {
        return true;
      }
    }
    return writes === this.#objectWrites;
  }

  #differences(): string[] {
    return this.sites.flatMap((site) => [
      ...this.#topicsOf(site).flatMap((topic) => topic.problems(site)),
      ...(this.#isHindered(site) ? [] : this.#restless(site)),
    ]);
  }

  get lasting(): readonly LastingAnswer[] {
    return this.#servers.lasting;
  }

  /** Whether something is tried on it for ever. */
  #isHindered(site: Site): boolean {
    return this.lasting.some(({ cluster }) => cluster === site.cluster);
  }

  #restless(site: Site): string[] {
    return [
      ...atRest('agent', site.agent.program.stats()),
      ...atRest('principal', withoutFailing(this.#hubSide.stats(site), this.#failing(site))),
    ];
  }

  #failing(site: Site): number {
    return this.#topicsOf(site).reduce((sum, topic) => sum + (topic.failing?.(site) ?? 0), 0);
  }

  /** The namespaces of some autonomous agents are not there yet. */
  #unready(): void {
    for (const { name, mode } of this.sites) {
      if (mode === 'autonomous' && this.dice.chance(0.3)) {
        this.hub.missing.add(name);
        this.time.after(this.dice.delay(5_000), () => this.hub.missing.delete(name));
      }
    }
  }

  /** Ends all programs: what nobody waits for any more would stay in memory. What they say to that is not told. */
  async end(): Promise<void> {
    this.#trace = undefined;
    const ended = this.time.end();
    this.#hubSide.end();
    for (const { agent } of this.sites) {
      endProcess(agent);
    }
    await ended;
  }

  /** Writes to API servers but those by which programs show that they live. */
  get #objectWrites(): number {
    return this.writes - (this.#hubSide.renewals ?? 0);
  }

  trace(line: string): void {
    this.#trace?.(`${Math.round(this.time.now())} ${line}`);
  }

  #topicsOf(site: Site): readonly Topic[] {
    return this.#topics.filter((topic) => topic.concerns(site));
  }

  #somethingHappens(): string {
    const site = this.dice.pick(this.sites) as Site;
    const befallen = this.#servers.befalls(site) ?? this.permissions.change() ?? this.clusterSecrets.change();
    if (befallen !== undefined) {
      return befallen;
    }
    for (const topic of this.#topics) {
      const happened = this.#workloads.byUser(() => topic.beyondOneSite?.());
      if (happened !== undefined) {
        return happened;
      }
    }
    const choice = this.dice.roll();
    if (choice < 0.45) {
      const topic = pickOne(this.dice, this.#topicsOf(site));
      return `user on hub: ${this.#workloads.byUser(() => attempt(() => topic.onHub(site)))}`;
    }
    if (choice < 0.6) {
      site.meddled = true;
      const topic = pickOne(this.dice, this.#topicsOf(site));
      return `user on ${site.name}: ${this.#workloads.byUser(() => attempt(() => topic.onSite(site)))}`;
    }
    if (choice < 0.7) {
      site.stream?.break();
      return `${site.name}: connection breaks`;
    }
    if (choice < 0.77) {
      return this.#restartAgent(site);
    }
    if (choice < 0.84) {
      return this.#hubSide.happens();
    }
    if (choice < 0.92) {
      if (this.dice.chance(0.5)) {
        this.#hubSide.breakWatch();
      } else {
        pickOne(this.dice, site.agent.stores).breakWatch();
      }
      return 'a watch breaks';
    }
    const cluster = this.dice.chance(0.5) ? this.hub : site.cluster;
    if (this.#topics.length > 1 && this.dice.chance(0.3)) {
      cluster.forbids = true;
      this.time.after(this.dice.delay(1_000), () => {
        cluster.forbids = false;
      });
      return `${cluster.name}: API server forbids to write`;
    }
    cluster.down = true;
    this.time.after(this.dice.delay(1_000), () => {
      cluster.down = false;
    });
    return `${cluster.name}: API server down`;
  }

  #connect(site: Site): void {
    if (site.stream?.open) {
      return;
    }
    const principal = this.#hubSide.dial(site);
    if (principal === undefined) {
      this.time.after(this.#quiet ? 100 : this.dice.delay(1_000), () => this.#connect(site));
      return;
    }
    site.stream = new Stream(this.time, this.dice, {
      agent: site.agent.program,
      principal,
      name: site.name,
      mode: site.mode,
      layout: this.layout,
      asBytes: this.unkind.has('bytes'),
      isGo: site.isGo,
      trace: (line) => this.trace(line),
    });
    this.#watchStream(site, site.stream);
  }

  /** The agent dials again some time after its stream broke. */
  #watchStream(site: Site, stream: Stream): void {
    stream.onBreak = () =>
      this.time.after(this.#quiet ? 100 : this.dice.delay(this.#hubSide.redialMs ?? 2_000), () => {
        if (site.stream === stream) {
          this.#connect(site);
        }
      });
  }

  #restartAgent(site: Site): string {
    this.restarted = true;
    endProcess(site.agent);
    site.stream?.break();
    site.agent = startAgentProgram(this, site);
    return `${site.name}: agent restarts`;
  }
}

function atRest(who: string, stats: SyncStats): string[] {
  return Object.values(stats).some((count) => count !== 0) ? [`${who} is not idle: ${JSON.stringify(stats)}`] : [];
}

function withoutFailing(stats: SyncStats, expected: number): SyncStats {
  return stats.retrying === expected ? { ...stats, retrying: 0 } : stats;
}
