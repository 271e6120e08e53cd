import type { SyncStats } from '../lib/argocd/index.ts';
import { pickOne } from './dice.ts';
import type { Answering } from './network.ts';
import { type SimulatedEngine, startPrincipalProgram } from './programs.ts';
import { endProcess, type HubSide, type Scene, type Site } from './world.ts';

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
    this.#scene.restarted = true;
    endProcess(this.#engine);
    for (const site of this.#scene.sites) {
      site.stream?.break();
    }
    this.#engine = startPrincipalProgram(this.#scene);
    return 'principal restarts';
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
