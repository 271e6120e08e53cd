import { type Application, annotations } from '../../argocd/index.ts';
import { resourcesFinalizer } from './argo-cd.ts';
import { type Cluster, Refused } from './cluster.ts';
import type { Dice } from './dice.ts';

const names = ['shop', 'web', 'jobs'];

/** What users do on the hub and on managed clusters, one random thing at a time. */
export class Users {
  readonly #dice: Dice;
  /** The last operation that was asked for on the hub, by agent and Application. */
  readonly operations = new Map<string, { readonly uid: string; readonly revision: string }>();
  #count = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  /** Somebody does something to an Application of this agent on the hub. */
  actOnHub(hub: Cluster, agent: string): string {
    const name = this.#dice.pick(names) ?? '';
    const ref = { namespace: agent, name };
    const app = hub.get(ref);
    if (app === undefined) {
      hub.create(this.#newApplication(ref));
      return `create ${agent}/${name}`;
    }
    const choice = this.#dice.integer(0, 11);
    switch (choice) {
      case 0:
        hub.delete(ref, { propagation: 'Foreground' });
        return `delete in the foreground ${agent}/${name}`;
      case 1:
        hub.delete(ref, { propagation: 'Background' });
        return `delete ${agent}/${name}`;
      case 2:
        if (app.metadata.deletionTimestamp === undefined && (app.metadata.finalizers ?? []).length === 0) {
          hub.delete(ref, { propagation: 'Background' });
          hub.create(this.#newApplication(ref));
        }
        return `re-create ${agent}/${name}`;
      case 3:
        hub.patch(ref, { metadata: { annotations: { [annotations.refresh]: 'normal' } } });
        return `refresh ${agent}/${name}`;
      case 4:
      case 5:
        hub.patch(ref, { operation: { sync: { revision: `op-${++this.#count}` } } });
        this.#remember(`${agent}/${name}`, app);
        return `sync ${agent}/${name} op-${this.#count}`;
      case 6:
        if (app.operation !== undefined && app.status?.operationState?.phase === 'Running') {
          hub.patch(ref, { status: { operationState: { phase: 'Terminating' } } });
        }
        return `terminate ${agent}/${name}`;
      case 7:
        hub.patch(ref, {
          metadata: { labels: { team: `t${++this.#count}` }, annotations: { note: `n${this.#count}` } },
        });
        return `label ${agent}/${name}`;
      default:
        hub.patch(ref, { spec: { source: { path: `p${++this.#count % 3}` } } });
        return `edit ${agent}/${name}`;
    }
  }

  /** Somebody meddles with an Application on a managed cluster. */
  actOnManaged(cluster: Cluster): string {
    const name = this.#dice.pick(names) ?? '';
    const ref = { namespace: 'argocd', name };
    const app = cluster.get(ref);
    if (app === undefined) {
      if (this.#dice.chance(0.7)) {
        return 'nothing';
      }
      cluster.create({ ...this.#newApplication(ref), spec: { source: { path: 'local' } } });
      return `create unmanaged ${name}`;
    }
    switch (this.#dice.integer(0, 4)) {
      case 0:
        cluster.delete(ref, { propagation: 'Background' });
        return `delete ${name}`;
      case 1:
        cluster.patch(ref, { metadata: { annotations: { [annotations.sourceUid]: null } } });
        return `strip ${name}`;
      default:
        cluster.patch(ref, { spec: { source: { path: `local${++this.#count % 3}` } } });
        return `edit ${name}`;
    }
  }

  /** Argo CD refuses a second operation while one runs, so nothing is promised for one that is set all the same. */
  #remember(id: string, app: Application): void {
    if (app.operation === undefined) {
      this.operations.set(id, { uid: app.metadata.uid ?? '', revision: `op-${this.#count}` });
    } else {
      this.operations.delete(id);
    }
  }

  #newApplication(ref: { namespace: string; name: string }): Application {
    const finalizers = this.#dice.chance(0.5) ? [resourcesFinalizer] : [];
    return {
      metadata: { ...ref, ...(finalizers.length > 0 ? { finalizers } : {}), labels: { team: 'a' } },
      spec: {
        project: 'default',
        source: { path: 'p0' },
        destination: { server: 'https://hub', namespace: ref.name },
      },
    };
  }
}

/** Runs what a user does; that an API server refuses it is the user's business. */
export function attempt(action: () => string): string {
  try {
    return action();
  } catch (error) {
    if (error instanceof Refused) {
      return `refused: ${error.message}`;
    }
    throw error;
  }
}
