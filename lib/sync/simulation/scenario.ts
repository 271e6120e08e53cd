import { type Application, annotations } from '../../argocd/index.ts';
import { type ObjectRef, refOf } from '../index.ts';
import { resourcesFinalizer } from './argo-cd.ts';
import { type Cluster, Refused } from './cluster.ts';
import type { Dice } from './dice.ts';
import type { Layout } from './layout.ts';

/** What users do on the hub and on managed clusters, one random thing at a time. */
export class Users {
  readonly #dice: Dice;
  readonly #layout: Layout;
  /** The last operation that was asked for on the hub, by Application. */
  readonly operations = new Map<string, { readonly uid: string; readonly revision: string }>();
  #count = 0;

  constructor(dice: Dice, layout: Layout) {
    this.#dice = dice;
    this.#layout = layout;
  }

  /** Somebody does something to an Application of this agent on the hub. */
  actOnHub(hub: Cluster, agent: string): string {
    const ref = this.#pick(this.#layout.hubNamespaces(agent));
    const { namespace, name } = ref;
    const app = hub.get(ref);
    if (app === undefined) {
      hub.create(this.#newApplication(ref, agent));
      return `create ${namespace}/${name}`;
    }
    const choice = this.#dice.integer(0, 11);
    switch (choice) {
      case 0:
        hub.delete(ref, { propagation: 'Foreground' });
        return `delete in the foreground ${namespace}/${name}`;
      case 1:
        hub.delete(ref, { propagation: 'Background' });
        return `delete ${namespace}/${name}`;
      case 2:
        if (app.metadata.deletionTimestamp === undefined && (app.metadata.finalizers ?? []).length === 0) {
          hub.delete(ref, { propagation: 'Background' });
          hub.create(this.#newApplication(ref, agent));
        }
        return `re-create ${namespace}/${name}`;
      case 3:
        hub.patch(ref, { metadata: { annotations: { [annotations.refresh]: 'normal' } } });
        return `refresh ${namespace}/${name}`;
      case 4:
      case 5:
        hub.patch(ref, { operation: { sync: { revision: `op-${++this.#count}` } } });
        this.#remember(`${namespace}/${name}`, app);
        return `sync ${agent}/${name} op-${this.#count}`;
      case 6:
        if (app.operation !== undefined && app.status?.operationState?.phase === 'Running') {
          hub.patch(ref, { status: { operationState: { phase: 'Terminating' } } });
        }
        return `terminate ${namespace}/${name}`;
      case 7:
        hub.patch(ref, {
          metadata: { labels: { team: `t${++this.#count}` }, annotations: { note: `n${this.#count}` } },
        });
        return `label ${namespace}/${name}`;
      default:
        hub.patch(ref, { spec: { source: { path: `p${++this.#count % 3}` } } });
        return `edit ${namespace}/${name}`;
    }
  }

  /** Somebody meddles with an Application on a managed cluster. */
  actOnManaged(cluster: Cluster): string {
    const ref = this.#pick(this.#layout.localNamespaces);
    const { name } = ref;
    const app = cluster.get(ref);
    if (app === undefined) {
      if (this.#dice.chance(0.7)) {
        return 'nothing';
      }
      cluster.create({ ...this.#newApplication(ref, ''), spec: { source: { path: 'local' } } });
      return `create unmanaged ${name}`;
    }
    switch (this.#dice.integer(0, 4)) {
      case 0:
        cluster.delete(ref, { propagation: 'Background' });
        return `delete ${name}`;
      case 1:
        cluster.patch(ref, {
          metadata: { annotations: { [annotations.sourceUid]: null, [annotations.namespaceRemapped]: null } },
        });
        return `strip ${name}`;
      default:
        cluster.patch(ref, { spec: { source: { path: `local${++this.#count % 3}` } } });
        return `edit ${name}`;
    }
  }

  /** Any Application of the hub. */
  anyOnHub(hub: Cluster): ObjectRef | undefined {
    const any = this.#dice.pick(hub.list());
    return any === undefined ? undefined : refOf(any);
  }

  /** Somebody turns an Application to another cluster, or to none that has an agent. */
  moveOnHub(hub: Cluster, ref: ObjectRef, agents: readonly string[]): string {
    const to = this.#dice.pick([...agents, ...agents, ...this.#layout.otherDestinations]) ?? '';
    hub.patch(ref, { spec: { destination: { name: to } } });
    // Whether it was done where it was before is open.
    this.operations.delete(`${ref.namespace}/${ref.name}`);
    return `move ${ref.namespace}/${ref.name} to '${to}'`;
  }

  #pick(namespaces: readonly string[]): ObjectRef {
    const namespace = namespaces.length === 1 ? namespaces[0] : this.#dice.pick(namespaces);
    return { namespace: namespace ?? '', name: this.#dice.pick(this.#layout.names) ?? '' };
  }

  /** Argo CD refuses a second operation while one runs, so nothing is promised for one that is set all the same. */
  #remember(id: string, app: Application): void {
    if (app.operation === undefined) {
      this.operations.set(id, { uid: app.metadata.uid ?? '', revision: `op-${this.#count}` });
    } else {
      this.operations.delete(id);
    }
  }

  #newApplication(ref: ObjectRef, agent: string): Application {
    const finalizers = this.#dice.chance(0.5) ? [resourcesFinalizer] : [];
    return {
      metadata: { ...ref, ...(finalizers.length > 0 ? { finalizers } : {}), labels: { team: 'a' } },
      spec: {
        project: 'default',
        source: { path: 'p0' },
        destination:
          this.#layout.otherDestinations.length === 0
            ? { server: 'https://hub', namespace: ref.name }
            : { name: agent, namespace: ref.name },
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
