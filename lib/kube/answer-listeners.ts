import { ApiError } from './errors.ts';
import type { KubeObject, ObjectKey, ResourceType } from './types.ts';

/** Called with what an API server answered about one object; undefined: it has none. */
export type AnswerListener = (key: ObjectKey, object: KubeObject | undefined) => void;

/** Who wants to hear what an API server answers about single objects, by kind. */
export class AnswerListeners {
  readonly #listeners = new Map<string, Set<AnswerListener>>();

  /** Calls back for each answer about this kind, until the returned function is called. */
  add(type: ResourceType, listener: AnswerListener): () => void {
    const id = idOf(type);
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(id) === listeners) {
        this.#listeners.delete(id);
      }
    };
  }

  /** The server answered with the object, or, to a deletion, with a Status when the object is gone. */
  answered(type: ResourceType, key: ObjectKey, answer: KubeObject | undefined): void {
    const object = answer?.kind === 'Status' ? undefined : answer;
    for (const listener of this.#listeners.get(idOf(type)) ?? []) {
      listener(key, object);
    }
  }

  /** The server refused. That says that there is no object only if it names one: an unserved kind is a 404, too. */
  refused(type: ResourceType, key: ObjectKey, error: unknown): void {
    if (error instanceof ApiError && error.status === 404 && error.details?.name === key.name) {
      this.answered(type, key, undefined);
    }
  }
}

function idOf({ group, plural }: ResourceType): string {
  return `${plural}.${group}`;
}
