import { BoundedMap } from '../../lib/base/index.ts';
import type { PolicySubject } from './access/argo-policy.ts';
import type { PageAccess } from './access/page-access.ts';
import { FleetLens } from './model/fleet-lens.ts';
import type { FleetModel } from './model/fleet-model.ts';

/** Viewers who may see a part of the fleet, each with sums of its own. */
const mostLenses = 64;

/** The parts of the fleet that viewers may see. Those who may see all of it share one. */
export class PageLenses {
  readonly #model: FleetModel;
  readonly #access: PageAccess;
  readonly #clustersOf: (agent: string) => readonly { server: string; project: string }[];
  readonly #whole: FleetLens;
  readonly #parts = new BoundedMap<string, FleetLens>(mostLenses, (_key, lens) => lens.close());

  constructor(
    model: FleetModel,
    access: PageAccess,
    clustersOf: (agent: string) => readonly { server: string; project: string }[],
  ) {
    this.#model = model;
    this.#access = access;
    this.#clustersOf = clustersOf;
    this.#whole = new FleetLens(model, { isWhole: true, sees: () => true });
    access.onChange(() => this.#forget());
  }

  /** The whole fleet, for those of whom Argo CD has said that they may see it. */
  get whole(): FleetLens {
    return this.#whole;
  }

  /** What a viewer may see; undefined when that is no cluster of those that there are. */
  of(viewer: PolicySubject): FleetLens | undefined {
    if (this.#access.seesAllClusters(viewer)) {
      return this.#whole;
    }
    const key = JSON.stringify([viewer.name, ...viewer.groups]);
    const known = this.#parts.get(key);
    const lens =
      known ??
      new FleetLens(this.#model, {
        isWhole: false,
        sees: (agent) => this.#clustersOf(agent).some((cluster) => this.#access.seesCluster(viewer, cluster)),
      });
    this.#parts.set(key, lens);
    return lens.totals.clusters === 0 ? undefined : lens;
  }

  #forget(): void {
    for (const lens of this.#parts.values()) {
      lens.close();
    }
    this.#parts.clear();
  }
}
