import { type Runtime, type Store, type Tuning, View } from '../../../sync/index.ts';
import type { AgentKind, CopySync } from '../../peer/kind-sync.ts';
import type { ReplicaKind, ReplicaObject } from '../kinds.ts';
import { Replica } from '../replica.ts';
import type { ReplicaRules } from '../replica-rules.ts';
import type { KeptApplications } from './kept-applications.ts';

/** How copies on a managed cluster are kept. */
export interface ClusterReplicaOptions<T extends ReplicaObject> {
  readonly store: Store<T>;
  /** The agent's namespace, the only one that counts. */
  readonly namespace: string;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** The options of kinds that kept Applications may need. */
export interface NeededReplicaOptions<T extends ReplicaObject> extends ClusterReplicaOptions<T> {
  /** Applications of other principals, whose AppProjects and credentials stay with them. Default: there are none. */
  readonly kept?: KeptApplications | undefined;
}

/** Which copies of a kind stay because something needs them. */
interface Need<T> {
  readonly kept: KeptApplications | undefined;
  readonly isNeeded: (kept: KeptApplications, copy: T, principalUid: string) => boolean;
}

/** Copies of one kind that a managed cluster has of the hub's objects. */
export function clusterReplica<T extends ReplicaObject>(
  kind: ReplicaKind<T>,
  rules: ReplicaRules<T>,
  { store, namespace, runtime, tuning }: ClusterReplicaOptions<T>,
  need?: Need<T>,
): AgentKind<CopySync> {
  const kept = need?.kept;
  const stop = new AbortController();
  const view: View<T> = new View<T>({
    clock: runtime.clock,
    changed: (ref, change) => replica.localChange(ref, change),
    doubted: ({ name }) => replica.reconcile(name, true),
  });
  const isNeeded = need && kept && ((copy: T, principalUid: string) => need.isNeeded(kept, copy, principalUid));
  const options = { kind, rules, store, view, namespace, peer: {}, isTrusted: true, isNeeded, runtime, tuning };
  const replica = new Replica<T>(options, stop.signal);
  kept?.onRelease(() => replica.reconsiderWithdrawn());
  const start = (signal: AbortSignal): void => {
    kept?.start(signal);
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
