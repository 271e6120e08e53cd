import { createHash } from 'node:crypto';
import type { RenderedWork } from './pack.ts';

/**
 * The last rendered works of each cluster. A cluster is reconciled whenever its work agent reports something, and rendering
 * is most of that work. So works are rendered only when their input has changed.
 */
export class Renderings {
  readonly #known = new Map<string, { readonly digest: string; readonly works: readonly RenderedWork[] }>();

  /**
   * The works of a cluster: the last ones when the input is the same, else newly rendered ones. They are shared between
   * calls: do not change them.
   * @param input everything that the works depend on; it is compared as JSON
   */
  of(cluster: string, input: unknown, render: () => readonly RenderedWork[]): readonly RenderedWork[] {
    const digest = createHash('sha256').update(JSON.stringify(input)).digest('base64');
    const known = this.#known.get(cluster);
    if (known?.digest === digest) {
      return known.works;
    }
    const works = render();
    this.#known.set(cluster, { digest, works });
    return works;
  }

  /** Forgets a cluster that is being detached. */
  forget(cluster: string): void {
    this.#known.delete(cluster);
  }
}
