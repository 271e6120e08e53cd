import type { ArgoObject } from '../../e2e/pair/index.ts';

/** The statuses of agents that a watch of the hub showed. */
export class ShownStatuses {
  /** Milliseconds from the change on its cluster until it was seen. */
  readonly delays: number[] = [];
  /** When each of them was seen, by this process's clock. */
  readonly seenAt: number[] = [];
  /** Milliseconds between two statuses of one Application. */
  readonly intervals: number[] = [];
  readonly ofAgent = new Map<string, number>();
  readonly #last = new Map<string, number>();

  /** When the last one was seen. */
  get lastAt(): number {
    return this.seenAt.at(-1) ?? 0;
  }

  /** Takes a watch event. */
  take(old: ArgoObject, now: ArgoObject): void {
    const changedAt = timeOfChange(now);
    if (changedAt === undefined || changedAt === timeOfChange(old)) {
      return;
    }
    const { namespace = '', name } = now.metadata;
    const id = `${namespace}/${name}`;
    const before = this.#last.get(id);
    const seenAt = performance.now();
    this.seenAt.push(seenAt);
    this.delays.push(performance.timeOrigin + seenAt - changedAt);
    if (before !== undefined) {
      this.intervals.push(seenAt - before);
    }
    this.#last.set(id, seenAt);
    this.ofAgent.set(namespace, (this.ofAgent.get(namespace) ?? 0) + 1);
  }

  /** Begins anew. */
  clear(): void {
    this.delays.length = 0;
    this.seenAt.length = 0;
    this.intervals.length = 0;
    this.ofAgent.clear();
    this.#last.clear();
  }
}

/** When the status was changed on the managed cluster, in milliseconds since the epoch: the generator writes it there. */
function timeOfChange({ status }: ArgoObject): number | undefined {
  const { message } = (status?.health ?? {}) as { message?: string };
  const time = Number(message);
  return Number.isFinite(time) ? time : undefined;
}
