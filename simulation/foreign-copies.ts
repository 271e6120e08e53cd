import { type Application, annotations } from '../lib/argocd/index.ts';
import type { ObjectRef } from '../lib/sync/index.ts';
import { refOf } from '../lib/sync/index.ts';
import type { Scene, Site } from './world.ts';

/** A copy that was made for a principal of another identity. */
interface Foreign {
  readonly site: Site;
  /** Where the hub has its source, or had it. */
  readonly ref: ObjectRef;
  /** What the hub has there, and does not let the agent have; undefined: nothing. */
  hubUid: string | undefined;
}

const most = 5;

/**
 * What clusters have of a principal that was another one before: it stays while the hub has nothing for it, and while an AppProject
 * keeps from its agent what the hub has.
 */
export class ForeignCopies {
  readonly #scene: Scene;
  readonly #isUserActing: () => boolean;
  /** By the uid of the copy. */
  readonly #foreign = new Map<string, Foreign>();
  readonly #problems: string[] = [];

  /** @param isUserActing whether what happens now is what a user does */
  constructor(scene: Scene, isUserActing: () => boolean) {
    this.#scene = scene;
    this.#isUserActing = isUserActing;
    for (const { name, cluster } of scene.sites) {
      cluster.of('Application').watch(({ old, now }) => this.#changed(name, old, now));
    }
    scene.hub.of('Application').watch(() => this.#reconsider());
    scene.permissions.follow(() => this.#reconsider());
  }

  /** Copies that went, and had to stay. */
  get problems(): readonly string[] {
    return this.#problems.slice(0, most);
  }

  /** From now on the principal is another one. Of these sites nothing is under way that the former one has sent. */
  begin(sites: readonly Site[]): void {
    const { hub, layout } = this.#scene;
    this.#foreign.clear();
    for (const site of sites) {
      for (const copy of site.cluster.of('Application').list()) {
        const { uid = '', namespace = '', name, annotations: marks, deletionTimestamp } = copy.metadata;
        if (marks?.[annotations.sourceUid] !== undefined && deletionTimestamp === undefined) {
          const ref = { namespace: layout.namespaceOf?.(site.name, namespace) ?? site.name, name };
          const hubUid = hub.of('Application').get(ref)?.metadata.uid;
          // An agent of argocd-agent does not say for whom a copy was made: what the hub does not have is deleted there.
          if (hubUid !== undefined || !site.isGo) {
            this.#foreign.set(uid, { site, ref, hubUid });
          }
        }
      }
    }
    this.#reconsider();
  }

  #changed(agent: string, old: Application | undefined, now: Application | undefined): void {
    const { uid = '', deletionTimestamp } = (now ?? old)?.metadata ?? {};
    const foreign = this.#foreign.get(uid);
    if (foreign === undefined || (now !== undefined && deletionTimestamp === undefined)) {
      return;
    }
    this.#foreign.delete(uid);
    if (!this.#isUserActing()) {
      const { namespace, name } = refOf((now ?? old) as Application);
      this.#problems.push(`${agent}: ${namespace}/${name} (${uid}) of another principal is deleted`);
    }
  }

  #reconsider(): void {
    const { hub, layout, permissions } = this.#scene;
    for (const [uid, foreign] of this.#foreign) {
      const app = hub.of('Application').get(foreign.ref);
      foreign.hubUid ??= app?.metadata.uid;
      const isWithheld =
        app !== undefined &&
        app.metadata.uid === foreign.hubUid &&
        app.metadata.deletionTimestamp === undefined &&
        layout.agentOf(app) === foreign.site.name &&
        !permissions.permits(app);
      if (foreign.hubUid !== undefined && !isWithheld) {
        this.#foreign.delete(uid);
      }
    }
  }
}
