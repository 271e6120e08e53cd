import { type Runtime, type Store, type Tuning, View } from '../../../sync/index.ts';
import type { AgentKind, CopySync } from '../../peer/kind-sync.ts';
import type { ReplicaKind, ReplicaObject } from '../kinds.ts';
import { Replica } from '../replica.ts';
import type { ReplicaRules } from '../replica-rules.ts';

/** How copies on a managed cluster are kept. */
export interface ClusterReplicaOptions<T extends ReplicaObject> {
  readonly store: Store<T>;
  /** The agent's namespace, the only one that counts. */
  readonly namespace: string;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** Copies of one kind that a managed cluster has of the hub's objects. */
export function clusterReplica<T extends ReplicaObject>(
  kind: ReplicaKind<T>,
  rules: ReplicaRules<T>,
  { store, namespace, runtime, tuning }: ClusterReplicaOptions<T>,
): AgentKind<CopySync> {
  const stop = new AbortController();
  const view: View<T> = new View<T>({
    clock: runtime.clock,
    changed: (ref, change) => replica.localChange(ref, change),
    doubted: ({ name }) => replica.reconcile(name, true),
  });
  const options = { kind, rules, store, view, namespace, peer: {}, isTrusted: true, runtime, tuning };
  const replica = new Replica<T>(options, stop.signal);
  const start = (signal: AbortSignal): void => {
    const unfollow = view.follow(within(store, namespace));
    signal.addEventListener('abort', () => {
      unfollow();
      stop.abort();
    });
    replica.adoptFound();
  };
  return Object.assign(replica, { start });
}

function within<T extends ReplicaObject>(store: Store<T>, namespace: string): Pick<Store<T>, 'subscribe'> {
  return {
    subscribe: (listener) =>
      store.subscribe((change) => {
        if ((change.now ?? change.old)?.metadata.namespace === namespace) {
          listener(change);
        }
      }),
  };
}
