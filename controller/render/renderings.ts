import { createHash } from 'node:crypto';
import type { RenderedWork } from './pack.ts';

/**
 * What was last rendered for each cluster. A cluster is looked at whenever its work agent reports something, and rendering
 * is most of that work: it is done again only when something that goes into it has changed.
 */
export class Renderings {
  readonly #known = new Map<string, { readonly digest: string; readonly works: readonly RenderedWork[] }>();

  /**
   * The works of a cluster: those of before when the input is the same, else freshly rendered. They are shared: do not
   * change them.
   * @param input everything that the works depend on, as JSON knows it
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

  /** Forgets a cluster that is being left. */
  forget(cluster: string): void {
    this.#known.delete(cluster);
  }
}
