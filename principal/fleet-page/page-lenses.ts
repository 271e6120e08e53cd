import { BoundedMap } from '../../lib/base/index.ts';
import type { PolicySubject } from './access/argo-policy.ts';
import type { PageAccess } from './access/page-access.ts';
import { FleetLens } from './model/fleet-lens.ts';
import type { FleetModel } from './model/fleet-model.ts';

/** Viewers who may see a part of the fleet, each with sums of its own. */
const mostLenses = 64;

interface Part {
  readonly lens: FleetLens;
  /** Of the rights that it was last compared with. */
  readonly revision: number;
}

/** The parts of the fleet that viewers may see. Those who may see all of it share one. */
export class PageLenses {
  readonly #model: FleetModel;
  readonly #access: PageAccess;
  readonly #clustersOf: (agent: string) => readonly { server: string; project: string }[];
  readonly #whole: FleetLens;
  readonly #parts = new BoundedMap<string, Part>(mostLenses, (_key, { lens }) => lens.close());
  /** Counts how often rights may have changed. */
  #revision = 0;

  constructor(
    model: FleetModel,
    access: PageAccess,
    clustersOf: (agent: string) => readonly { server: string; project: string }[],
  ) {
    this.#model = model;
    this.#access = access;
    this.#clustersOf = clustersOf;
    this.#whole = new FleetLens(model, { isWhole: true, sees: () => true });
    access.onChange(() => {
      this.#revision += 1;
    });
  }

  /** The whole fleet, for those of whom Argo CD has said that they may see it. */
  get whole(): FleetLens {
    return this.#whole;
  }

  /**
   * What a viewer may see; undefined when that is no cluster of those that there are. It stays the same one while changes of rights
   * leave its clusters as they are.
   */
  of(viewer: PolicySubject): FleetLens | undefined {
    if (this.#access.seesAllClusters(viewer)) {
      return this.#whole;
    }
    const key = JSON.stringify([viewer.name, ...viewer.groups]);
    const lens = this.#current(this.#parts.get(key)) ?? this.#made(viewer);
    this.#parts.set(key, { lens, revision: this.#revision });
    return lens.totals.clusters === 0 ? undefined : lens;
  }

  /** The lens of a part, unless it shows other clusters than may be seen now: then it is closed. */
  #current(part: Part | undefined): FleetLens | undefined {
    if (part === undefined || part.revision === this.#revision || part.lens.isCurrent()) {
      return part?.lens;
    }
    part.lens.close();
    return undefined;
  }

  #made(viewer: PolicySubject): FleetLens {
    return new FleetLens(this.#model, {
      isWhole: false,
      sees: (agent) => this.#clustersOf(agent).some((cluster) => this.#access.seesCluster(viewer, cluster)),
    });
  }
}
