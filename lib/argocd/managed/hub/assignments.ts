import type { ObjectRef, ResourceKey } from '../../../sync/index.ts';

/** Which Applications each agent has, so that what concerns one agent costs as much as that agent has. */
export class Assignments {
  readonly #keys = new Map<string, Map<string, ResourceKey>>();

  /** An Application goes from one agent to another; undefined stands for none. */
  move(ref: ObjectRef, from: string | undefined, to: string | undefined): void {
    if (from === to) {
      return;
    }
    const id = `${ref.namespace}/${ref.name}`;
    if (from !== undefined) {
      const keys = this.#keys.get(from);
      keys?.delete(id);
      if (keys?.size === 0) {
        this.#keys.delete(from);
      }
    }
    if (to !== undefined) {
      let keys = this.#keys.get(to);
      if (keys === undefined) {
        keys = new Map();
        this.#keys.set(to, keys);
      }
      keys.set(id, { kind: 'Application', namespace: ref.namespace, name: ref.name });
    }
  }

  /** How many an agent has. */
  count(agent: string): number {
    return this.#keys.get(agent)?.size ?? 0;
  }

  /** All that an agent has, in no particular order. */
  of(agent: string): Iterable<ResourceKey> {
    return this.#keys.get(agent)?.values() ?? [];
  }
}
