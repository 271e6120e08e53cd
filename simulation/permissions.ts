import type { Application } from '../lib/argocd/index.ts';
import type { Layout } from './layout.ts';
import type { Unkindness } from './unkindness.ts';
import type { VirtualTime } from './virtual-time.ts';

/** About how long a project keeps an Application from its agent. */
const someMs = 3_000;

interface PermissionScene {
  readonly unkind: Unkindness;
  readonly layout: Layout;
  readonly time: VirtualTime;
}

/** What the hub's AppProjects keep from agents, for a while: Applications of one name. */
export class Permissions {
  readonly #scene: PermissionScene;
  readonly #kept = new Set<string>();
  readonly #listeners = new Set<() => void>();

  constructor(scene: PermissionScene) {
    this.#scene = scene;
  }

  permits({ metadata }: Application): boolean {
    return !this.#kept.has(metadata.name);
  }

  /** Calls the listener after each change, until the signal is aborted. */
  follow(listener: () => void, signal?: AbortSignal): void {
    this.#listeners.add(listener);
    signal?.addEventListener('abort', () => this.#listeners.delete(listener));
  }

  /** Somebody changes a project on the hub; undefined: nobody does, this time. */
  change(): string | undefined {
    const { unkind, layout } = this.#scene;
    const name = unkind.strikes('permissions', 0.1) ? unkind.dice.pick(layout.names) : undefined;
    if (name === undefined) {
      return undefined;
    }
    this.#withhold(name);
    return `user on hub: no project admits ${name}`;
  }

  /** The projects of a hub that was restored keep some names, which they did not before. */
  restored(): void {
    const { unkind, layout } = this.#scene;
    for (const name of unkind.has('permissions') ? layout.names : []) {
      if (unkind.dice.chance(0.5)) {
        this.#withhold(name);
      }
    }
  }

  /** Everything is permitted again. */
  calm(): void {
    for (const name of this.#kept) {
      this.#permit(name);
    }
  }

  #withhold(name: string): void {
    const { unkind, time } = this.#scene;
    this.#kept.add(name);
    this.#tell();
    time.after(unkind.dice.delay(someMs), () => this.#permit(name));
  }

  #permit(name: string): void {
    if (this.#kept.delete(name)) {
      this.#tell();
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) {
      listener();
    }
  }
}
