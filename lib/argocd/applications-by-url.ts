import type { Application } from './application.ts';
import { placeOf } from './place.ts';

/** Which Applications a URL decides about, so that a change of what one URL means costs as much as the Applications with it. */
export class ApplicationsByUrl {
  readonly #urlOf: (application: Application) => string | undefined;
  /** URL → place → Application. */
  readonly #applications = new Map<string, Map<string, Application>>();

  /** @param urlOf the URL that decides about an Application; undefined: none does */
  constructor(urlOf: (application: Application) => string | undefined) {
    this.#urlOf = urlOf;
  }

  /** An Application came, changed or went. */
  move(old: Application | undefined, now: Application | undefined): void {
    const [from, to] = [old && this.#urlOf(old), now && this.#urlOf(now)];
    if (old !== undefined && from !== undefined && from !== to) {
      const its = this.#applications.get(from);
      its?.delete(idOf(old));
      if (its?.size === 0) {
        this.#applications.delete(from);
      }
    }
    if (now !== undefined && to !== undefined) {
      const its = this.#applications.get(to) ?? new Map<string, Application>();
      its.set(idOf(now), now);
      this.#applications.set(to, its);
    }
  }

  /** All that a URL decides about, in no particular order. */
  of(url: string): Application[] {
    return [...(this.#applications.get(url)?.values() ?? [])];
  }
}

function idOf({ metadata: { namespace = '', name } }: Application): string {
  return placeOf({ namespace, name });
}
