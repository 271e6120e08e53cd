import { beginOperation, endOperation, isOperating, takeFinalizer } from '../e2e/application-controller/rules.ts';
import { type Application, annotations } from '../lib/argocd/index.ts';
import type { Collection } from './cluster.ts';
import type { SeededDice } from './dice.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A stand-in for Argo CD's application controller on a managed cluster: compares, syncs on request, cleans up. */
export class ArgoCD {
  /** How often each operation, named by its revision, was started. */
  readonly started = new Map<string, number>();
  /** How often it looked because it was asked to, by uid. */
  readonly refreshed = new Map<string, number>();
  readonly #cluster: Collection<Application>;
  readonly #time: VirtualTime;
  readonly #dice: SeededDice;

  constructor(cluster: Collection<Application>, time: VirtualTime, dice: SeededDice) {
    this.#cluster = cluster;
    this.#time = time;
    this.#dice = dice;
    cluster.watch(({ now }) => {
      if (now !== undefined) {
        time.after(dice.delay(20), () => this.#reconcile(now.metadata.namespace ?? '', now.metadata.name));
      }
    });
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
        this.#cluster.patch(ref, patch);
      }
      return;
    }
    this.#operate(app);
    const seen = `${app.metadata.generation}`;
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
        },
      });
    }
  }

  #operate(app: Application): void {
    const ref = { namespace: app.metadata.namespace ?? '', name: app.metadata.name };
    const state = app.status?.operationState;
    if (app.operation !== undefined && !isOperating(app)) {
      const revision = revisionOf(app.operation);
      this.started.set(revision, (this.started.get(revision) ?? 0) + 1);
      const startedAt = this.#time.timestamp();
      this.#cluster.patch(ref, beginOperation(app, startedAt));
      this.#time.after(this.#dice.delay(200), () => this.#finish(ref, app.metadata.uid, startedAt));
    } else if (app.operation !== undefined && state?.phase === 'Terminating') {
      this.#finish(ref, app.metadata.uid, String(state.startedAt));
    }
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
const revisionOf = (operation: unknown) => (operation as { sync?: { revision?: string } }).sync?.revision ?? '';

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
