import { BoundedMap, compareVersions, isNewerVersion } from '../../base/index.ts';
import { type KubeObject, keyOf, type ObjectKey } from '../types.ts';

const mostRemembered = 4_096;

/**
 * What an API server has answered about objects of one kind, and a cache that follows it has not shown yet. A list that begins
 * after an answer is never behind it, as such lists are consistent reads (Kubernetes, "API concepts", "Resource versions"). One
 * that is behind shows that the server was restored from a backup.
 */
export class Answers {
  /** What was answered last, by the object's key; the oldest answer first. */
  readonly #had = new BoundedMap<string, { uid: string; version: string; round: number }>(mostRemembered);
  /** The uids of objects that the server no longer had, by key. */
  readonly #gone = new BoundedMap<string, { uid: string; round: number }>(mostRemembered);
  /** How many lists have begun. */
  #round = 0;

  /** The server has answered with this object. */
  has({ metadata }: KubeObject): void {
    const { uid, resourceVersion: version } = metadata;
    const key = keyOf(metadata);
    if (uid === undefined || version === undefined || !isNewerVersion(version, this.#had.get(key)?.version)) {
      return;
    }
    this.#had.set(key, { uid, version, round: this.#round });
  }

  /**
   * The server has answered that there is no object of this name.
   * @param cached the one that the cache has
   */
  lacks(name: ObjectKey, cached: KubeObject | undefined): void {
    const key = keyOf(name);
    const uid = this.#had.get(key)?.uid ?? cached?.metadata.uid;
    if (uid !== undefined) {
      this.#gone.set(key, { uid, round: this.#round });
    }
  }

  /** The cache has everything up to this version; the last was the deletion of an object. */
  shown(version: string, deleted?: KubeObject): void {
    for (const [key, answer] of this.#had) {
      if (isNewerVersion(answer.version, version)) {
        break;
      }
      this.#had.delete(key);
    }
    if (deleted !== undefined) {
      this.#gone.delete(keyOf(deleted));
    }
  }

  /** The highest version that was answered, or the given one if that is higher. */
  latest(version: string | undefined): string | undefined {
    let latest = version;
    for (const answer of this.#had.values()) {
      latest = isNewerVersion(answer.version, latest) ? answer.version : latest;
    }
    return latest;
  }

  /** A list is about to begin: what is answered from now on, it need not have. */
  listBegins(): void {
    this.#round++;
  }

  /** Whether the list shows an object as it was before an answer: in an earlier version, or one that was gone. */
  contradict({ metadata }: KubeObject): boolean {
    const key = keyOf(metadata);
    const [had, gone] = [this.#had.get(key), this.#gone.get(key)];
    const isEarlier = had !== undefined && (compareVersions(metadata.resourceVersion, had.version) ?? 0) < 0;
    const isBack = gone?.uid === metadata.uid;
    return (isEarlier && this.#isBefore(had)) || (isBack && this.#isBefore(gone));
  }

  /** The list is complete: what was answered before it began is of no more use. */
  listed(): void {
    for (const answers of [this.#had, this.#gone]) {
      for (const [key, answer] of answers) {
        if (this.#isBefore(answer)) {
          answers.delete(key);
        }
      }
    }
  }

  #isBefore(answer: { readonly round: number } | undefined): boolean {
    return answer !== undefined && answer.round < this.#round;
  }
}
