import type { SyncStats } from '../lib/argocd/index.ts';
import { pickOne } from './dice.ts';
import type { Answering } from './network.ts';
import { type SimulatedEngine, startPrincipalProgram } from './programs.ts';
import { loseApplications } from './restored-hub.ts';
import { endProcess, type HubSide, type Scene, type Site } from './world.ts';

function isAtRest(stats: SyncStats): boolean {
  return Object.values(stats).every((count) => count === 0);
}

/** A hub with one principal, which is killed now and then. */
export class OnePrincipal implements HubSide {
  readonly #scene: Scene;
  #engine: SimulatedEngine;

  constructor(scene: Scene) {
    this.#scene = scene;
    this.#engine = startPrincipalProgram(scene);
  }

  dial(): Answering {
    return { program: this.#engine.program };
  }

  happens(): string {
    const { sites, unkind } = this.#scene;
    const isAnother = unkind.strikes('newIdentity', 0.5) && sites.every(({ mode }) => mode === 'managed');
    const idle = sites.filter((site) => isAtRest(site.agent.program.stats()) && isAtRest(this.stats(site)));
    this.#scene.restarted = true;
    endProcess(this.#engine);
    for (const site of sites) {
      site.stream?.break();
    }
    if (isAnother) {
      this.#becomesAnother(idle);
    }
    this.#engine = startPrincipalProgram(this.#scene);
    return isAnother ? `the hub is restored from a backup: ${this.#scene.principalUid}` : 'principal restarts';
  }

  /** Neither the principal nor its Applications have the identity that they had. */
  #becomesAnother(idle: readonly Site[]): void {
    const { hub, sites, unkind, time, permissions, foreign } = this.#scene;
    const { dice } = unkind;
    this.#scene.principalUid = `principal-${hub.version}`;
    permissions.restored();
    // Agents of argocd-agent lose what a hub lacks that they connect to. Copies of projects stay for what stays: nobody would expect it.
    const mayLack = !this.#scene.everyKind && !sites.some(({ isGo }) => isGo);
    const comeLater = mayLack && dice.chance(0.3);
    for (const restore of loseApplications(hub).filter(() => !mayLack || dice.chance(0.9))) {
      if (comeLater) {
        time.after(dice.delay(300), restore);
      } else {
        restore();
      }
    }
    foreign.begin(idle);
  }

  breakWatch(): void {
    pickOne(this.#scene.dice, this.#engine.stores).breakWatch();
  }

  stats({ name }: Site): SyncStats {
    return this.#engine.program.stats(name);
  }

  calm(): void {
    // Nothing lasts that befalls it.
  }

  problems(): string[] {
    return [];
  }

  end(): void {
    endProcess(this.#engine);
  }
}
