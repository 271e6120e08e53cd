import {
  beginOperation,
  endOperation,
  isOperating,
  removesWorkload,
  takeFinalizer,
} from '../e2e/application-controller/rules.ts';
import { type Application, annotations } from '../lib/argocd/index.ts';
import type { Collection } from './cluster.ts';
import type { SeededDice } from './dice.ts';
import { canonical } from './json.ts';
import type { Unkindness } from './unkindness.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What the simulated Argo CD needs of its world. */
export interface ArgoCDWorld {
  readonly time: VirtualTime;
  readonly dice: SeededDice;
  readonly unkind: Unkindness;
  /** It removes what this Application has deployed. */
  removesWorkload(application: Application): void;
}

/** Argo CD writes one for each resource that two Applications have, and for each that it leaves out. */
const manyConditions = Array.from({ length: 1_000 }, (_, i) => ({
  type: 'SharedResourceWarning',
  message: `ConfigMap/c${i} is part of two Applications`,
}));

/** A stand-in for Argo CD's application controller on a managed cluster: compares, syncs on request, cleans up. */
export class ArgoCD {
  /** How often each operation, named by its revision, was started. */
  readonly started = new Map<string, number>();
  /** How often it looked because it was asked to, by uid. */
  readonly refreshed = new Map<string, number>();
  readonly #cluster: Collection<Application>;
  readonly #time: VirtualTime;
  readonly #dice: SeededDice;

  readonly #world: ArgoCDWorld;
  readonly #revisions = new Map<string, string>();

  constructor(cluster: Collection<Application>, world: ArgoCDWorld) {
    this.#cluster = cluster;
    this.#world = world;
    this.#time = world.time;
    this.#dice = world.dice;
    cluster.watch(({ now }) => now !== undefined && this.#look(now));
    cluster.cluster.onRestored(() => this.#startAnew());
  }

  #look({ metadata: { namespace = '', name } }: Application): void {
    this.#time.after(this.#dice.delay(20), () => this.#reconcile(namespace, name));
  }

  /** It looks at everything, and goes on with what had begun. */
  #startAnew(): void {
    for (const app of this.#cluster.list()) {
      this.#look(app);
      if (app.operation !== undefined && isOperating(app)) {
        this.#finishLater(app, String(app.status?.operationState?.startedAt));
      }
    }
  }

  #reconcile(namespace: string, name: string): void {
    const ref = { namespace, name };
    const app = this.#cluster.get(ref);
    if (app === undefined) {
      return;
    }
    if (app.metadata.deletionTimestamp !== undefined) {
      const { [annotations.sourceUid]: source, [annotations.principalUid]: principal } = app.metadata.annotations ?? {};
      const isCopy = source !== undefined && principal !== undefined;
      if (isCopy && (this.#cluster.cluster.down || this.#dice.chance(0.1))) {
        // The API server could not be read or written: Argo CD continues when the object changes, or much later.
        return;
      }
      const patch = takeFinalizer(app);
      if (patch !== undefined) {
        if (removesWorkload(app)) {
          this.#world.removesWorkload(app);
        }
        this.#cluster.patch(ref, patch);
      }
      return;
    }
    this.#operate(app);
    const seen = this.#revisionOf(app.spec);
    const refreshed = app.metadata.annotations?.[annotations.refresh];
    const hydrates = app.metadata.annotations?.[annotations.hydrate] !== undefined;
    if (hydrates) {
      this.#cluster.patch(ref, { metadata: { annotations: { [annotations.hydrate]: null } } });
    }
    if (refreshed !== undefined) {
      const uid = app.metadata.uid ?? '';
      this.refreshed.set(uid, (this.refreshed.get(uid) ?? 0) + 1);
    }
    if (app.status?.sync?.revision !== seen || refreshed !== undefined) {
      const resources = childrenOf(app);
      this.#cluster.patch(ref, {
        ...(refreshed === undefined ? {} : { metadata: { annotations: { [annotations.refresh]: null } } }),
        status: {
          sync: { status: 'Synced', revision: seen },
          health: { status: 'Healthy' },
          ...(resources === undefined ? {} : { resources }),
          ...(this.#world.unkind.strikes('manyConditions', 0.1) && { conditions: manyConditions }),
        },
      });
    }
  }

  /** What stands for the commit that a spec means: another one for each spec. */
  #revisionOf(spec: Application['spec']): string {
    const text = canonical(spec);
    const known = this.#revisions.get(text) ?? `r${this.#revisions.size}`;
    this.#revisions.set(text, known);
    return known;
  }

  #operate(app: Application): void {
    const ref = { namespace: app.metadata.namespace ?? '', name: app.metadata.name };
    const state = app.status?.operationState;
    if (app.operation !== undefined && !isOperating(app)) {
      const revision = revisionOf(app.operation);
      this.started.set(revision, (this.started.get(revision) ?? 0) + 1);
      const startedAt = this.#time.timestamp();
      this.#cluster.patch(ref, beginOperation(app, startedAt));
      this.#finishLater(app, startedAt);
    } else if (app.operation !== undefined && state?.phase === 'Terminating') {
      this.#finish(ref, app.metadata.uid, String(state.startedAt));
    }
  }

  #finishLater({ metadata: { namespace = '', name, uid } }: Application, startedAt: string): void {
    this.#time.after(this.#dice.delay(200), () => this.#finish({ namespace, name }, uid, startedAt));
  }

  #finish(ref: { namespace: string; name: string }, uid: string | undefined, startedAt: string): void {
    const app = this.#cluster.get(ref);
    const state = app?.status?.operationState;
    if (app === undefined || app.metadata.uid !== uid || state?.startedAt !== startedAt || isOver(app)) {
      return;
    }
    this.#cluster.patch(ref, endOperation(app, this.#time.timestamp(), revisionOf(state.operation)));
  }
}

/** The commit that an operation is to deploy, which names it here. */
export function revisionOf(operation: unknown): string {
  return (operation as { sync?: { revision?: string } } | undefined)?.sync?.revision ?? '';
}

/**
 * Whether its last operation has ended. One that is set again after somebody terminated what had ended already is not over:
 * Argo CD goes by the phase alone, and ends it.
 */
function isOver({ operation, status }: Application): boolean {
  const { phase, finishedAt } = status?.operationState ?? {};
  return finishedAt !== undefined && (phase !== 'Terminating' || operation === undefined);
}

/** What an Application of Applications deploys, by its path; others deploy nothing that matters here. */
function childrenOf({ metadata, spec }: Application): object[] | undefined {
  const { path } = (spec.source ?? {}) as { path?: string };
  return path === 'apps'
    ? [
        { group: 'argoproj.io', kind: 'Application', namespace: metadata.namespace, name: 'child' },
        { group: '', kind: 'ConfigMap', namespace: metadata.namespace, name: 'config' },
      ]
    : undefined;
}
