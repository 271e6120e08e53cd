import type { Application } from '../lib/argocd/index.ts';
import type { Scene } from './world.ts';

/** About how long a project keeps an Application from its agent. */
const someMs = 3_000;

/** What the hub's AppProjects keep from agents, for a while: Applications of one name. */
export class Permissions {
  readonly #scene: Pick<Scene, 'unkind' | 'layout' | 'time'>;
  readonly #kept = new Set<string>();
  readonly #listeners = new Set<() => void>();

  constructor(scene: Pick<Scene, 'unkind' | 'layout' | 'time'>) {
    this.#scene = scene;
  }

  permits({ metadata }: Application): boolean {
    return !this.#kept.has(metadata.name);
  }

  /** Calls the listener after each change, until the signal is aborted. */
  follow(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#listeners.delete(listener));
  }

  /** Somebody changes a project on the hub; undefined: nobody does, this time. */
  change(): string | undefined {
    const { unkind, layout, time } = this.#scene;
    const name = unkind.strikes('permissions', 0.1) ? unkind.dice.pick(layout.names) : undefined;
    if (name === undefined) {
      return undefined;
    }
    this.#kept.add(name);
    this.#tell();
    time.after(unkind.dice.delay(someMs), () => this.#permit(name));
    return `user on hub: no project admits ${name}`;
  }

  /** Everything is permitted again. */
  calm(): void {
    for (const name of this.#kept) {
      this.#permit(name);
    }
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
