import { annotations } from '../../lib/argocd/index.ts';

interface Marked {
  readonly metadata: {
    readonly uid?: string | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}

/**
 * The book of who asked for the workloads of Applications to go. Argo CD removes one with an Application that has its finalizer when
 * it is deleted; nobody may bring that about but a user: by deleting this very Application where it deploys, or by taking its source
 * away from the agent while that had the finalizer.
 */
export class WorkloadBook {
  /** `agent/uid` of each source that left an agent while it had the finalizer. */
  readonly #asked = new Set<string>();
  /** Which sources each Application of a cluster was a copy of, by its uid. */
  readonly #sources = new Map<string, Set<string>>();
  /** Uids of Applications that users deleted where they deploy. */
  readonly #deletedByUsers = new Set<string>();

  /** A source left this agent while it had the finalizer. */
  ask(agent: string, source: string): void {
    this.#asked.add(`${agent}/${source}`);
  }

  /** A user deleted this very Application where it deploys. */
  deleted(uid: string): void {
    this.#deletedByUsers.add(uid);
  }

  /** Notes of what an Application of a cluster is the copy. */
  follow({ metadata: { uid = '', annotations: marks } }: Marked): void {
    const source = marks?.[annotations.sourceUid];
    if (source !== undefined) {
      this.#sources.set(uid, (this.#sources.get(uid) ?? new Set()).add(source));
    }
  }

  /** What this Application of a cluster was a copy of; one that was none is its own source. */
  sourcesOf(uid: string): string[] {
    return [...(this.#sources.get(uid) ?? [uid])];
  }

  /** Whether a user asked for the workload of this Application of an agent's cluster to go. */
  isAsked(agent: string, uid: string): boolean {
    return this.#deletedByUsers.has(uid) || this.sourcesOf(uid).some((source) => this.#asked.has(`${agent}/${source}`));
  }
}
