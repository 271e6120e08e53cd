import { compareVersions, isNewerVersion } from '../../base/index.ts';
import { type KubeObject, keyOf, type ObjectKey } from '../types.ts';

const mostRemembered = 4_096;

/**
 * What an API server has answered about objects of one kind, and a cache that follows it has not shown yet. A list that begins
 * after an answer is never behind it, as such lists are consistent reads (Kubernetes, "API concepts", "Resource versions"). One
 * that is behind shows that the server was restored from a backup.
 */
export class Answers {
  /** The version in which an object was answered, by its uid; the oldest answer first. */
  readonly #versions = new Map<string, { readonly key: string; readonly version: string; readonly round: number }>();
  /** Uids of objects that the server no longer had. */
  readonly #gone = new Map<string, { readonly round: number }>();
  /** How many lists have begun. */
  #round = 0;

  /** The server has answered with this object. */
  has({ metadata }: KubeObject): void {
    const { uid, resourceVersion: version } = metadata;
    if (uid === undefined || version === undefined || !isNewerVersion(version, this.#versions.get(uid)?.version)) {
      return;
    }
    this.#versions.delete(uid);
    this.#versions.set(uid, { key: keyOf({ metadata }), version, round: this.#round });
    limit(this.#versions);
  }

  /**
   * The server has answered that there is no object of this name.
   * @param cached the one that the cache has
   */
  lacks(key: ObjectKey, cached: KubeObject | undefined): void {
    const name = keyOf(key);
    const answered = [...this.#versions].filter(([, answer]) => answer.key === name).map(([uid]) => uid);
    for (const uid of [...answered, ...(cached?.metadata.uid === undefined ? [] : [cached.metadata.uid])]) {
      this.#gone.set(uid, { round: this.#round });
    }
    limit(this.#gone);
  }

  /** The cache has everything up to this version; the last was the deletion of an object. */
  shown(version: string, deleted?: KubeObject): void {
    for (const [uid, answer] of this.#versions) {
      if (isNewerVersion(answer.version, version)) {
        break;
      }
      this.#versions.delete(uid);
    }
    this.#gone.delete(deleted?.metadata.uid ?? '');
  }

  /** The highest version that was answered, or the given one if that is higher. */
  latest(version: string | undefined): string | undefined {
    let latest = version;
    for (const answer of this.#versions.values()) {
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
    const { uid = '', resourceVersion } = metadata;
    const isBefore = (answer: { readonly round: number } | undefined) =>
      answer !== undefined && answer.round < this.#round;
    const had = this.#versions.get(uid);
    return (
      isBefore(this.#gone.get(uid)) || (isBefore(had) && (compareVersions(resourceVersion, had?.version) ?? 0) < 0)
    );
  }

  /** The list is complete: what was answered before it began is of no more use. */
  listed(): void {
    for (const answers of [this.#versions, this.#gone]) {
      for (const [uid, { round }] of answers) {
        if (round < this.#round) {
          answers.delete(uid);
        }
      }
    }
  }
}

function limit(answers: Map<string, unknown>): void {
  for (const oldest of answers.keys()) {
    if (answers.size <= mostRemembered) {
      break;
    }
    answers.delete(oldest);
  }
}
