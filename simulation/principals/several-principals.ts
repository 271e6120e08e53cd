import type { SyncStats } from '../../lib/argocd/index.ts';
import { type Answering, type HubSide, pickOne, type Scene, type Site } from '../index.ts';
import { Auditor } from './auditor.ts';
import { SimulatedReplica } from './replica.ts';

const most = 4;

/** A hub with several principals that share the agents: they come, end, are killed, stopped, and cut off from either side. */
export class SeveralPrincipals implements HubSide {
  readonly restMs = 15_000;
  readonly #scene: Scene;
  readonly #auditor: Auditor;
  /** Those that run, and will go on. */
  #replicas: SimulatedReplica[] = [];
  /** All that ever ran. */
  readonly #all: SimulatedReplica[] = [];
  /** Those that were told to end. */
  readonly #ending: SimulatedReplica[] = [];
  #count = 0;
  #isCalm = false;

  constructor(scene: Scene) {
    this.#scene = scene;
    // An agent that moves to another replica finds one that knows nothing of before.
    scene.restarted = true;
    this.#auditor = new Auditor(scene);
    const count = scene.dice.integer(1, 3);
    for (let i = 0; i < count; i++) {
      this.#start();
    }
  }

  get renewals(): number {
    return this.#auditor.renewals;
  }

  dial(site: Site): Answering | undefined {
    const replica = this.#scene.dice.pick(this.#replicas.filter(({ isOpen }) => isOpen));
    if (replica === undefined) {
      return undefined;
    }
    this.#scene.trace(`${site.name}: connects to ${replica.name}`);
    return replica.answer(() => site.stream?.break());
  }

  happens(): string {
    const { dice, time } = this.#scene;
    const replica = pickOne(dice, this.#replicas);
    if (dice.chance(0.5)) {
      return this.#befalls(replica);
    }
    this.#auditor.atNextWrite(replica, () =>
      time.after(dice.delay(2), () => {
        if (!this.#isCalm && this.#replicas.includes(replica)) {
          this.#scene.trace(this.#befalls(replica));
        }
      }),
    );
    return `${replica.name}: something will happen while it writes`;
  }

  /** How long an agent waits before it dials again. */
  get redialMs(): number {
    return this.#scene.dice.chance(0.5) ? 10 : 2_000;
  }

  #befalls(replica: SimulatedReplica): string {
    const { dice } = this.#scene;
    const { name } = replica;
    switch (dice.integer(0, 8)) {
      case 0:
        return this.#replicas.length < most ? this.#start() : 'nothing';
      case 1:
        return this.#kill(replica);
      case 2:
        return this.#end(replica);
      case 3:
      case 4:
        replica.cutOff();
        this.#scene.time.after(dice.delay(4_000), () => this.#reconnect(replica));
        return `${name}: cut off from the API server`;
      case 5:
        replica.isUnreachable = true;
        this.#scene.time.after(dice.delay(3_000), () => {
          replica.isUnreachable = false;
        });
        this.#hangUp(replica, 3_000);
        return `${name}: cut off from its agents`;
      case 6:
        replica.machine.stop();
        this.#scene.time.after(dice.delay(4_000), () => this.#goOn(replica));
        // Its agents hear nothing from it any more.
        this.#scene.time.after(dice.delay(2_000), () => replica.machine.isStopped && this.#hangUp(replica, 10));
        return `${name}: stopped`;
      case 7: {
        const site = this.#siteOf(replica);
        replica.sendAway(site);
        return `${name}: sends ${site.name} away`;
      }
      default: {
        const site = this.#siteOf(replica);
        site.stream?.break(2_000);
        return `${site.name}: connection is lost without a word`;
      }
    }
  }

  breakWatch(): void {
    pickOne(this.#scene.dice, this.#replicas).breakWatch();
  }

  stats({ name }: Site): SyncStats {
    const sum = { pending: 0, inFlight: 0, queued: 0, retrying: 0 };
    for (const replica of this.#replicas) {
      const { pending, inFlight, queued, retrying } = replica.stats(name);
      sum.pending += pending;
      sum.inFlight += inFlight;
      sum.queued += queued;
      sum.retrying += retrying;
    }
    return sum;
  }

  calm(): void {
    this.#isCalm = true;
    for (const replica of [...this.#replicas, ...this.#ending]) {
      replica.isUnreachable = false;
      this.#reconnect(replica);
      this.#goOn(replica);
    }
  }

  problems(isOver: boolean): string[] {
    return [...this.#auditor.violations, ...(isOver ? this.#unheld() : [])];
  }

  end(): void {
    for (const replica of this.#all) {
      replica.discard();
    }
  }

  /** What is wrong about who serves which agent in the end. */
  #unheld(): string[] {
    const { leader } = this.#auditor;
    const leaders = this.#replicas.filter(({ leads }) => leads).map(({ identity }) => identity);
    const problems = leaders.length === 1 && leaders[0] === leader ? [] : [`leaders: ${leaders}, not ${leader}`];
    for (const { name } of this.#scene.sites) {
      const { holder } = this.#auditor.holdOf(name);
      const serving = this.#replicas.filter((replica) => replica.serves(name)).map(({ identity }) => identity);
      const open = this.#replicas.filter((replica) => replica.hasStreamOf(name)).length;
      if (serving.length !== 1 || serving[0] !== holder || open !== 1) {
        problems.push(`${name} is served by [${serving}], held by "${holder}", and has ${open} streams`);
      }
    }
    return problems;
  }

  /** A site whose agent is connected to the replica, if there is one. */
  #siteOf({ machine }: SimulatedReplica): Site {
    const { dice, sites } = this.#scene;
    const connected = sites.filter(({ stream }) => stream?.open && stream.machine === machine);
    return pickOne(dice, connected.length > 0 ? connected : sites);
  }

  #start(pod?: string): string {
    const name = `principal${this.#count++}`;
    const replica = new SimulatedReplica(this.#scene, name, pod ?? name, this.#auditor);
    this.#all.push(replica);
    this.#replicas.push(replica);
    return `${name}: starts`;
  }

  /** Often a container that the node starts again at once; the only one always is. */
  #kill(replica: SimulatedReplica): string {
    const { dice } = this.#scene;
    this.#hangUp(replica, 10);
    replica.kill();
    this.#replicas = this.#replicas.filter((one) => one !== replica);
    return `${replica.name}: killed; ${this.#replicas.length === 0 || dice.chance(0.5) ? this.#start(replica.pod) : 'stays away'}`;
  }

  #end(replica: SimulatedReplica): string {
    this.#replicas = this.#replicas.filter((one) => one !== replica);
    this.#ending.push(replica);
    replica.end();
    // Killed at the end of its grace period.
    this.#scene.time.after(30_000, () => replica.kill());
    return `${replica.name}: ends; ${this.#replicas.length === 0 || this.#scene.dice.chance(0.5) ? this.#start() : 'stays away'}`;
  }

  #reconnect(replica: SimulatedReplica): void {
    if (replica.machine.isCutOff) {
      this.#scene.trace(`${replica.name}: reaches the API server again`);
      replica.machine.reconnect();
    }
  }

  #goOn(replica: SimulatedReplica): void {
    if (replica.machine.isStopped && !replica.machine.isDead) {
      this.#scene.trace(`${replica.name}: goes on`);
      replica.machine.goOn();
    }
  }

  /** The streams of a replica break, and it takes this long to notice. */
  #hangUp(replica: SimulatedReplica, lateMs: number): void {
    for (const { name, stream } of this.#scene.sites) {
      if (stream?.open && stream.machine === replica.machine) {
        this.#scene.trace(`${name}: connection to ${replica.name} breaks`);
        stream.break(lateMs);
      }
    }
  }
}
